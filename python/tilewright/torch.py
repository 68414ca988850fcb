"""Operators of PyTorch: torch.ops.tilewright.matmul and torch.ops.tilewright.linear.

    import tilewright.torch
    y = torch.ops.tilewright.linear(x, weight, bias)

They have gradients, themselves computed by Tilewright and differentiable again, and shapes for torch.compile and
torch.export, through which they go as one node. In eager code that needs no gradient tilewright.matmul is the shorter way.
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
        raise InvalidArgument(f"a and b are matrices or batches of them, got shapes {(*a.shape,)} and {(*b.shape,)}")
    batch = a.shape[:1] if a.dim() == 3 else b.shape[:1] if b.dim() == 3 else ()
    return [*batch, a.shape[-2], b.shape[-1]]


def _one_stride(x: torch.Tensor) -> torch.Tensor:
    """As it is where rows or columns lie together in memory, which kernels ask for; else a copy."""
    (rows, columns), (down, along) = x.shape[-2:], x.stride()[-2:]
    is_row_major, is_column_major = along == 1 and down >= columns, down == 1 and along >= rows
    return x if is_row_major or is_column_major or x.numel() == 0 else x.contiguous()


def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty(_shape(a, b))
    tilewright.matmul(_one_stride(a), _one_stride(b), out=out)
    return out


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    out = x.new_empty([*x.shape[:-1], weight.shape[0]])
    rows, into = _one_stride(x.reshape(-1, x.shape[-1])), out.view(-1, weight.shape[0])
    if bias is None:
        tilewright.matmul(rows, _one_stride(weight.t()), out=into)
    else:
        tilewright.matmul(rows, _one_stride(weight.t()), out=into, epilogue="D = acc + row(bias)", bias=bias)
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


def _reduced(gradient: torch.Tensor, operand: torch.Tensor) -> torch.Tensor:
    """Of an operand that served a whole batch: the sum over it."""
    return gradient.sum(0) if gradient.dim() > operand.dim() else gradient


def _save_matmul(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _matmul_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    a, b = ctx.saved_tensors
    product = torch.ops.tilewright.matmul
    of_a = _reduced(product(gradient, b.transpose(-1, -2)), a) if ctx.needs_input_grad[0] else None
    of_b = _reduced(product(a.transpose(-1, -2), gradient), b) if ctx.needs_input_grad[1] else None
    return of_a, of_b


def _save_linear(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _linear_backward(
    ctx: Any, gradient: torch.Tensor
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    x, weight = ctx.saved_tensors
    product = torch.ops.tilewright.matmul
    rows = gradient.reshape(-1, gradient.shape[-1])
    of_x = product(rows, weight).view(x.shape) if ctx.needs_input_grad[0] else None
    of_weight = product(rows.t(), x.reshape(-1, x.shape[-1])) if ctx.needs_input_grad[1] else None
    of_bias = rows.sum(0) if ctx.needs_input_grad[2] else None
    return of_x, of_weight, of_bias


torch.library.register_autograd("tilewright::matmul", _matmul_backward, setup_context=_save_matmul)
torch.library.register_autograd("tilewright::linear", _linear_backward, setup_context=_save_linear)
