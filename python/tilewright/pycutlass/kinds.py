"""Kinds of operations, of which Tilewright has Gemm and Universal."""

import enum


class OperationKind(enum.Enum):
    """What is computed."""

    Gemm = 0
    RankK = 1
    Rank2K = 2
    Trmm = 3
    Symm = 4
    Conv2d = 5
    Conv3d = 6


class GemmKind(enum.Enum):
    """How a GEMM is called."""

    Gemm = 0
    Sparse = 1
    Universal = 2
    PlanarComplex = 3
    PlanarComplexArray = 4
    Grouped = 5


class SchedulerMode(enum.Enum):
    """Where problems of a group are laid out."""

    Device = 0
    Host = 1


class StrideSupport(enum.Enum):
    """Of convolutions."""

    Strided = 0
    Unity = 1
