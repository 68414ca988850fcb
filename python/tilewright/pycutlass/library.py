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

DataTypeNames = {each: each.value for each in DataType}
DataTypeSize = {each: each.bits for each in DataType}
DataTypeSizeBytes = {each: each.bits // 8 for each in DataType if each.bits >= 8}
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
