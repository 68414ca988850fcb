"""The names of CuTe DSL's module `cutlass` that kernels and their interfaces use: element types, and `cute`, with which
a kernel is written in Python."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from tilewright._tilewright import DType
from tilewright.missing_name import refuse_unknown

from . import cute

Float64 = DType.f64
Float32 = DType.f32
TFloat32 = DType.tf32
Float16 = DType.f16
BFloat16 = DType.bf16
Float8E4M3FN = DType.e4m3
Float8E5M2 = DType.e5m2
Int32 = DType.s32
Int8 = DType.s8
Uint8 = DType.u8

cuda = types.SimpleNamespace(CUstream=Any)  # cuda.bindings.driver, for annotations
range_constexpr = cute.range_constexpr

__all__ = [
    "BFloat16",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float16",
    "Float32",
    "Float64",
    "Int8",
    "Int32",
    "TFloat32",
    "Uint8",
    "cuda",
    "cute",
    "range_constexpr",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
