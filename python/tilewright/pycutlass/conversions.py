"""The functions and classes of pycutlass.utils."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy

from tilewright._tilewright import dtype
from tilewright.cutlass_api.conversions import check_cuda_errors
from tilewright.errors import InvalidArgument

from .cutlass.element import DataType
from .cutlass.gemm import GemmCoord
from .cutlass.layout import LayoutType
from .device import device_cc
from .tensor import TensorDescription


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


class ReferenceModule:
    """Computes D = alpha * A @ B + beta * C with NumPy, for arrays that are laid out as the descriptions say."""

    def __init__(self, A: TensorDescription, B: TensorDescription, C: TensorDescription) -> None:
        self.layout_A = A.layout
        self.layout_B = B.layout
        self.layout_C = C.layout

    def run(
        self,
        A: Any,
        B: Any,
        C: Any,
        problem_size: GemmCoord,
        alpha: float = 1.0,
        beta: float = 0.0,
        bias: bool = False,
        batch: int = 1,
    ) -> Any:
        """Returns D as a flat array in the layout of C. With `bias`, C is a vector of n elements that is added to every
        row. The matrices of a batch follow each other."""
        m, n, k = problem_size.m(), problem_size.n(), problem_size.k()
        a = _matrices(A, self.layout_A, (batch, m, k), "A")
        b = _matrices(B, self.layout_B, (batch, k, n), "B")
        wide = numpy.int64 if numpy.issubdtype(a.dtype, numpy.integer) else numpy.float64
        d = alpha * numpy.matmul(a.astype(wide), b.astype(wide))
        if beta != 0.0:
            c = numpy.asarray(C).reshape(batch, 1, n) if bias else _matrices(C, self.layout_C, (batch, m, n), "C")
            d = d + beta * c.astype(wide)
        d = d.astype(numpy.asarray(C).dtype)
        is_row_major = self.layout_C is LayoutType.RowMajor
        return (d if is_row_major else d.swapaxes(1, 2)).reshape(-1)


def _matrices(array: Any, layout: LayoutType, shape: Sequence[int], name: str) -> Any:
    """A batch of matrices from an array that is read in the order of its indices."""
    if layout not in (LayoutType.RowMajor, LayoutType.ColumnMajor):
        raise InvalidArgument(
            f"ReferenceModule takes row-major and column-major operands, got {layout.name} for {name}"
        )
    flat = numpy.asarray(array).reshape(-1)
    batch, rows, columns = shape
    if flat.size != batch * rows * columns:
        raise InvalidArgument(f"{name} must have {batch * rows * columns} elements, got {flat.size}")
    if layout is LayoutType.RowMajor:
        return flat.reshape(batch, rows, columns)
    return flat.reshape(batch, columns, rows).swapaxes(1, 2)


__all__ = [
    "ReferenceModule",
    "bfloat16_to_cutlass",
    "check_cuda_errors",
    "cupy_to_cutlass",
    "device_cc",
    "numpy_to_cutlass",
    "to_cutlass",
    "torch_to_cutlass",
]
