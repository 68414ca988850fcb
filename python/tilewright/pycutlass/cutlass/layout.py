"""Layouts of matrices and tensors, without gaps: the extents determine the strides."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from tilewright.errors import InvalidArgument, Unsupported

from ..enumeration import Enumeration
from .coordinates import MatrixCoord, Tensor4DCoord

INTERLEAVED = 32  # rows or columns that an interleaved layout stores together


@dataclass(frozen=True)
class PackedLayout:
    """A layout of certain extents without gaps, which LayoutType.packed() makes."""

    layout: LayoutType
    extents: tuple[int, ...]

    def stride(self) -> int | tuple[int, ...]:
        """The leading dimension of a matrix; for TensorNHWC the strides of w, h and n."""
        if self.layout.is_of_convolutions:
            _, height, width, channels = self.extents
            return channels, width * channels, height * width * channels
        rows, columns = self.extents
        if self.layout.is_interleaved:
            return INTERLEAVED * (rows if self.layout is LayoutType.ColumnMajorInterleaved32 else columns)
        return rows if self.layout is LayoutType.ColumnMajor else columns

    def capacity(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)


class LayoutType(Enumeration):
    """PyCUTLASS's layouts."""

    RowMajor = "row"
    ColumnMajor = "column"
    RowMajorInterleaved32 = "row_interleaved_32"
    ColumnMajorInterleaved32 = "column_interleaved_32"
    TensorNHWC = "nhwc"
    TensorNC32HW32 = "nc32hw32"
    TensorC32RSK32 = "c32rsk32"

    @property
    def major(self) -> str:
        """Tilewright's name of the layout of a matrix: "row", "column" or an interleaved one. Raises InvalidArgument for
        the layouts of convolutions."""
        if self.is_of_convolutions:
            raise InvalidArgument(f"{self.name} is for convolutions: a matrix is RowMajor or ColumnMajor")
        return str(self.value)

    @property
    def is_of_convolutions(self) -> bool:
        return self in (LayoutType.TensorNHWC, LayoutType.TensorNC32HW32, LayoutType.TensorC32RSK32)

    @property
    def has_blocks(self) -> bool:
        """Whether 32 channels of a pixel, or of a filter's tap, are stored together."""
        return self in (LayoutType.TensorNC32HW32, LayoutType.TensorC32RSK32)

    @property
    def is_interleaved(self) -> bool:
        """Whether 32 adjacent rows, or columns, are stored together."""
        return self in (LayoutType.RowMajorInterleaved32, LayoutType.ColumnMajorInterleaved32)

    def packed(self, extent: MatrixCoord | Tensor4DCoord) -> PackedLayout:
        """The layout of a matrix, or of a tensor of TensorNHWC, of these extents."""
        if self.has_blocks:
            raise Unsupported(f"{self.name}.packed() is not supported: TensorNHWC.packed() is")
        wanted = Tensor4DCoord if self.is_of_convolutions else MatrixCoord
        if not isinstance(extent, wanted):
            raise InvalidArgument(f"{self.name}.packed() takes a cutlass.{wanted.__name__}, got {extent!r:.80}")
        return PackedLayout(self, dataclasses.astuple(extent))

    def strides(self, rows: int, columns: int) -> tuple[int, int]:
        """The strides of a packed matrix whose layout is not interleaved. A tensor of TensorNHWC is a row-major matrix
        with a row for each pixel."""
        return (1, max(1, rows)) if self is LayoutType.ColumnMajor else (max(1, columns), 1)
