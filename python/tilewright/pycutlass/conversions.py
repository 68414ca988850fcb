"""The functions and classes of pycutlass.utils."""

from __future__ import annotations

import sys
from typing import Any

from tilewright._tilewright import dtype
from tilewright.cutlass_api.conversions import check_cuda_errors
from tilewright.errors import InvalidArgument

from . import device as device
from . import reference_model as reference_model
from .cutlass.element import DataType
from .device import device_cc
from .reference_model import Conv2dReferenceModule, ReferenceModule


def to_cutlass(type: Any) -> DataType:
    """The element type of CUTLASS for a type of NumPy, PyTorch, CuPy, JAX or ml_dtypes, or for its name."""
    if isinstance(type, DataType):
        return type
    return DataType(dtype(type).name)


def _of_framework(module: str, type: Any) -> DataType | None:
    found = sys.modules.get(module)
    if found is None:
        return None
    try:
        return to_cutlass(type)
    except InvalidArgument:
        return None


def numpy_to_cutlass(inp: Any) -> DataType | None:
    """to_cutlass() for types of NumPy; None if there is no such element type."""
    return _of_framework("numpy", inp)


def torch_to_cutlass(inp: Any) -> DataType | None:
    """to_cutlass() for types of PyTorch; None without PyTorch, or if there is no such element type."""
    return _of_framework("torch", inp)


def cupy_to_cutlass(inp: Any) -> DataType | None:
    """to_cutlass() for types of CuPy; None without CuPy, or if there is no such element type."""
    return _of_framework("cupy", inp)


def bfloat16_to_cutlass(inp: Any) -> DataType | None:
    """to_cutlass() for bfloat16 of ml_dtypes or of the package bfloat16; None for others."""
    found = _of_framework("numpy", inp)
    return found if found is DataType.bfloat16 else None


__all__ = [
    "Conv2dReferenceModule",
    "ReferenceModule",
    "bfloat16_to_cutlass",
    "check_cuda_errors",
    "cupy_to_cutlass",
    "device_cc",
    "numpy_to_cutlass",
    "to_cutlass",
    "torch_to_cutlass",
]
