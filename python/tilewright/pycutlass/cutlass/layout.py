"""Layouts of matrices and tensors, without gaps: the extents determine the strides."""

from __future__ import annotations

import enum

from tilewright.errors import Unsupported


class LayoutType(enum.Enum):
    """PyCUTLASS's layouts."""

    RowMajor = "row"
    ColumnMajor = "column"
    RowMajorInterleaved32 = "row interleaved 32"
    ColumnMajorInterleaved32 = "column interleaved 32"
    TensorNHWC = "nhwc"
    TensorNC32HW32 = "nc32hw32"
    TensorC32RSK32 = "c32rsk32"

    @property
    def major(self) -> str:
        """ "row" or "column". Raises Unsupported for other layouts."""
        if self is LayoutType.RowMajor:
            return "row"
        if self is LayoutType.ColumnMajor:
            return "column"
        raise Unsupported(f"no kernel has operands of layout {self.name}: RowMajor and ColumnMajor are supported")
