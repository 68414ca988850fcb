"""Layouts of matrices and tensors, without gaps: the extents determine the strides."""

from __future__ import annotations

import enum

from tilewright.errors import InvalidArgument, Unsupported


class LayoutType(enum.Enum):
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
        """Tilewright's name of the layout: "row", "column" or an interleaved one. Raises Unsupported for others, and
        InvalidArgument for TensorNHWC."""
        if self is LayoutType.TensorNHWC:
            raise InvalidArgument("TensorNHWC is for convolutions: a matrix is RowMajor or ColumnMajor")
        if self in (LayoutType.TensorNC32HW32, LayoutType.TensorC32RSK32):
            raise Unsupported(f"no kernel has operands of layout {self.name}: it is for convolutions")
        return str(self.value)

    @property
    def is_interleaved(self) -> bool:
        """Whether 32 adjacent rows, or columns, are stored together."""
        return self in (LayoutType.RowMajorInterleaved32, LayoutType.ColumnMajorInterleaved32)
