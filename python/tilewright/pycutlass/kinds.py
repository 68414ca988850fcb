"""Kinds of operations. Tilewright supports OperationKind.Gemm and Conv2d, GemmKind.Universal and
GemmKind.Grouped."""

from .enumeration import Enumeration


class OperationKind(Enumeration):
    """The kind of operation."""

    Gemm = 0
    RankK = 1
    Rank2K = 2
    Trmm = 3
    Symm = 4
    Conv2d = 5
    Conv3d = 6


class GemmKind(Enumeration):
    """The kind of GEMM."""

    Gemm = 0
    Sparse = 1
    Universal = 2
    PlanarComplex = 3
    PlanarComplexArray = 4
    Grouped = 5


class SchedulerMode(Enumeration):
    """Where PyCUTLASS schedules the tiles of a grouped GEMM. Has no effect here."""

    Device = 0
    Host = 1


class ConvMode(Enumeration):
    """Whether filters are mirrored; a Conv2dProblemSize takes a cutlass.conv.Mode."""

    CrossCorrelation = 0
    Convolution = 1


class StrideSupport(Enumeration):
    """The strides that a convolution supports."""

    Strided = 0
    Unity = 1
    strided = 0  # the names of cutlass.conv.StrideSupport
    unity = 1
