"""The names of PyCUTLASS's module `cutlass`."""

from typing import TYPE_CHECKING

from tilewright.cutlass_api.cutlass import (
    BFloat16,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    TFloat32,
    Uint8,
    range_constexpr,
)
from tilewright.missing_name import refuse_unknown

from ..enumeration import Enumeration
from . import conv, cute, gemm
from .coordinates import MatrixCoord, Tensor4DCoord, dim3
from .element import DataType
from .layout import LayoutType
from .swizzle import (
    BatchedIdentitySwizzle,
    HorizontalSwizzle,
    IdentitySwizzle1,
    IdentitySwizzle2,
    IdentitySwizzle4,
    IdentitySwizzle8,
    StridedDgradHorizontalSwizzle,
    StridedDgradIdentitySwizzle1,
    StridedDgradIdentitySwizzle4,
    Swizzle,
)


class OpClass(Enumeration):
    """The class of the math instruction."""

    Simt = "simt"
    TensorOp = "tensor_op"
    WmmaTensorOp = "wmma_tensor_op"
    SparseTensorOp = "sparse_tensor_op"


class complex_transform(Enumeration):
    """The transformation of complex elements when they are read."""

    none = 0
    conj = 1


dtype = DataType
layout = LayoutType

float16 = DataType.float16
bfloat16 = DataType.bfloat16
float32 = DataType.float32
float64 = DataType.float64
tfloat32 = DataType.tfloat32
int8 = DataType.int8
int32 = DataType.int32
uint8 = DataType.u8

RowMajor = LayoutType.RowMajor
ColumnMajor = LayoutType.ColumnMajor
RowMajorInterleaved32 = LayoutType.RowMajorInterleaved32
ColumnMajorInterleaved32 = LayoutType.ColumnMajorInterleaved32
TensorNHWC = LayoutType.TensorNHWC
TensorNC32HW32 = LayoutType.TensorNC32HW32
TensorC32RSK32 = LayoutType.TensorC32RSK32

__all__ = [
    "BFloat16",
    "BatchedIdentitySwizzle",
    "ColumnMajor",
    "ColumnMajorInterleaved32",
    "DataType",
    "Float16",
    "Float32",
    "Float64",
    "Float8E4M3FN",
    "Float8E5M2",
    "HorizontalSwizzle",
    "IdentitySwizzle1",
    "IdentitySwizzle2",
    "IdentitySwizzle4",
    "IdentitySwizzle8",
    "Int32",
    "Int8",
    "LayoutType",
    "MatrixCoord",
    "OpClass",
    "RowMajor",
    "RowMajorInterleaved32",
    "StridedDgradHorizontalSwizzle",
    "StridedDgradIdentitySwizzle1",
    "StridedDgradIdentitySwizzle4",
    "Swizzle",
    "TFloat32",
    "Tensor4DCoord",
    "TensorC32RSK32",
    "TensorNC32HW32",
    "TensorNHWC",
    "Uint8",
    "bfloat16",
    "complex_transform",
    "conv",
    "cute",
    "dim3",
    "dtype",
    "float16",
    "float32",
    "float64",
    "gemm",
    "int8",
    "int32",
    "layout",
    "tfloat32",
    "uint8",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
