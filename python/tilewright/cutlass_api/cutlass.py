"""The names of CuTe DSL's module `cutlass` that interfaces of kernels use: element types, and placeholders for streams.

CuTe DSL's language (cute.jit, cute.kernel) is not implemented: kernels are written in CUDA C++.
"""

from __future__ import annotations

import types
from typing import Any

from tilewright._tilewright import DType

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


def _make_fake_stream() -> Any:
    """A placeholder for the stream of a kernel that is compiled, not run."""
    return None


cute = types.SimpleNamespace(Tensor=Any, runtime=types.SimpleNamespace(make_fake_stream=_make_fake_stream))

__all__ = [
    "BFloat16",
    "Float16",
    "Float32",
    "Float64",
    "Float8E4M3FN",
    "Float8E5M2",
    "Int8",
    "Int32",
    "TFloat32",
    "Uint8",
    "cute",
]
