"""Extents and modes of GEMMs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown

from ..enumeration import Enumeration
from .coordinates import MatrixCoord


class Mode(Enumeration):
    """A single GEMM, a GEMM with split-K, or several GEMMs of one size."""

    Gemm = 0
    GemmSplitKParallel = 1
    Batched = 2
    Array = 3
    Invalid = 4


class GemmCoord:
    """The extents m, n and k of a GEMM. Raises InvalidArgument unless they are integers of at least 0."""

    def __init__(self, m: SupportsIndex = 0, n: SupportsIndex = 0, k: SupportsIndex = 0) -> None:
        extents = []
        for name, value in (("m", m), ("n", n), ("k", k)):
            try:
                extent = operator.index(value)
            except TypeError:
                raise InvalidArgument(f"{name} of a GemmCoord must be an integer, got {value!r}") from None
            if extent < 0:
                raise InvalidArgument(f"{name} of a GemmCoord must be at least 0, got {extent}")
            extents.append(extent)
        self._m, self._n, self._k = extents

    def m(self) -> int:
        return self._m

    def n(self) -> int:
        return self._n

    def k(self) -> int:
        return self._k

    def at(self, index: int) -> int:
        return (self._m, self._n, self._k)[index]

    def mn(self) -> MatrixCoord:
        return MatrixCoord(self._m, self._n)

    def mk(self) -> MatrixCoord:
        return MatrixCoord(self._m, self._k)

    def nm(self) -> MatrixCoord:
        return MatrixCoord(self._n, self._m)

    def nk(self) -> MatrixCoord:
        return MatrixCoord(self._n, self._k)

    def km(self) -> MatrixCoord:
        return MatrixCoord(self._k, self._m)

    def kn(self) -> MatrixCoord:
        return MatrixCoord(self._k, self._n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GemmCoord) and (self._m, self._n, self._k) == (other._m, other._n, other._k)

    def __hash__(self) -> int:
        return hash((self._m, self._n, self._k))

    def __repr__(self) -> str:
        return f"GemmCoord({self._m}, {self._n}, {self._k})"

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, globals())
