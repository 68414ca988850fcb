"""tilewright.matmul, linear and grouped products in programs of JAX: under jax.jit, jax.grad and jax.vmap.

    import tilewright.jax
    y = tilewright.jax.linear(x, weight, bias)           # x @ weight.T + bias
    z = tilewright.jax.matmul(a, b, epilogue="relu")     # tilewright.matmul itself, when it is given tracers of JAX
    g = tilewright.jax.grouped_matmul(rows, experts, offsets=ends)

A product is one custom call of XLA (tilewright/xla_ffi.py), which computes on XLA's buffers: on a GPU on XLA's stream,
on the host on the device that TILEWRIGHT_DEVICE names. Kernels are chosen and compiled while JAX traces the program.
Gradients in reverse mode are products of Tilewright too, and can be differentiated again.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from tilewright import call_arguments, gradients, product, xla_ffi
from tilewright._tilewright import DType, Epilogue, GemmArguments, GroupedGemmArguments, ShapeOnly, dtype, prepare
from tilewright.epilogue import EpilogueArguments, graph_of_text
from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown
from tilewright.results import numpy_name

__all__ = ["grouped_matmul", "linear", "matmul"]

xla_ffi.register()


@dataclasses.dataclass(frozen=True)
class _Call:
    """What a product is, apart from its arrays: a, b, c if `has_c`, and those of the epilogue."""

    epilogue: str | None = None
    operands: tuple[str, ...] = ()  # the names in the epilogue of its arrays
    numbers: tuple[tuple[str, float], ...] = ()  # of the epilogue
    has_c: bool = False
    alpha: float = 1.0
    beta: float = 0.0
    transposes: tuple[bool, bool] = (False, False)  # whether a and b are stored transposed
    is_gated: bool = False
    out_dtype: str = "float32"
    options: tuple[tuple[str, Any], ...] = ()

    def shape(self, a: Any, b: Any) -> tuple[int, ...]:
        a_shape, b_shape = (_turned(x.shape, turn) for x, turn in zip((a, b), self.transposes, strict=True))
        batch = max(a_shape[:-2], b_shape[:-2], key=len)
        return (*batch, a_shape[-2], b_shape[-1] // 2 if self.is_gated else b_shape[-1])


def matmul(a: Any, b: Any, /, **options: Any) -> Any:
    """tilewright.matmul(a, b, ...) for arrays and tracers of JAX. The result is traced too."""
    return product.matmul(jnp.asarray(a), jnp.asarray(b), **options)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x @ weight.T + bias, for x of any number of modes, weight of the shape (n, k) and bias of the shape (n,)."""
    x, weight = jnp.asarray(x), jnp.asarray(weight)
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise InvalidArgument(f"x must be (..., k) and weight (n, k), got {x.shape} and {weight.shape}")
    call = _Call(transposes=(False, True), out_dtype=numpy_name(call_arguments.out_type(x)))
    rows = x.reshape((-1, x.shape[-1]))
    rest: tuple[Any, ...] = ()
    if bias is not None:
        bias = jnp.asarray(bias)
        if bias.shape != weight.shape[:1]:
            raise InvalidArgument(f"bias must be {weight.shape[:1]}, as weight has {weight.shape[0]} rows, got {bias.shape}")
        call = dataclasses.replace(call, epilogue="D = acc + row(bias)", operands=("bias",))
        rest = (bias,)
    turned = ShapeOnly(weight.shape[::-1], weight.dtype, (1, weight.shape[1]))
    _check(ShapeOnly(rows.shape, rows.dtype), turned, call, rest)
    made: Any = _product(call, rows, weight, *rest)
    return made.reshape((*x.shape[:-1], weight.shape[0]))


def trace(a: Any, b: Any, bound: Any, c: Any, alpha: float, beta: float | None, options: Mapping[str, Any]) -> Any:
    """tilewright.matmul of tracers. `bound` is None, an Epilogue or an EpilogueArguments."""
    for name in ("out", "stream"):
        if options[name] is not None:
            raise InvalidArgument(f"matmul({name}=) is not possible in a program of JAX, which owns the result")
    arrays: dict[str, Any] = {"a": a, "b": b} | ({} if c is None else {"c": c})
    if isinstance(bound, EpilogueArguments):
        arrays |= {name: value for name, value in bound.operands.items() if hasattr(value, "shape")}
    for name, value in arrays.items():
        if not isinstance(value, (jax.Array, np.ndarray)):
            raise InvalidArgument(f"{name} must be an array of JAX, got a {type(value).__name__}")
        array = jnp.asarray(value)
        arrays[name] = array.astype("uint8") if array.dtype == bool else array
    a, b = arrays["a"], arrays["b"]
    kind = call_arguments.type_of_result(options["out_dtype"], a)
    call = _Call(
        has_c=c is not None,
        alpha=alpha,
        beta=(0.0 if c is None else 1.0) if beta is None else call_arguments.number(beta, "beta"),
        out_dtype=numpy_name(kind),
        options=tuple(
            (name, dtype(value).name if name == "accumulator_type" else value)
            for name, value in options.items()
            if value is not None and name not in ("out", "stream", "out_dtype")
        ),
    )
    operands: list[str] = []
    if bound is not None:
        call, operands = _with_epilogue(call, a, b, bound)
    rest = [*([] if c is None else [arrays["c"]]), *(arrays[name] for name in operands)]
    _check(ShapeOnly(a.shape, a.dtype), ShapeOnly(b.shape, b.dtype), call, rest)
    return _product(call, a, b, *rest)


def _with_epilogue(call: _Call, a: Any, b: Any, bound: Any) -> tuple[_Call, list[str]]:
    """The call with the text of the epilogue, and the names of its operands as the caller has given them."""
    if isinstance(bound, Epilogue):
        raise InvalidArgument("an Epilogue object cannot be used in a program of JAX: pass its text")
    shape = product.shape_of_out(a, b, None, None)
    batch = shape[0] if len(shape) == 3 else None
    compute = call_arguments.compute_type(a)
    here = EpilogueArguments(
        bound.epilogue,
        **{name: value if not hasattr(value, "shape") else _Shape(value) for name, value in bound.operands.items()},
    )
    bound_graph = here._bind(batch, shape[-2], shape[-1], compute, dtype(call.out_dtype))[0]  # refuses what does not fit
    bound_output = here._bound_output()
    if bound_output is not None:
        raise InvalidArgument(
            f"the epilogue writes {bound_output[0]}: in a program of JAX, whose arrays cannot be written, matmul() returns "
            "it, and takes no array for it"
        )
    if bound_graph.outputs:
        operand_of = here._labels() or {}
        written = ", ".join(operand_of.get(label, label) for label in bound_graph.outputs)
        raise InvalidArgument(
            f"the epilogue writes {written}: in a program of JAX, whose arrays cannot be written, it has no output but D"
        )
    text, labels, numbers = here._text(batch, shape[-2], shape[-1], compute)
    names = [label for label, name in labels.items() if hasattr(bound.operands[name], "shape")]
    graph = graph_of_text(text, compute, numbers, dtype(call.out_dtype))
    call = dataclasses.replace(
        call,
        epilogue=text,
        operands=tuple(names),
        numbers=tuple(sorted(numbers.items())),
        is_gated=graph.is_gated,
    )
    return call, [labels[label] for label in names]


class _Shape:
    """The shape of an array of an epilogue: tracers have no memory."""

    def __init__(self, array: Any) -> None:
        self.shape = tuple(array.shape)
        self.dtype = np.dtype("uint8") if array.dtype == bool else array.dtype


def _check(a: ShapeOnly, b: ShapeOnly, call: _Call, rest: Any) -> None:
    """Raises what tilewright.matmul would, in its words, and compiles the kernel."""
    place = 1 if call.has_c else 0
    operands = {
        name: ShapeOnly(array.shape, array.dtype) for name, array in zip(call.operands, rest[place:], strict=True)
    }
    options = dict(call.options)
    promises = {name: options.pop(name, None) for name in ("deterministic", "batch_invariant")}
    for name, value in promises.items():
        call_arguments.check_flag(value, name)
    try:
        shape = _Call(is_gated=call.is_gated).shape(a, b) if min(len(a.shape), len(b.shape)) > 1 else ()
        arguments = GemmArguments(
            a,
            b,
            ShapeOnly(shape, call.out_dtype),
            options.pop("accumulator_type", None),
            None if call.epilogue is None else EpilogueArguments(call.epilogue, **operands, **dict(call.numbers)),
            C=ShapeOnly(rest[0].shape, rest[0].dtype) if call.has_c else None,
            alpha=call.alpha,
            beta=call.beta,
            **options,
        )
    except InvalidArgument as error:
        raise InvalidArgument(call_arguments.in_callers_words(str(error)) + product.what_fits(a, b, a)) from None
    prepare(arguments, **promises)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _product(call: _Call, a: Any, b: Any, *rest: Any) -> Any:
    # Where only a or only b is a batch, or there are other operands, jax.vmap calls it once for each element.
    is_plain = a.ndim == b.ndim and not rest
    described = {
        "rank": a.ndim,
        "transposes": call.transposes,
        "has_c": call.has_c,
        "operands": call.operands,
        "numbers": dict(call.numbers),
        "options": {"epilogue": call.epilogue, "alpha": call.alpha, "beta": call.beta, **dict(call.options)},
    }
    compute = jax.ffi.ffi_call(
        xla_ffi.TARGET,
        jax.ShapeDtypeStruct(call.shape(a, b), call.out_dtype),
        vmap_method="broadcast_all" if is_plain else "sequential",
    )
    return compute(a, b, *rest, call=json.dumps(described))


def _forward(call: _Call, a: Any, b: Any, *rest: Any) -> tuple[Any, tuple[Any, ...]]:
    return _product(call, a, b, *rest), (a, b, *rest)


def _backward(call: _Call, saved: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
    a, b, *rest = saved
    of_rest = [_no_gradient(each) for each in rest]
    if call.epilogue is None:
        of_product = call.alpha * gradient
        if call.has_c:
            of_rest[0] = _fitted(call.beta * gradient, rest[0])
    else:
        of_product, *of_rest = _of_epilogue(call, a, b, rest, gradient)
    of_product = of_product.astype(a.dtype)
    turn_a, turn_b = call.transposes
    if turn_a:
        of_a = _plain(b, of_product, (turn_b, True), a)
    else:
        of_a = _plain(of_product, b, (False, not turn_b), a)
    if turn_b:
        of_b = _plain(of_product, a, (True, turn_a), b)
    else:
        of_b = _plain(a, of_product, (not turn_a, False), b)
    return of_a, of_b, *of_rest


_product.defvjp(_forward, _backward)


@dataclasses.dataclass(frozen=True)
class _Groups:
    """What a product of groups is, apart from a, b and the ends of the groups."""

    mode: str
    transposes: tuple[bool, bool] = (False, False)  # whether a and b are stored transposed
    out_dtype: str = "float32"
    expected_sizes: int | tuple[int, ...] | None = None

    def shape(self, a: Any, b: Any, ends: Any) -> tuple[int, ...]:
        a_shape, b_shape = (_turned(x.shape, turn) for x, turn in zip((a, b), self.transposes, strict=True))
        is_stacked = self.mode in ("ragged_m", "ragged_n")
        return (*(() if is_stacked else ends.shape), a_shape[-2], b_shape[-1])


# The modes of the gradients of a and b.
_MODES_OF_GRADIENTS = {
    "ragged_m": ("ragged_m", "ragged_k"),
    "ragged_n": ("ragged_k", "ragged_n"),
    "ragged_k": ("ragged_n", "ragged_m"),
    "masked_m": ("masked_m", "masked_k"),
    "masked_n": ("masked_k", "masked_n"),
    "masked_k": ("masked_n", "masked_m"),
}


def _transposed(mode: str) -> str:
    """The mode of the transposed product."""
    return mode[:-1] + {"m": "n", "n": "m", "k": "k"}[mode[-1]]


def grouped_matmul(
    a: Any,
    b: Any,
    *,
    offsets: Any = None,
    counts: Any = None,
    expected_sizes: Any = None,
    out_dtype: Any = None,
) -> Any:
    """tilewright.grouped_matmul(a, b, offsets=...) or (counts=...) for arrays and tracers of JAX, without an epilogue.

    Elements of the result that belong to no group are 0, because a program of JAX must not depend on memory that nobody
    has written.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    if (offsets is None) == (counts is None):
        raise InvalidArgument("one of offsets (stacked groups) and counts (padded groups) must be given")
    ends = jnp.asarray(counts if offsets is None else offsets)
    ranks = (a.ndim, b.ndim)
    modes = {(2, 3): "ragged_m", (3, 2): "ragged_n", (2, 2): "ragged_k"} if counts is None else {(3, 3): "masked_m"}
    if ranks not in modes:
        expected = "2 and 3, 3 and 2, or 2 and 2" if counts is None else "3 and 3"
        raise InvalidArgument(f"a and b must have ranks {expected}, got shapes {a.shape} and {b.shape}")
    kind = call_arguments.type_of_result(out_dtype, a)
    sizes = expected_sizes if expected_sizes is None or isinstance(expected_sizes, int) else tuple(map(int, expected_sizes))
    call = _Groups(modes[ranks], out_dtype=numpy_name(kind), expected_sizes=sizes)
    _check_groups(call, ShapeOnly(a.shape, a.dtype), ShapeOnly(b.shape, b.dtype), ShapeOnly(ends.shape, ends.dtype))
    return _groups(call, a, b, ends)


def _check_groups(call: _Groups, a: ShapeOnly, b: ShapeOnly, ends: ShapeOnly) -> None:
    """Raises what tilewright.grouped_matmul would, and compiles the kernel."""
    out = ShapeOnly(call.shape(a, b, ends), call.out_dtype)
    name = "offsets" if call.mode.startswith("ragged") else "counts"
    options: dict[str, Any] = {name: ends, "mode": call.mode, "expected_sizes": call.expected_sizes}
    try:
        prepare(GroupedGemmArguments(a, b, out, **options))
    except InvalidArgument as error:
        raise InvalidArgument(call_arguments.in_callers_words(str(error))) from None


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _groups(call: _Groups, a: Any, b: Any, ends: Any) -> Any:
    described = {"groups": call.mode, "transposes": call.transposes, "expected_sizes": call.expected_sizes}
    shape = call.shape(a, b, ends)
    compute = jax.ffi.ffi_call(
        xla_ffi.TARGET, jax.ShapeDtypeStruct(shape, call.out_dtype), vmap_method="sequential"
    )
    out = compute(a, b, ends, call=json.dumps(described))
    if call.mode.endswith("k"):
        return out
    along = len(shape) - (2 if call.mode.endswith("m") else 1)
    index = jax.lax.broadcasted_iota(jnp.int32, shape, along)
    end = ends[:, None, None] if call.mode.startswith("masked") else ends[-1] if ends.shape[0] > 0 else 0
    return jnp.where(index < end, out, jnp.zeros((), out.dtype))


def _forward_groups(call: _Groups, a: Any, b: Any, ends: Any) -> tuple[Any, tuple[Any, ...]]:
    return _groups(call, a, b, ends), (a, b, ends)


def _backward_groups(call: _Groups, saved: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
    a, b, ends = saved
    turn_a, turn_b = call.transposes
    mode_a, mode_b = _MODES_OF_GRADIENTS[call.mode]
    gradient = gradient.astype(a.dtype)

    def gradient_of(operand: Any, x: Any, y: Any, mode: str, transposes: tuple[bool, bool]) -> Any:
        if not jnp.issubdtype(operand.dtype, jnp.floating):
            return _no_gradient(operand)
        made = dataclasses.replace(call, mode=mode, transposes=transposes, out_dtype=operand.dtype.name)
        return _groups(made, x, y, ends)

    if turn_a:
        of_a = gradient_of(a, b, gradient, _transposed(mode_a), (turn_b, True))
    else:
        of_a = gradient_of(a, gradient, b, mode_a, (False, not turn_b))
    if turn_b:
        of_b = gradient_of(b, gradient, a, _transposed(mode_b), (True, turn_a))
    else:
        of_b = gradient_of(b, a, gradient, mode_b, (not turn_a, False))
    return of_a, of_b, _no_gradient(ends)


_groups.defvjp(_forward_groups, _backward_groups)


def _plain(a: Any, b: Any, transposes: tuple[bool, bool], operand: Any) -> Any:
    """The gradient of an operand: a product without an epilogue."""
    if not jnp.issubdtype(operand.dtype, jnp.floating):
        return _no_gradient(operand)
    made = _product(_Call(transposes=transposes, out_dtype=operand.dtype.name), a, b.astype(a.dtype))
    return _fitted(made, operand)


def _no_gradient(operand: Any) -> Any:
    if jnp.issubdtype(operand.dtype, jnp.floating):
        return jnp.zeros_like(operand)
    return np.zeros(operand.shape, jax.dtypes.float0)


def _fitted(gradient: Any, operand: Any) -> Any:
    """The gradient of an operand that was broadcast: summed, and in its type."""
    extra = gradient.ndim - operand.ndim
    summed = [mode for mode in range(gradient.ndim) if mode < extra or operand.shape[mode - extra] != gradient.shape[mode]]
    return gradient.sum(summed).reshape(operand.shape).astype(operand.dtype)


def _of_epilogue(call: _Call, a: Any, b: Any, rest: list[Any], gradient: Any) -> list[Any]:
    """The gradients of the accumulators, which are computed again, of c and of the epilogue's operands."""
    wide = "float64" if a.dtype == jnp.float64 else "float32"
    accumulators = _product(_Call(transposes=call.transposes, out_dtype=wide), a, b)
    is_float = [jnp.issubdtype(each.dtype, jnp.floating) for each in rest]

    def formula(accumulators: Any, *floats: Any) -> Any:
        values = iter(floats)
        given = [next(values) if differs else each for each, differs in zip(rest, is_float, strict=True)]
        c = given.pop(0).astype(wide) if call.has_c else None
        operands = dict(zip(call.operands, given, strict=True))
        numbers = {"alpha": call.alpha, "beta": call.beta, **dict(call.numbers)}
        evaluator = _Evaluator(accumulators, operands, numbers, c)
        return evaluator.result(gradients.prepared_text(evaluator, call.epilogue or "", call.alpha, call.beta, c))

    floats = [each for each, differs in zip(rest, is_float, strict=True) if differs]
    result, pull_back = jax.vjp(formula, accumulators, *floats)
    of_product, *found = pull_back(gradient.astype(result.dtype))
    values = iter(found)
    of_rest = [next(values) if differs else _no_gradient(each) for each, differs in zip(rest, is_float, strict=True)]
    return [of_product, *of_rest]


class _Evaluator(gradients.Evaluator):
    """With arrays of JAX."""

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        return _FUNCTIONS

    def compare(self, name: str, x: Any, y: Any) -> Any:
        names = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal"}
        return getattr(jnp, names.get(name, "not_equal"))(x, y).astype(self.acc.dtype)

    def array(self, value: Any) -> Any:
        return value if isinstance(value, jax.Array) else jnp.asarray(value, self.acc.dtype)

    def indices(self, count: int) -> Any:
        return jnp.arange(count, dtype=self.acc.dtype)

    def operand(self, value: Any) -> Any:
        return value.astype(self.acc.dtype)

    def rounded(self, value: Any, kind: str) -> Any:
        return value.astype(numpy_name(dtype(kind))).astype(self.acc.dtype)


def _gated(gate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: gate(x[..., 0::2]) * x[..., 1::2]


_gelu_tanh = functools.partial(jax.nn.gelu, approximate=True)
_gelu = functools.partial(jax.nn.gelu, approximate=False)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(jnp, name) for name in "abs sqrt exp log log1p floor round tanh square".split()},
    **{name: getattr(jax.nn, name) for name in ("relu", "sigmoid", "silu", "mish", "softplus")},
    "neg": jnp.negative,
    "rsqrt": jax.lax.rsqrt,
    "reciprocal": jnp.reciprocal,
    "erf": jax.lax.erf,
    "pow": jnp.power,
    "min": jnp.minimum,
    "max": jnp.maximum,
    "hardswish": jax.nn.hard_swish,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "glu": _gated(jax.nn.sigmoid),
    "reglu": _gated(jax.nn.relu),
    "swiglu": _gated(jax.nn.silu),
    "geglu": _gated(_gelu),
    "geglu_tanh": _gated(_gelu_tanh),
    "fma": lambda x, y, z: x * y + z,
    "where": lambda x, y, z: jnp.where(x != 0, y, z),
    "clamp": lambda x, y, z: jnp.minimum(jnp.maximum(x, y), z),
    "leaky_relu": lambda x, y: jnp.where(x > 0, x, y * x),
    "even": lambda x: x[..., 0::2],
    "odd": lambda x: x[..., 1::2],
}


def _turned(shape: tuple[int, ...], turns: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turns else tuple(shape)


if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
