"""Classes of PyCUTLASS for which Tilewright has no kernels. Their constructors raise Unsupported."""

from __future__ import annotations

from typing import NoReturn

from tilewright.errors import Unsupported


class _Unsupported:
    what = ""
    instead = ""

    def __init__(self, *args: object, **keywords: object) -> None:
        self._refuse()

    @classmethod
    def _refuse(cls) -> NoReturn:
        raise Unsupported(f"{cls.__name__}: Tilewright has no {cls.what} yet{cls.instead}")


class GemmOperationGrouped(_Unsupported):
    what = "grouped GEMM"
    instead = "; mode Array of GemmArguments takes lists of matrices of one size"


class GemmGroupedArguments(_Unsupported):
    what = "grouped GEMM"
    instead = "; mode Array of GemmArguments takes lists of matrices of one size"


GroupedGemmArguments = GemmGroupedArguments


class Conv2dOperation(_Unsupported):
    what = "convolution"


class Conv2dArguments(_Unsupported):
    what = "convolution"


class Conv2dProblemSize(_Unsupported):
    what = "convolution"


class SymmetricTensorDescription(_Unsupported):
    what = "symmetric matrix product"


class TriangularTensorDescription(_Unsupported):
    what = "triangular matrix product"
