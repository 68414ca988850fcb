"""The names of PyCUTLASS's module `pycutlass.library`: descriptions, kinds of operations, and tables of names and sizes.

The tables have the keys that Tilewright's enumerations have: DataTypeNames[cutlass.float16] is "f16".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.missing_name import refuse_unknown

from . import cutlass
from .cutlass.conv import IteratorAlgorithm
from .cutlass.conv import Operator as ConvKind
from .cutlass.element import DataType
from .cutlass.layout import LayoutType
from .kinds import ConvMode, GemmKind, OperationKind, SchedulerMode, StrideSupport
from .math_instruction import MathInstruction, MathOperation
from .operation import LETTERS, ApiVersion, api_version
from .tensor import TensorDescription
from .tile import TileDescription
from .unsupported import SymmetricTensorDescription, TriangularTensorDescription

_INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")

DataTypeNames = {each: each.value for each in DataType}
DataTypeSize = {each: each.bits for each in DataType}
DataTypeSizeBytes = {each: each.bits // 8 for each in DataType if each.bits >= 8}
DataTypeTag = {  # the types of C++
    DataType.b1: "cutlass::uint1b_t",
    DataType.u4: "cutlass::uint4b_t",
    DataType.s4: "cutlass::int4b_t",
    **{each: f"{'u' if each.value[0] == 'u' else ''}int{each.bits}_t" for each in DataType if each.value in _INTEGERS},
    DataType.float16: "cutlass::half_t",
    DataType.bfloat16: "cutlass::bfloat16_t",
    DataType.tfloat32: "cutlass::tfloat32_t",
    DataType.float32: "float",
    DataType.float64: "double",
}
OpcodeClassNames = {
    cutlass.OpClass.Simt: "simt",
    cutlass.OpClass.TensorOp: "tensorop",
    cutlass.OpClass.WmmaTensorOp: "wmma_tensorop",
}
ShortLayoutTypeNames = {each: LETTERS.get(each, each.value) for each in LayoutType}

__all__ = [
    "ApiVersion",
    "ConvKind",
    "ConvMode",
    "DataTypeNames",
    "DataTypeSize",
    "DataTypeSizeBytes",
    "DataTypeTag",
    "GemmKind",
    "IteratorAlgorithm",
    "MathInstruction",
    "MathOperation",
    "OpcodeClassNames",
    "OperationKind",
    "SchedulerMode",
    "ShortLayoutTypeNames",
    "StrideSupport",
    "SymmetricTensorDescription",
    "TensorDescription",
    "TileDescription",
    "TriangularTensorDescription",
    "api_version",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
