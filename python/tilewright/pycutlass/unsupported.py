"""Classes of PyCUTLASS for which Tilewright has no kernels. Their constructors raise Unsupported."""

from __future__ import annotations

from typing import NoReturn

from tilewright.errors import Unsupported


class _Unsupported:
    what = ""

    def __init__(self, *args: object, **keywords: object) -> None:
        self._refuse()

    @classmethod
    def _refuse(cls) -> NoReturn:
        raise Unsupported(f"{cls.__name__}: Tilewright has no {cls.what} yet")


class SymmetricTensorDescription(_Unsupported):
    """A symmetric operand of PyCUTLASS. The constructor raises Unsupported."""

    what = "symmetric matrix product"


class TriangularTensorDescription(_Unsupported):
    """A triangular operand of PyCUTLASS. The constructor raises Unsupported."""

    what = "triangular matrix product"
