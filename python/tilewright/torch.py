"""PyTorch operators: torch.ops.tilewright.matmul and torch.ops.tilewright.linear.

    import tilewright.torch
    y = torch.ops.tilewright.linear(x, weight, bias)

Their gradients are computed by Tilewright too and can be differentiated again. In graphs of torch.compile and
torch.export each operator is one node. With torch.use_deterministic_algorithms(True) they choose only kernels that
promise to be deterministic. Eager code that needs no gradients can call tilewright.matmul directly.
"""

from __future__ import annotations

from typing import Any

import torch

import tilewright
from tilewright.errors import InvalidArgument

_LIBRARY = torch.library.Library("tilewright", "DEF")
_LIBRARY.define("matmul(Tensor a, Tensor b) -> Tensor")
_LIBRARY.define("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")


def _shape(a: torch.Tensor, b: torch.Tensor) -> list[Any]:
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        raise InvalidArgument(f"a and b must have rank 2 or 3, got shapes {(*a.shape,)} and {(*b.shape,)}")
    batch = a.shape[:1] if a.dim() == 3 else b.shape[:1] if b.dim() == 3 else ()
    return [*batch, a.shape[-2], b.shape[-1]]


def _row_or_column_major(x: torch.Tensor) -> torch.Tensor:
    """`x` if it is row-major or column-major, as kernels require; else a row-major copy."""
    (rows, columns), (row_stride, column_stride) = x.shape[-2:], x.stride()[-2:]
    is_row_major = column_stride == 1 and row_stride >= columns
    is_column_major = row_stride == 1 and column_stride >= rows
    return x if is_row_major or is_column_major or x.numel() == 0 else x.contiguous()


def _promises() -> dict[str, Any]:
    """What torch.use_deterministic_algorithms() requires of kernels."""
    return {"deterministic": True} if torch.are_deterministic_algorithms_enabled() else {}


def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty(_shape(a, b))
    tilewright.matmul(_row_or_column_major(a), _row_or_column_major(b), out=out, **_promises())
    return out


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    out = x.new_empty([*x.shape[:-1], weight.shape[0]])
    a, b = _row_or_column_major(x.reshape(-1, x.shape[-1])), _row_or_column_major(weight.t())
    out_2d = out.view(-1, weight.shape[0])
    if bias is None:
        tilewright.matmul(a, b, out=out_2d, **_promises())
    else:
        tilewright.matmul(a, b, out=out_2d, epilogue="D = acc + row(bias)", bias=bias, **_promises())
    return out


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("matmul", _matmul, _key)
    _LIBRARY.impl("linear", _linear, _key)


def _fake_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty(_shape(a, b))


def _fake_linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return input.new_empty([*input.shape[:-1], weight.shape[0]])


torch.library.register_fake("tilewright::matmul", _fake_matmul)
torch.library.register_fake("tilewright::linear", _fake_linear)


def _sum_over_broadcast_batch(gradient: torch.Tensor, operand: torch.Tensor) -> torch.Tensor:
    """The gradient summed over the batch if the operand is a single matrix that was broadcast to it."""
    return gradient.sum(0) if gradient.dim() > operand.dim() else gradient


def _save_matmul(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _matmul_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    a, b = ctx.saved_tensors
    product = torch.ops.tilewright.matmul
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = _sum_over_broadcast_batch(product(gradient, b.transpose(-1, -2)), a)
    if ctx.needs_input_grad[1]:
        grad_b = _sum_over_broadcast_batch(product(a.transpose(-1, -2), gradient), b)
    return grad_a, grad_b


def _save_linear(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _linear_backward(
    ctx: Any, gradient: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    x, weight = ctx.saved_tensors
    product = torch.ops.tilewright.matmul
    rows = gradient.reshape(-1, gradient.shape[-1])
    grad_x = product(rows, weight).view(x.shape) if ctx.needs_input_grad[0] else None
    grad_weight = product(rows.t(), x.reshape(-1, x.shape[-1])) if ctx.needs_input_grad[1] else None
    grad_bias = rows.sum(0) if ctx.needs_input_grad[2] else None
    return grad_x, grad_weight, grad_bias


torch.library.register_autograd("tilewright::matmul", _matmul_backward, setup_context=_save_matmul)
torch.library.register_autograd("tilewright::linear", _linear_backward, setup_context=_save_linear)
