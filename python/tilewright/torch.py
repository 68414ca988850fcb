"""PyTorch operators: torch.ops.tilewright.matmul, .linear, .grouped_mm, .masked_mm, .conv2d, .contract and
.weight_linear, and grouped_mm(), masked_mm(), conv2d(), einsum() and weight_linear().

    import tilewright.torch
    y = torch.ops.tilewright.linear(x, weight, bias)
    z = tilewright.torch.grouped_mm(rows, experts, offs=ends)    # in place of torch._grouped_mm
    p = tilewright.torch.masked_mm(padded_rows, experts, counts)    # the first counts[g] rows of each group
    v = tilewright.torch.conv2d(x, weight, bias, padding=1, residual=u, activation="relu")
    s = tilewright.torch.einsum("bqhd,bkhd->bhqk", queries, keys)    # in place of torch.einsum

Their gradients are computed by Tilewright too and can be differentiated again. In graphs of torch.compile and
torch.export each operator is one node. With torch.use_deterministic_algorithms(True) they choose only kernels that
promise to be deterministic. Eager code that needs no gradients can call tilewright.matmul directly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

import tilewright
from tilewright import gradients
from tilewright._tilewright import _contraction_modes
from tilewright.call_arguments import compute_type, type_of_result
from tilewright.contraction import contraction_of_pair, contraction_path, modes_of, order_of_result, with_own_modes
from tilewright.epilogue import EpilogueArguments, graph_of_text
from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown
from tilewright.results import numpy_name, row_or_column_major
from tilewright.weights import PackedWeights, weight_matmul

__all__ = ["conv2d", "einsum", "grouped_mm", "masked_mm", "weight_linear"]

gradients.require_supported(torch, "the operators of tilewright.torch")
_LIBRARY = torch.library.Library("tilewright", "DEF")
_LIBRARY.define("matmul(Tensor a, Tensor b) -> Tensor")
_LIBRARY.define("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
_LIBRARY.define(
    "grouped_mm(Tensor a, Tensor b, Tensor offs, ScalarType? out_dtype=None, bool zero_rest=False, "
    "int[]? expected_sizes=None) -> Tensor"
)
_LIBRARY.define(
    "masked_mm(Tensor a, Tensor b, Tensor counts, str mode='masked_m', ScalarType? out_dtype=None, "
    "bool zero_rest=False, int[]? expected_sizes=None) -> Tensor"
)
_NUMBERS = "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1"
_LIBRARY.define(
    f"conv2d(Tensor input, Tensor weight, Tensor? bias=None, {_NUMBERS}, Tensor? residual=None, "
    'str activation="none") -> Tensor'
)
_LIBRARY.define(f"conv2d_input(SymInt[4] input_size, Tensor weight, Tensor grad_output, {_NUMBERS}) -> Tensor")
_LIBRARY.define(f"conv2d_weight(Tensor input, SymInt[4] weight_size, Tensor grad_output, {_NUMBERS}) -> Tensor")
_LIBRARY.define(
    "product(Tensor a, Tensor b, Tensor? c, Tensor[] operands, str names, str epilogue, str numbers, float alpha, "
    "float beta, ScalarType? out_dtype, str? accumulator_type, str? math, bool? deterministic, bool? batch_invariant) "
    "-> Tensor"
)
_LIBRARY.define("contract(str expression, Tensor a, Tensor b) -> Tensor")
_LIBRARY.define("weight_linear(Tensor input, Tensor packed, Tensor scales, str dtype, int outputs, int group) -> Tensor")


def _shape(a: torch.Tensor, b: torch.Tensor) -> list[Any]:
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        raise InvalidArgument(f"a and b must have rank 2 or 3, got shapes {(*a.shape,)} and {(*b.shape,)}")
    batch = a.shape[:1] if a.dim() == 3 else b.shape[:1] if b.dim() == 3 else ()
    return [*batch, a.shape[-2], b.shape[-1]]


def _grouped_shape(a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor) -> list[Any]:
    ranks = a.dim(), b.dim()
    if ranks not in ((2, 3), (3, 2), (2, 2)):
        raise InvalidArgument(
            f"offs are for a and b of ranks 2 and 3, 3 and 2, or 2 and 2, got shapes {(*a.shape,)} and {(*b.shape,)}"
        )
    if offs.dim() != 1 or offs.dtype != torch.int32:
        raise InvalidArgument(f"offs must be a vector of int32, got {offs.dtype} of shape {(*offs.shape,)}")
    return [*(offs.shape if ranks == (2, 2) else ()), a.shape[-2], b.shape[-1]]


def _promises() -> dict[str, Any]:
    """What torch.use_deterministic_algorithms() requires of kernels."""
    return {"deterministic": True} if torch.are_deterministic_algorithms_enabled() else {}


def _matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty(_shape(a, b))
    tilewright.matmul(row_or_column_major(a), row_or_column_major(b), out=out, **_promises())
    return out


def _check_bias(bias: torch.Tensor | None, outputs: int) -> None:
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise InvalidArgument(f"bias must have the shape ({outputs},), one number for each output, got {(*bias.shape,)}")


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    _check_bias(bias, weight.shape[0])
    out = x.new_empty([*x.shape[:-1], weight.shape[0]])
    a, b = row_or_column_major(x.reshape(-1, x.shape[-1])), row_or_column_major(weight.t())
    out_2d = out.view(-1, weight.shape[0])
    if bias is None:
        tilewright.matmul(a, b, out=out_2d, **_promises())
    else:
        tilewright.matmul(a, b, out=out_2d, epilogue="D = acc + row(bias)", bias=bias, **_promises())
    return out


def _numbers(text: str) -> dict[str, Any]:
    return {name: float(value) for name, _, value in (each.partition("=") for each in text.split())}


def _text_of(
    epilogue: Any, problem: tuple[int, ...], is_f64: bool, shapes: dict[str, tuple[int, ...]], numbers: dict[str, float]
) -> tuple[str, tuple[str, ...], tuple[str, ...], str]:
    """The text of an epilogue, the names in it of its tensors, their names in the call, and the text of its numbers.

    torch.compile calls this while it traces, for the function itself. `problem` is (m, n) or (batch, m, n).
    """
    given = {name: tilewright.ShapeOnly(shape, "f32") for name, shape in shapes.items()}
    bound = EpilogueArguments(epilogue, **given, **numbers)
    *batch, m, n = problem
    compute = tilewright.DType.f64 if is_f64 else tilewright.DType.f32
    text, labels, values = bound._text(batch[0] if batch else None, m, n, compute)
    used = [label for label, name in labels.items() if name in shapes]
    of_call = tuple(labels[label] for label in used)
    return text, tuple(used), of_call, " ".join(f"{name}={value!r}" for name, value in values.items())


text_of: Any = torch._dynamo.assume_constant_result(_text_of)


def _product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    operands: Sequence[torch.Tensor],
    names: str,
    epilogue: str,
    numbers: str,
    alpha: float,
    beta: float,
    out_dtype: torch.dtype | None,
    accumulator_type: str | None,
    math: str | None,
    deterministic: bool | None,
    batch_invariant: bool | None,
) -> torch.Tensor:
    """tilewright.matmul, whose calls are this operator in graphs of torch.compile.

    `names` are those of `operands` in the epilogue, as in "bias scale"; `numbers` are as in "slope=0.5 limit=6.0".
    """
    promises = {**_promises(), **({} if deterministic is None else {"deterministic": deterministic})}
    out = _fake_product(a, b, c, operands, names, epilogue, numbers, alpha, beta, out_dtype)
    named: dict[str, Any] = {**dict(zip(names.split(), operands, strict=True)), **_numbers(numbers)}
    made: torch.Tensor = tilewright.matmul(
        row_or_column_major(a),
        row_or_column_major(b),
        epilogue=epilogue or None,
        c=c,
        alpha=alpha,
        beta=beta,
        out=out,  # so that matmul() does not ask whether the call is to be recorded, which it is already
        accumulator_type=accumulator_type,
        math=math,
        batch_invariant=batch_invariant,
        **promises,
        **named,
    )
    return made


def _size_list(expected_sizes: int | Sequence[int] | None) -> list[int] | None:
    """Expected sizes as the operators take them: the mean size alone, or the size of each group."""
    if expected_sizes is None:
        return None
    return [expected_sizes] if isinstance(expected_sizes, int) else [int(size) for size in expected_sizes]


def _sizes(size_list: list[int] | None) -> int | list[int] | None:
    """The inverse of _size_list."""
    return size_list[0] if size_list is not None and len(size_list) == 1 else size_list


def _grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offs: torch.Tensor,
    out_dtype: torch.dtype | None = None,
    zero_rest: bool = False,
    expected_sizes: list[int] | None = None,
) -> torch.Tensor:
    make = a.new_zeros if zero_rest and (a.dim() == 3 or b.dim() == 3) else a.new_empty
    out = make(_grouped_shape(a, b, offs), dtype=out_dtype or a.dtype)
    tilewright.grouped_matmul(
        row_or_column_major(a),
        row_or_column_major(b),
        offsets=offs.contiguous(),
        expected_sizes=_sizes(expected_sizes),
        out=out,
        **_promises(),
    )
    return out


def _masked_shape(a: torch.Tensor, b: torch.Tensor, counts: torch.Tensor) -> list[Any]:
    if (a.dim(), b.dim()) != (3, 3):
        raise InvalidArgument(f"counts are for a and b of rank 3, got shapes {(*a.shape,)} and {(*b.shape,)}")
    if counts.dim() != 1 or counts.dtype != torch.int32:
        raise InvalidArgument(f"counts must be a vector of int32, got {counts.dtype} of shape {(*counts.shape,)}")
    return [*counts.shape, a.shape[-2], b.shape[-1]]


def _masked_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    counts: torch.Tensor,
    mode: str = "masked_m",
    out_dtype: torch.dtype | None = None,
    zero_rest: bool = False,
    expected_sizes: list[int] | None = None,
) -> torch.Tensor:
    make = a.new_zeros if zero_rest and mode != "masked_k" else a.new_empty
    out = make(_masked_shape(a, b, counts), dtype=out_dtype or a.dtype)
    arguments = tilewright.GroupedGemmArguments(
        row_or_column_major(a),
        row_or_column_major(b),
        out,
        counts=counts.contiguous(),
        mode=mode,
        expected_sizes=_sizes(expected_sizes),
    )
    arguments._check_ends()
    tilewright.run(arguments, **_promises())
    return out


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("matmul", _matmul, _key)
    _LIBRARY.impl("linear", _linear, _key)
    _LIBRARY.impl("product", _product, _key)
    _LIBRARY.impl("grouped_mm", _grouped_mm, _key)
    _LIBRARY.impl("masked_mm", _masked_mm, _key)


def _fake_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty(_shape(a, b))


def _fake_linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return input.new_empty([*input.shape[:-1], weight.shape[0]])


def _fake_grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offs: torch.Tensor,
    out_dtype: torch.dtype | None = None,
    zero_rest: bool = False,
    expected_sizes: list[int] | None = None,
) -> torch.Tensor:
    return a.new_empty(_grouped_shape(a, b, offs), dtype=out_dtype or a.dtype)


def _fake_masked_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    counts: torch.Tensor,
    mode: str = "masked_m",
    out_dtype: torch.dtype | None = None,
    zero_rest: bool = False,
    expected_sizes: list[int] | None = None,
) -> torch.Tensor:
    return a.new_empty(_masked_shape(a, b, counts), dtype=out_dtype or a.dtype)


def _fake_product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    operands: Sequence[torch.Tensor],
    names: str,
    epilogue: str,
    numbers: str,
    alpha: float,
    beta: float,
    out_dtype: torch.dtype | None,
    accumulator_type: str | None = None,
    math: str | None = None,
    deterministic: bool | None = None,
    batch_invariant: bool | None = None,
) -> torch.Tensor:
    shape = _shape(a, b)
    kind = type_of_result(out_dtype, a)
    if epilogue and graph_of_text(epilogue, compute_type(a), _numbers(numbers), kind).is_gated:
        shape[-1] = shape[-1] // 2
    return a.new_empty(shape, dtype=getattr(torch, numpy_name(kind)))


torch.library.register_fake("tilewright::matmul", _fake_matmul)
torch.library.register_fake("tilewright::product", _fake_product)
torch.library.register_fake("tilewright::grouped_mm", _fake_grouped_mm)
torch.library.register_fake("tilewright::masked_mm", _fake_masked_mm)
torch.library.register_fake("tilewright::linear", _fake_linear)


def _sum_over_broadcast_batch(gradient: torch.Tensor, operand: torch.Tensor) -> torch.Tensor:
    """The gradient summed over the batch if the operand is a single matrix that was broadcast to it."""
    return gradient.sum(0) if gradient.dim() > operand.dim() else gradient


def _is_needed(ctx: Any, place: int) -> bool:
    """Whether the gradient of an argument is needed. PyTorch has no entry for trailing arguments that are omitted."""
    needs = ctx.needs_input_grad
    return place < len(needs) and bool(needs[place])


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
    grad_bias = rows.sum(0) if _is_needed(ctx, 2) else None
    return grad_x, grad_weight, grad_bias


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, c, operands, *rest = inputs
    ctx.save_for_backward(a, b, c, *operands)
    ctx.rest = rest


def _product_backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    a, b, c, *operands = ctx.saved_tensors
    names, epilogue, numbers, alpha, beta, *_ = ctx.rest
    of_product, of_c, of_operands = alpha * gradient, None if c is None else beta * gradient, [None] * len(operands)
    if epilogue:
        wide = torch.float64 if a.dtype == torch.float64 else torch.float32
        accumulators = _plain_product(a, b, wide)
        of_product, of_c, *of_operands = gradients.pull_back(
            epilogue, names.split(), _numbers(numbers), alpha, beta, accumulators, c, operands, gradient
        )
    of_product = of_product.to(a.dtype)
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = gradients._sum_to(_plain_product(of_product, b.transpose(-1, -2), a.dtype), a)
    if ctx.needs_input_grad[1]:
        of_b = gradients._sum_to(_plain_product(a.transpose(-1, -2), of_product, b.dtype), b)
    of_c = None if of_c is None or c is None else gradients._sum_to(of_c, c).to(c.dtype)
    fitted = [None if of is None else gradients._sum_to(of, x).to(x.dtype) for of, x in zip(of_operands, operands)]
    return of_a, of_b, of_c, fitted, *([None] * 10)


def _plain_product(a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype) -> Any:
    return torch.ops.tilewright.product(a, b, None, [], "", "", "", 1.0, 0.0, out_dtype, None, None, None, None)


torch.library.register_autograd("tilewright::product", _product_backward, setup_context=_save_product)
torch.library.register_autograd("tilewright::matmul", _matmul_backward, setup_context=_save_matmul)
torch.library.register_autograd("tilewright::linear", _linear_backward, setup_context=_save_linear)


def _save_grouped_mm(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.expected_sizes = inputs[5]


def _grouped_mm_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Ranks say what is stacked, here too: the gradient of experts stacks k, that of rows stacks rows. Rows that belong
    to no group have a gradient of 0."""
    a, b, offs = ctx.saved_tensors
    product = torch.ops.tilewright.grouped_mm
    options: dict[str, Any] = {"zero_rest": True, "expected_sizes": ctx.expected_sizes}
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = product(gradient.to(a.dtype), b.transpose(-1, -2), offs, **options)
    if ctx.needs_input_grad[1]:
        grad_b = product(a.transpose(-1, -2), gradient.to(a.dtype), offs, **options)
    return grad_a, grad_b, None, None, None, None


torch.library.register_autograd("tilewright::grouped_mm", _grouped_mm_backward, setup_context=_save_grouped_mm)


def _save_masked_mm(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *saved, ctx.mode = inputs[:4]
    ctx.save_for_backward(*saved)
    ctx.expected_sizes = inputs[6]


# The modes of the gradients of a and b: the extent that differs between the groups is that of the same letter.
_MODES_OF_GRADIENTS = {
    "masked_m": ("masked_m", "masked_k"),
    "masked_n": ("masked_k", "masked_n"),
    "masked_k": ("masked_n", "masked_m"),
}


def _masked_mm_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    a, b, counts = ctx.saved_tensors
    product, (of_a, of_b) = torch.ops.tilewright.masked_mm, _MODES_OF_GRADIENTS[ctx.mode]
    gradient = gradient.to(a.dtype)
    options: dict[str, Any] = {"zero_rest": True, "expected_sizes": ctx.expected_sizes}
    grad_a = grad_b = None
    if ctx.needs_input_grad[0]:
        grad_a = product(gradient, b.transpose(-1, -2), counts, of_a, **options)
    if ctx.needs_input_grad[1]:
        grad_b = product(a.transpose(-1, -2), gradient, counts, of_b, **options)
    return grad_a, grad_b, None, None, None, None, None


torch.library.register_autograd("tilewright::masked_mm", _masked_mm_backward, setup_context=_save_masked_mm)


class _words_of_torch:
    """Messages about the operands name them as PyTorch does. torch.compile cannot trace a generator's context."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, InvalidArgument) and error.args:
            words = re.sub(r"^[Aa](?=[ \[])", "input", str(error.args[0]))
            error.args = (re.sub(r"^(input and )?[Bb](?=[ \[])", r"\1mat2", words), *error.args[1:])


def masked_mm(
    input: torch.Tensor,
    mat2: torch.Tensor,
    counts: torch.Tensor,
    out_dtype: torch.dtype | None = None,
    *,
    expected_sizes: int | Sequence[int] | None = None,
) -> torch.Tensor:
    """input[g, :counts[g]] @ mat2[g] for each group g, with gradients: padded groups of sizes that the device knows.

    `input` is (groups, most, k), `mat2` (groups, k, n), and `counts` has one int32 for each group where the matrices
    are. Rows of the result behind counts[g] are not written, and are no part of any gradient; the gradients of such
    rows of `input` are 0. `expected_sizes` is that of grouped_mm().
    """
    with _words_of_torch():
        product: torch.Tensor = torch.ops.tilewright.masked_mm(
            input, mat2, counts, "masked_m", out_dtype, expected_sizes=_size_list(expected_sizes)
        )
    return product


def grouped_mm(
    input: torch.Tensor,
    mat2: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    *,
    expected_sizes: int | Sequence[int] | None = None,
) -> torch.Tensor:
    """torch._grouped_mm(input, mat2, offs, bias, out_dtype), computed by Tilewright with its gradients.

    `offs`, of int32, has the end of each group in device memory. The ranks of `input` and `mat2` say what is stacked:
    rows of `input` (2 and 3), columns of `mat2` (3 and 2), or k (2 and 2). Matrices of rank 3 without `offs` are a
    batch. All element types of tilewright.matmul and all alignments are accepted. `bias` must be None, as in PyTorch.

    As in PyTorch, rows and columns of the result behind offs[-1] are not written. Their gradients are 0.

    `expected_sizes` is the mean size of a group or a list with one for each, as in tilewright.grouped_matmul: kernels
    that are fast for such sizes rank first, in the gradients too, and results are right for all sizes. By default groups
    are taken to have the mean size.
    """
    if bias is not None:
        raise InvalidArgument("bias must be None: use tilewright.grouped_matmul with an epilogue")
    if offs is not None:
        with _words_of_torch():
            product: torch.Tensor = torch.ops.tilewright.grouped_mm(
                input, mat2, offs, out_dtype, expected_sizes=_size_list(expected_sizes)
            )
        return product
    if (input.dim(), mat2.dim()) != (3, 3):
        raise InvalidArgument(
            f"offs may be None for matrices of rank 3 only, got shapes {(*input.shape,)} and {(*mat2.shape,)}"
        )
    if expected_sizes is not None:
        raise InvalidArgument("expected_sizes are for groups that end at offs")
    if out_dtype not in (None, input.dtype):
        raise InvalidArgument(f"out_dtype must be {input.dtype} without offs, got {out_dtype}")
    batch: torch.Tensor = torch.ops.tilewright.matmul(input, mat2)
    return batch


def _images(like: torch.Tensor, shape: Any) -> torch.Tensor:
    """A new tensor of this shape with channels-last strides."""
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _conv2d_shape(
    input: torch.Tensor, weight: torch.Tensor, stride: list[int], padding: list[int], dilation: list[int]
) -> list[Any]:
    if input.dim() != 4 or weight.dim() != 4:
        raise InvalidArgument(f"input and weight must have rank 4, got shapes {(*input.shape,)} and {(*weight.shape,)}")
    positions = [
        (image + 2 * pad - dilate * (taps - 1) - 1) // step + 1
        for image, taps, pad, step, dilate in zip(input.shape[2:], weight.shape[2:], padding, stride, dilation)
    ]
    return [input.shape[0], weight.shape[0], *positions]


def _conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: list[int] = [1, 1],  # noqa: B006  as in the operator's schema
    padding: list[int] = [0, 0],  # noqa: B006
    dilation: list[int] = [1, 1],  # noqa: B006
    groups: int = 1,
    residual: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    if activation not in ("none", "relu"):
        raise InvalidArgument(f'activation must be "none" or "relu", got {activation!r}')
    _check_bias(bias, weight.shape[0])
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    value = "acc"
    for name, broadcast, tensor in (("bias", "row(bias)", bias), ("residual", "residual", residual)):
        if tensor is not None:
            value += f" + {broadcast}"
            options[name] = tensor.detach()
    if activation == "relu":
        value = f"relu({value})"
    if value != "acc":
        options["epilogue"] = f"D = {value}"
    result: torch.Tensor = tilewright.conv2d(input, weight, **options, **_promises())
    return result


def _conv2d_input(
    input_size: list[int],
    weight: torch.Tensor,
    grad_output: torch.Tensor,
    stride: list[int] = [1, 1],  # noqa: B006
    padding: list[int] = [0, 0],  # noqa: B006
    dilation: list[int] = [1, 1],  # noqa: B006
    groups: int = 1,
) -> torch.Tensor:
    out = _images(grad_output, input_size)
    tilewright.conv2d_input(input_size, weight, grad_output, stride, padding, dilation, groups, out=out, **_promises())
    return out


def _conv2d_weight(
    input: torch.Tensor,
    weight_size: list[int],
    grad_output: torch.Tensor,
    stride: list[int] = [1, 1],  # noqa: B006
    padding: list[int] = [0, 0],  # noqa: B006
    dilation: list[int] = [1, 1],  # noqa: B006
    groups: int = 1,
) -> torch.Tensor:
    out = _images(grad_output, weight_size)
    tilewright.conv2d_weight(input, weight_size, grad_output, stride, padding, dilation, groups, out=out, **_promises())
    return out


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("conv2d", _conv2d, _key)
    _LIBRARY.impl("conv2d_input", _conv2d_input, _key)
    _LIBRARY.impl("conv2d_weight", _conv2d_weight, _key)


def _fake_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: list[int] = [1, 1],  # noqa: B006
    padding: list[int] = [0, 0],  # noqa: B006
    dilation: list[int] = [1, 1],  # noqa: B006
    groups: int = 1,
    residual: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    return _images(input, _conv2d_shape(input, weight, stride, padding, dilation))


def _fake_conv2d_input(
    input_size: list[int], weight: torch.Tensor, grad_output: torch.Tensor, *numbers: Any, **named: Any
) -> torch.Tensor:
    return _images(grad_output, input_size)


def _fake_conv2d_weight(
    input: torch.Tensor, weight_size: list[int], grad_output: torch.Tensor, *numbers: Any, **named: Any
) -> torch.Tensor:
    return _images(grad_output, weight_size)


torch.library.register_fake("tilewright::conv2d", _fake_conv2d)
torch.library.register_fake("tilewright::conv2d_input", _fake_conv2d_input)
torch.library.register_fake("tilewright::conv2d_weight", _fake_conv2d_weight)


def _save_conv2d(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    input, weight, _, *ctx.numbers, _, activation = inputs
    ctx.save_for_backward(input, weight, *([output] if activation == "relu" else []))


def _conv2d_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    input, weight, *outputs = ctx.saved_tensors
    for output in outputs:  # of relu
        gradient = torch.where(output <= 0, 0, gradient)
    operators = torch.ops.tilewright
    grad_input = grad_weight = None
    if _is_needed(ctx, 0):
        grad_input = operators.conv2d_input(input.shape, weight, gradient, *ctx.numbers)
    if _is_needed(ctx, 1):
        grad_weight = operators.conv2d_weight(input, weight.shape, gradient, *ctx.numbers)
    grad_bias = gradient.sum((0, 2, 3)) if _is_needed(ctx, 2) else None
    grad_residual = gradient if _is_needed(ctx, 7) else None
    return grad_input, grad_weight, grad_bias, None, None, None, None, grad_residual, None


def _save_conv2d_input(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    _, weight, grad_output, *ctx.numbers = inputs
    ctx.save_for_backward(weight, grad_output)


def _conv2d_input_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """The gradient with respect to an input is linear in the weight and in the gradient of the output."""
    weight, grad_output = ctx.saved_tensors
    operators, needs = torch.ops.tilewright, ctx.needs_input_grad
    of_weight = operators.conv2d_weight(gradient, weight.shape, grad_output, *ctx.numbers) if needs[1] else None
    of_output = operators.conv2d(gradient, weight, None, *ctx.numbers) if needs[2] else None
    return None, of_weight, of_output, None, None, None, None


def _save_conv2d_weight(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    input, _, grad_output, *ctx.numbers = inputs
    ctx.save_for_backward(input, grad_output)


def _conv2d_weight_backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    input, grad_output = ctx.saved_tensors
    operators, needs = torch.ops.tilewright, ctx.needs_input_grad
    of_input = operators.conv2d_input(input.shape, gradient, grad_output, *ctx.numbers) if needs[0] else None
    of_output = operators.conv2d(input, gradient, None, *ctx.numbers) if needs[2] else None
    return of_input, None, of_output, None, None, None, None


torch.library.register_autograd("tilewright::conv2d", _conv2d_backward, setup_context=_save_conv2d)
torch.library.register_autograd("tilewright::conv2d_input", _conv2d_input_backward, setup_context=_save_conv2d_input)
torch.library.register_autograd("tilewright::conv2d_weight", _conv2d_weight_backward, setup_context=_save_conv2d_weight)


def conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    *,
    residual: torch.Tensor | None = None,
    activation: str = "none",
) -> torch.Tensor:
    """torch.nn.functional.conv2d with gradients: activation(input * weight + bias + residual), computed by Tilewright.

    `residual` has the shape of the result, and `activation` is "none" or "relu"; both are computed by the same kernel.
    Tensors in the memory format torch.channels_last are used in place, others that are read are copied. The result and
    the gradients of input and weight are channels-last.
    """
    if input.dim() == 3:
        images = residual if residual is None else residual.unsqueeze(0)
        arguments = (input.unsqueeze(0), weight, bias, stride, padding, dilation, groups)
        return conv2d(*arguments, residual=images, activation=activation).squeeze(0)
    if isinstance(padding, str):
        input, padding = _padded(input, weight, stride, padding, dilation)
    result: torch.Tensor = torch.ops.tilewright.conv2d(
        input, weight, bias, _two(stride), _two(padding), _two(dilation), groups, residual, activation
    )
    return result


def _two(numbers: int | tuple[int, ...]) -> list[int]:
    pair = [numbers, numbers] if isinstance(numbers, int) else [*numbers]
    return pair * 2 if len(pair) == 1 else pair


def _padded(
    input: torch.Tensor,
    weight: torch.Tensor,
    stride: int | tuple[int, ...],
    padding: str,
    dilation: int | tuple[int, ...],
) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The input, and the padding that a name stands for. Odd padding is one pixel more below and to the right, which is
    added to the input."""
    if padding == "valid":
        return input, (0, 0)
    if padding != "same":
        raise InvalidArgument(f'padding must be an int, a pair, "valid" or "same", got {padding!r}')
    if _two(stride) != [1, 1]:
        raise InvalidArgument(f'padding="same" needs a stride of 1, got {stride}')
    total = [step * (taps - 1) for step, taps in zip(_two(dilation), weight.shape[2:])]
    if any(each % 2 for each in total):
        input = torch.nn.functional.pad(input, (0, total[1] % 2, 0, total[0] % 2))
    return input, (total[0] // 2, total[1] // 2)


def _contracted_shape(expression: str, a: torch.Tensor, b: torch.Tensor) -> list[Any]:
    of_a, of_b, of_out = _contraction_modes(expression)
    extents = {**dict(zip(of_b, b.shape)), **dict(zip(of_a, a.shape))}
    for letter in of_out:
        if letter not in extents:
            raise InvalidArgument(f"out has the mode '{letter}', but no operand has it")
    return [extents[letter] for letter in of_out]


def _contract(expression: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty(_contracted_shape(expression, a, b))
    tilewright.contract(expression, a, b, out=out, **_promises())
    return out


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("contract", _contract, _key)


def _fake_contract(expression: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty(_contracted_shape(expression, a, b))


torch.library.register_fake("tilewright::contract", _fake_contract)


def _save_contract(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.expression, a, b = inputs
    ctx.save_for_backward(a, b)


def _contract_backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor | None, torch.Tensor | None]:
    a, b = ctx.saved_tensors
    of_a, of_b, of_out = _contraction_modes(ctx.expression)

    def gradient_of(operand: torch.Tensor, modes: str, other: torch.Tensor, of_other: str) -> torch.Tensor:
        """The gradient is the same along modes that only this operand has."""
        kept = "".join(letter for letter in modes if letter in of_out + of_other)
        part = torch.ops.tilewright.contract(f"{of_out},{of_other}->{kept}", gradient, other)
        result: torch.Tensor = part[tuple(slice(None) if letter in kept else None for letter in modes)]
        return result.expand(operand.shape)

    _, needs_a, needs_b = ctx.needs_input_grad
    return (
        None,
        gradient_of(a, of_a, b, of_b) if needs_a else None,
        gradient_of(b, of_b, a, of_a) if needs_b else None,
    )


torch.library.register_autograd("tilewright::contract", _contract_backward, setup_context=_save_contract)


def einsum(equation: str, *operands: torch.Tensor | Sequence[torch.Tensor]) -> torch.Tensor:
    """torch.einsum(equation, *operands) with gradients, computed by Tilewright's contractions of pairs.

    Equations may have an ellipsis, a letter twice in one operand, whose diagonal is meant, and extents of 1 that are
    broadcast. The order of pairs is that of tilewright.einsum(). Tensors may have any strides. As that of torch.einsum, the
    result may have another order of modes in memory than the letters say. One operand alone is left to PyTorch, because it
    has no product. Lists of subscripts are not supported.
    """
    is_list = len(operands) == 1 and not isinstance(operands[0], torch.Tensor)
    given: Any = operands[0] if is_list else operands
    if not isinstance(equation, str) or not all(isinstance(each, torch.Tensor) for each in given):
        raise InvalidArgument("einsum takes an equation, as 'ab,bc->ac', and tensors")
    tensors: list[torch.Tensor] = [*given]
    modes, result = modes_of(equation, [tuple(each.shape) for each in tensors], "tensors")
    if len(tensors) == 1:
        return torch.einsum(equation, *tensors)
    tensors, modes = with_own_modes(tensors, modes)
    for first, second in contraction_path(modes, result, [tuple(each.shape) for each in tensors]):
        x, y, of_x, of_y = tensors[first], tensors[second], modes[first], modes[second]
        for index in sorted((first, second), reverse=True):
            del tensors[index], modes[index]
        rest = set(result).union(*modes)
        kept = "".join(mode for mode in dict.fromkeys(of_x + of_y) if mode in rest) if tensors else result
        kept = order_of_result(of_x, of_y, kept, x, y)
        made, kept = contraction_of_pair(of_x, of_y, kept, x, y, torch.ops.tilewright.contract)
        tensors.append(made)
        modes.append(kept)
    return tensors[0].permute([modes[0].index(mode) for mode in result])


def _weight_linear(
    x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, dtype: str, outputs: int, group: int
) -> torch.Tensor:
    weights = PackedWeights(packed, scales, dtype, (outputs, x.shape[-1]), group)
    with torch.no_grad():  # the operator has no gradient, which its backward says
        result: torch.Tensor = weight_matmul(x.contiguous(), weights)
    return result


def _fake_weight_linear(
    input: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, dtype: str, outputs: int, group: int
) -> torch.Tensor:
    return input.new_empty([*input.shape[:-1], outputs])


def _refuse_weight_gradient(ctx: Any, gradient: torch.Tensor) -> None:
    raise InvalidArgument("weight_linear() computes no gradients: call it under torch.no_grad()")


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("weight_linear", _weight_linear, _key)
torch.library.register_fake("tilewright::weight_linear", _fake_weight_linear)
torch.library.register_autograd("tilewright::weight_linear", _refuse_weight_gradient)


def weight_linear(input: torch.Tensor, weights: PackedWeights) -> torch.Tensor:
    """input @ W.T with the packed weights of tilewright.pack_weights(): one node in graphs of torch.compile."""
    if not isinstance(weights, PackedWeights):
        kind = type(weights).__name__
        raise TypeError(f"weights must be PackedWeights, which tilewright.pack_weights() makes, got a {kind}")
    result: torch.Tensor = torch.ops.tilewright.weight_linear(
        input, weights.data, weights.scales, weights.dtype, weights.shape[0], weights.group
    )
    return result


if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
