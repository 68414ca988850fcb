"""Extents of matrices, tensors and grids."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatrixCoord:
    """Rows and columns."""

    rows: int
    columns: int

    def row(self) -> int:
        return self.rows

    def column(self) -> int:
        return self.columns

    def at(self, index: int) -> int:
        return (self.rows, self.columns)[index]


@dataclass(frozen=True)
class Tensor4DCoord:
    """Extents of a tensor of rank 4."""

    n_extent: int
    h_extent: int
    w_extent: int
    c_extent: int

    def n(self) -> int:
        return self.n_extent

    def h(self) -> int:
        return self.h_extent

    def w(self) -> int:
        return self.w_extent

    def c(self) -> int:
        return self.c_extent

    def at(self, index: int) -> int:
        return (self.n_extent, self.h_extent, self.w_extent, self.c_extent)[index]


@dataclass(frozen=True)
class dim3:
    """Extents of a grid or a block."""

    x: int = 1
    y: int = 1
    z: int = 1
