"""References of GEMMs and convolutions, in NumPy. Results are arrays of C's framework, of its type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy

from tilewright.errors import InvalidArgument

from .cutlass.conv import Conv2dProblemSize, Operator, Mode
from .cutlass.gemm import GemmCoord
from .cutlass.layout import LayoutType
from .tensor import TensorDescription


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
        row or, if D is column-major, of m elements that is added to every column. The matrices of a batch follow each
        other."""
        m, n, k = problem_size.m(), problem_size.n(), problem_size.k()
        a = _matrices(A, self.layout_A, (batch, m, k), "A")
        b = _matrices(B, self.layout_B, (batch, k, n), "B")
        wide, is_row_major = _wide(a), self.layout_C is LayoutType.RowMajor
        d = alpha * numpy.matmul(a.astype(wide), b.astype(wide))
        if beta != 0.0:
            of_bias = (batch, 1, n) if is_row_major else (batch, m, 1)
            c = _array(C).reshape(of_bias) if bias else _matrices(C, self.layout_C, (batch, m, n), "C")
            d = d + beta * c.astype(wide)
        return _like(C, (d if is_row_major else d.swapaxes(1, 2)).reshape(-1))


def _matrices(array: Any, layout: LayoutType, shape: Sequence[int], name: str) -> Any:
    """A batch of matrices from an array that is read in the order of its indices."""
    if layout not in (LayoutType.RowMajor, LayoutType.ColumnMajor):
        raise InvalidArgument(
            f"ReferenceModule takes row-major and column-major operands, got {layout.name} for {name}"
        )
    flat = _array(array).reshape(-1)
    batch, rows, columns = shape
    if flat.size != batch * rows * columns:
        raise InvalidArgument(f"{name} must have {batch * rows * columns} elements, got {flat.size}")
    if layout is LayoutType.RowMajor:
        return flat.reshape(batch, rows, columns)
    return flat.reshape(batch, columns, rows).swapaxes(1, 2)


class Conv2dReferenceModule:
    """Computes D = alpha * convolution(A, B) + beta * C with NumPy, for flat NHWC tensors."""

    def __init__(self, A: TensorDescription, B: TensorDescription, C: TensorDescription, kind: Operator) -> None:
        for name, each in (("A", A), ("B", B), ("C", C)):
            if each.layout is not LayoutType.TensorNHWC:
                raise InvalidArgument(f"Conv2dReferenceModule takes TensorNHWC, got {each.layout.name} for {name}")
        self.conv_kind = kind

    def run(
        self,
        A: Any,
        B: Any,
        C: Any,
        problem_size: Conv2dProblemSize,
        alpha: float = 1.0,
        beta: float = 0.0,
        bias: bool = False,
    ) -> Any:
        """Returns D as a flat array. A and B are activations and filters for fprop, gradients of the output and filters for
        dgrad, gradients of the output and activations for wgrad. With `bias`, C is a vector along the last mode."""
        p = problem_size
        x, w, y = (p.N, p.H, p.W, p.C), (p.K, p.R, p.S, p.C // p.groups), (p.N, p.P, p.Q, p.K)
        of_a, of_b, of_d = {Operator.fprop: (x, w, y), Operator.dgrad: (y, w, x), Operator.wgrad: (y, x, w)}[self.conv_kind]
        a, b = (_array(each) for each in (A, B))
        wide = _wide(a)
        a, b = (_shaped(each, shape, name).astype(wide) for each, shape, name in ((a, of_a, "A"), (b, of_b, "B")))
        # The activations with zeros around them, so that each tap meets a slice.
        height = max(p.pad_h + p.H, (p.P - 1) * p.stride_h + (p.R - 1) * p.dilation_h + 1)
        width = max(p.pad_w + p.W, (p.Q - 1) * p.stride_w + (p.S - 1) * p.dilation_w + 1)
        around = numpy.zeros((p.N, height, width, p.C), wide)
        inside = around[:, p.pad_h : p.pad_h + p.H, p.pad_w : p.pad_w + p.W]
        d = numpy.zeros(of_d, wide)
        if self.conv_kind is not Operator.dgrad:
            inside[...] = a if self.conv_kind is Operator.fprop else b
        for r, s in numpy.ndindex(p.R, p.S):
            top, left = r * p.dilation_h, s * p.dilation_w
            met = around[:, top : top + (p.P - 1) * p.stride_h + 1 : p.stride_h]
            met = met[:, :, left : left + (p.Q - 1) * p.stride_w + 1 : p.stride_w]
            tap = (r, s) if p.mode is Mode.cross_correlation else (p.R - 1 - r, p.S - 1 - s)
            pixels = met.reshape(*met.shape[:3], p.groups, -1)
            if self.conv_kind is Operator.wgrad:
                found = numpy.einsum("npqgk,npqgc->gkc", a.reshape(*y[:3], p.groups, -1), pixels)
                d[:, tap[0], tap[1]] = found.reshape(p.K, -1)
                continue
            filters = b[:, tap[0], tap[1]].reshape(p.groups, -1, w[3])
            if self.conv_kind is Operator.fprop:
                d += numpy.einsum("npqgc,gkc->npqgk", pixels, filters).reshape(y)
            else:
                met += numpy.einsum("npqgk,gkc->npqgc", a.reshape(*y[:3], p.groups, -1), filters).reshape(met.shape)
        if self.conv_kind is Operator.dgrad:
            d = inside
        d = alpha * d
        if beta != 0.0:
            d = d + beta * _shaped(_array(C), (of_d[3],) if bias else of_d, "C").astype(wide)
        return _like(C, d.reshape(-1))


def _shaped(array: Any, shape: tuple[int, ...], name: str) -> Any:
    flat = array.reshape(-1)
    if flat.size != numpy.prod(shape):
        raise InvalidArgument(f"{name} must have {numpy.prod(shape)} elements, got {flat.size}")
    return flat.reshape(shape)


def _wide(array: Any) -> Any:
    return numpy.int64 if numpy.issubdtype(array.dtype, numpy.integer) else numpy.float64


def _is_of_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _array(array: Any) -> Any:
    """An array of NumPy with the same values; floats of PyTorch as float64, because NumPy has no bfloat16."""
    if _is_of_torch(array):
        array = array.detach().cpu()
        return (array.double() if array.is_floating_point() else array).numpy()
    return array.get() if hasattr(array, "get") and type(array).__module__.startswith("cupy") else numpy.asarray(array)


def _like(array: Any, values: Any) -> Any:
    """The values as an array of the framework, the type and the device of `array`."""
    if _is_of_torch(array):
        return sys.modules["torch"].from_numpy(values).to(array.device, array.dtype)
    if type(array).__module__.startswith("cupy"):
        return sys.modules["cupy"].asarray(values.astype(array.dtype))
    return values.astype(_array(array).dtype)


__all__ = ["Conv2dReferenceModule", "ReferenceModule"]
