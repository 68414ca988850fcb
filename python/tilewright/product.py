"""tilewright.matmul."""

from __future__ import annotations

import inspect
import math
import string
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tilewright._tilewright import Epilogue, GemmArguments, _remember_product, _repeat_product, run
from tilewright import gradients
from tilewright.call_arguments import (
    CallOptions,
    bound_epilogue,
    check_flag,
    check_out_dtype,
    compute_type,
    first_of,
    in_callers_words,
    no_array,
    number,
    out_type,
    tensors_of,
    type_of_result,
    with_packing_hint,
)
from tilewright.contraction import MOST_MODES, contract
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument
from tilewright.results import as_framework_of, empty_like, has_tracers, shaped, with_shape


def matmul(
    a: Any,
    b: Any,
    /,
    *,
    epilogue: Callable[..., object] | str | Epilogue | EpilogueArguments | None = None,
    c: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Any = None,
    out_dtype: Any = None,
    accumulator_type: Any = None,
    math: str | None = None,
    stream: Any = None,
    deterministic: bool | None = None,
    batch_invariant: bool | None = None,
    **operands: Any,
) -> Any:
    """Returns epilogue(a @ b), by default alpha * a @ b + beta * c, computed by the kernel that is ranked first.

    a, b              arrays of PyTorch, NumPy, CuPy or JAX with the shapes (m, k) and (k, n), or batches of them:
                      (batch, m, k) and (batch, k, n), one of which may be a single matrix.
                      As in numpy.matmul, vectors, batches of several modes that broadcast, and nested lists of numbers
                      are accepted too; lists of numbers become arrays of float64.
                      Each of a, b, c and out may also be a list or tuple of matrices that are alike, or a
                      PointerArray: the matrices of a batch, wherever they lie, in one launch
    epilogue          a Python function, which is traced; an activation such as torch.relu, np.tanh, torch.nn.GELU() or
                      jax.nn.silu; a name such as "relu"; a text in the epilogue language; an Epilogue or an
                      EpilogueArguments
    operands          keywords: the arrays and numbers that the names in `epilogue` stand for, and an array for each
                      output other than D; results of reductions have the shapes of NumPy, as (batch, m)
    c, alpha, beta    for epilogues that use them, such as the named ones; beta defaults to 1 if `c` is given, else to 0
    out               the array for the result, which is also returned; by default a new array of a's framework, for
                      lists too: (batch, m, n)
    out_dtype         the element type of the new array; by default that of `a`, but int32 for products of 8-bit
                      integers and bfloat16 for products of 8-bit floats
    accumulator_type  the type of the accumulators; the default follows from the operands' type and is mostly float32
    math              how float32 operands are multiplied: "multiply_add" (exact products), "multiply_add_tf32", ...
    stream            the GPU stream, on which a new array is also allocated; by default the framework's current stream
    deterministic     True: only kernels are chosen that promise equal bits in every run, as all shipped ones do
    batch_invariant   True: the bits of a row of the result depend neither on m, nor on the row's place, nor on the batch;
                      the default of both is that of configure()

    The gradients of PyTorch tensors that require one are computed too, also those of epilogues. In programs of jax.jit,
    jax.grad and jax.vmap the product is a custom call of XLA (tilewright.jax).

    On a GPU the work is enqueued. Host arrays are complete on return.
    Raises InvalidArgument with the number that is wrong.
    """
    product = a, b, out, epilogue, operands, c, alpha, beta, out_dtype, accumulator_type, math
    is_new = False
    if (
        "torch" in sys.modules
        and out is None
        and stream is None
        and gradients.is_recorded(a, b, epilogue, c, operands)
    ):
        if not _needs_reshaping(a, b):
            given = {
                "out_dtype": out_dtype,
                "accumulator_type": accumulator_type,
                "math": math,
                "deterministic": deterministic,
                "batch_invariant": batch_invariant,
            }
            return gradients.recorded(a, b, epilogue, c, alpha, beta, given, operands)
    else:
        repeated = _repeat_product(*product, stream, deterministic, batch_invariant)
        is_new = repeated is False
        if not is_new and repeated is not None:
            return repeated
    options = CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant)
    bound = bound_epilogue(epilogue, operands, matmul)
    if type(a) is list or type(a) is tuple:
        a = _numbers(a, "a")
    if type(b) is list or type(b) is tuple:
        b = _numbers(b, "b")
    a, b = with_shape(a), with_shape(b)
    if _needs_reshaping(a, b):
        return _reshaped(a, b, bound, c, out, options)
    arrays = tensors_of(bound)
    if "torch" in sys.modules and (
        gradients.are_needed(a, b, c, *arrays) or gradients.are_wrapped(a, b, c, *arrays)
    ):
        if out is not None:
            gradients.refuse("matmul(out=)", {"a": a, "b": b, "c": c, "an array of the epilogue": arrays})
        return gradients.matmul(a, b, bound, c, number(alpha, "alpha"), beta, {"out": out, **options.keywords()})
    if "jax" in sys.modules and has_tracers(a, b, c, *arrays):
        from tilewright.jax import trace

        return trace(a, b, bound, c, number(alpha, "alpha"), beta, {"out": out, **options.keywords()})
    return _run(
        a, b, bound, c, out, options, (lambda *made: _remember_product(*product, *made)) if is_new else None
    )


_PARAMETERS = frozenset(inspect.signature(matmul).parameters)


def _run(
    a: Any,
    b: Any,
    bound: Any,
    c: Any,
    out: Any,
    options: CallOptions,
    remember: Callable[[Any, Mapping[str, Any], GemmArguments], None] | None,
) -> Any:
    """Computes the product of matrices, or of a batch with one mode, outside of other programs. `remember` is given
    the result, the labels of the epilogue and the arguments, so that _repeat_product() knows calls like this one."""
    check_flag(options.deterministic, "deterministic")
    check_flag(options.batch_invariant, "batch_invariant")
    is_given = out is not None
    like: Any = None
    check_out_dtype(out, options.out_dtype)
    if not is_given:
        like = shaped(first_of(a, "a"))
        kind = type_of_result(options.out_dtype, like)
        shape = shape_of_out(like, shaped(first_of(b, "b")), bound, _length_of(a, b))
        out = empty_like(like, shape, kind, options.stream)
    alpha = number(options.alpha, "alpha")
    beta = number(options.beta_for(c), "beta")
    try:
        arguments = GemmArguments(
            a, b, out, options.accumulator_type, bound, C=c, alpha=alpha, beta=beta, math=options.math
        )
    except InvalidArgument as error:
        message = with_packing_hint(in_callers_words(str(error)), {"a": a, "b": b, "c": c, "out": out}, bound)
        says_what_to_do = any(word in message for word in ("read-only", ": pass .", "; pass "))
        raise InvalidArgument(message + ("" if says_what_to_do else what_fits(a, b, out))) from None
    if remember is not None:
        labels = bound._labels() if isinstance(bound, EpilogueArguments) else {}
        if labels is not None:
            remember(out, labels, arguments)
    run(arguments, options.stream, **options.promises())
    return out if is_given else as_framework_of(like, out)


def _numbers(values: Any, name: str) -> Any:
    """Nested lists of numbers as an array of float64; lists of arrays stay as they are."""
    first: Any = values
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if isinstance(first, (str, bytes, bool, complex, type(None))):
        raise InvalidArgument(f"{name} is a list of {type(first).__name__}: it must have numbers or matrices")
    if not isinstance(first, (int, float)):
        return values
    import numpy

    try:
        return numpy.array(values, dtype=numpy.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name} is a list of numbers whose rows differ in length, or have other values"
        ) from None
    except OverflowError:
        raise InvalidArgument(f"{name} has an integer that is too large for float64") from None


def _needs_reshaping(a: Any, b: Any) -> bool:
    """Whether a or b is a vector, has several batch modes, or must be broadcast along a batch mode of extent 1."""
    of_a, of_b = getattr(a, "shape", None), getattr(b, "shape", None)
    if of_a is None or of_b is None:
        return False
    ranks = len(of_a), len(of_b)
    if ranks == (2, 2) or not (hasattr(a, "reshape") and hasattr(b, "reshape")):
        return False
    if ranks == (3, 3):
        return bool(of_a[0] != of_b[0]) and 1 in (of_a[0], of_b[0])
    return not all(2 <= rank <= 3 for rank in ranks) and min(ranks) > 0


def _reshaped(a: Any, b: Any, bound: Any, c: Any, out: Any, options: CallOptions) -> Any:
    """matmul() by the rules of numpy.matmul, as a product of matrices or of a batch with one mode."""
    drops_rows, drops_columns = len(a.shape) == 1, len(b.shape) == 1
    a = a[None, :] if drops_rows else a
    b = b[:, None] if drops_columns else b
    before_a, before_b = tuple(map(int, a.shape[:-2])), tuple(map(int, b.shape[:-2]))
    batch = _broadcast_shape(before_a, before_b)
    m, k, n = int(a.shape[-2]), int(a.shape[-1]), int(b.shape[-1])
    size = 1
    for extent in batch:
        size *= extent

    def one_mode(x: Any, before: tuple[int, ...], rows: int, columns: int) -> Any:
        if not any(extent != 1 for extent in before):
            return x.reshape((rows, columns))
        return _broadcast(x, (*batch, rows, columns)).reshape((size, rows, columns))

    is_batch = any(extent != 1 for extent in batch)

    def inside(x: Any, name: str, is_written: bool = False) -> Any:
        """An array of the epilogue, or C, as one of the rank of the inner product. Modes of the batch that it lacks, or
        of which it has one element, are broadcast as NumPy does. One that is written has all of them, and may have the
        shape of a reduction: (*batch, m), (*batch, n) or batch."""
        rank = len(getattr(x, "shape", ()))
        if rank == 0 or rank > len(batch) + 2:
            return x
        of_result = len(batch) + 2 - drops_rows - drops_columns
        if rank == of_result or (rank < of_result and not is_written):
            x = x[..., None, :] if drops_rows else x
            x = x[..., :, None] if drops_columns else x
            rank = len(x.shape)
        if is_written and len(batch) <= rank < len(batch) + 2 and tuple(x.shape[: len(batch)]) == batch:
            return x.reshape(((size,) if is_batch else ()) + tuple(x.shape[len(batch) :]))
        if rank <= 2 or not batch:
            return x
        before = tuple(map(int, x.shape[:-2]))
        _check_batch(name, before, batch)
        if is_written and before != batch:
            raise InvalidArgument(f"{name} is written, so its batch must be {batch}, got {before}")
        return one_mode(x, before, int(x.shape[-2]), int(x.shape[-1]))

    def result(columns: int) -> tuple[int, ...]:
        return batch + (() if drops_rows else (m,)) + (() if drops_columns else (columns,))

    if out is not None and not (hasattr(out, "shape") and hasattr(out, "reshape")):
        lists = ": a list of matrices is for a batch of one mode" if isinstance(out, (list, tuple)) else ""
        raise InvalidArgument(f"out must be an array of shape {result(n)}, got a {type(out).__name__}{lists}")
    is_matrix = not (drops_rows or drops_columns)
    if out is not None and tuple(out.shape) == result(n) and is_matrix and len(batch) <= MOST_MODES - 2:
        if not _shares_memory(out.reshape((size, m, n)), out):
            return _contraction(a, b, batch, bound, c, out, options)
    inner_a, inner_b = one_mode(a, before_a, m, k), one_mode(b, before_b, k, n)
    epilogue, operands = bound, {}
    if isinstance(bound, EpilogueArguments):
        epilogue = bound.epilogue
        written = bound._written()
        operands = {name: inside(value, name, name in written) for name, value in bound.operands.items()}
        for name in written:
            if operands[name] is not bound.operands[name] and not _shares_memory(operands[name], bound.operands[name]):
                x = bound.operands[name]
                raise InvalidArgument(f"{name} of shape {(*x.shape,)} must be contiguous, got strides {_strides(x)}")

    inner_out = None
    if out is not None:
        expected = result(n)
        if tuple(out.shape) != expected and epilogue is not None:  # half as wide if the epilogue is gated
            inner_bound = bound_epilogue(epilogue, operands, matmul)
            expected = result(shape_of_out(inner_a, inner_b, inner_bound, None)[-1])
        if tuple(out.shape) != expected:
            raise InvalidArgument(f"out must be {expected}, got {(*out.shape,)}")
        columns = n if drops_columns else expected[-1]
        inner_out = out.reshape(((size,) if is_batch else ()) + (m, columns))
        if not _shares_memory(inner_out, out):
            raise InvalidArgument(f"out of shape {expected} must be contiguous, got strides {_strides(out)}")
    if epilogue is not None and not operands.keys().isdisjoint(_PARAMETERS):
        epilogue, operands = EpilogueArguments(epilogue, **operands), {}
    made = matmul(
        inner_a,
        inner_b,
        epilogue=epilogue,
        c=None if c is None else inside(c, "c"),
        out=inner_out,
        **options._asdict(),
        **operands,
    )
    return out if out is not None else made.reshape(result(int(made.shape[-1])))


def _check_batch(name: str, before: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """Refuses an array whose modes before the matrix do not broadcast to those of the result."""
    own = (1,) * (len(batch) - len(before)) + before
    if any(extent not in (1, whole) for extent, whole in zip(own, batch, strict=True)):
        raise InvalidArgument(f"{name} has the batch {before}, which does not broadcast to {batch}, that of a and b")


def _contraction(a: Any, b: Any, batch: tuple[int, ...], bound: Any, c: Any, out: Any, options: CallOptions) -> Any:
    """The product for an `out` whose batch modes are no single mode, as those of attention's heads are not."""
    of_batch = "".join(letter for letter in string.ascii_letters if letter not in "kmn")[: len(batch)]
    a = _broadcast(a, (*batch, *a.shape[-2:]))
    b = _broadcast(b, (*batch, *b.shape[-2:]))
    if 2 <= len(getattr(c, "shape", ())) <= len(batch) + 2:
        c = _with_batch("c", c, batch)
    epilogue = bound
    if isinstance(bound, EpilogueArguments):
        written = bound._written()
        operands = dict(bound.operands)
        for name, x in bound.operands.items():
            if name not in written and 2 < len(getattr(x, "shape", ())) <= len(batch) + 2:
                operands[name] = _with_batch(name, x, batch)
        epilogue = EpilogueArguments(bound.epilogue, **operands)
    expression = f"{of_batch}mk,{of_batch}kn->{of_batch}mn"
    return contract(expression, a, b, epilogue=epilogue, c=c, out=out, **options._asdict())


def _with_batch(name: str, x: Any, batch: tuple[int, ...]) -> Any:
    """`x` with all modes of the batch. It is copied if it has some of them only, because a contraction broadcasts C and
    arrays of epilogues along all modes of the batch or none."""
    before = tuple(map(int, x.shape[:-2]))
    _check_batch(name, before, batch)
    whole = _broadcast(x, (*batch, *x.shape[-2:]))
    if before == batch or all(extent == 1 for extent in before):
        return whole
    return whole.reshape((math.prod(batch), *x.shape[-2:])).reshape(whole.shape)


def _broadcast_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(x), len(y))
    pairs = zip((1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y, strict=True)
    extents = []
    for of_x, of_y in pairs:
        if of_x != of_y and 1 not in (of_x, of_y):
            raise InvalidArgument(f"the batches of a and b do not broadcast: {x} and {y}")
        extents.append(of_y if of_x == 1 else of_x)
    return tuple(extents)


def _broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    if tuple(x.shape) == shape:
        return x
    if hasattr(x, "expand"):
        return x.expand(shape)
    module = "jax.numpy" if type(x).__module__.startswith("jax") else type(x).__module__.partition(".")[0]
    return sys.modules[module].broadcast_to(x, shape)


def _shares_memory(x: Any, y: Any) -> bool:
    if hasattr(x, "data_ptr"):
        return bool(x.data_ptr() == y.data_ptr())
    interface = "__array_interface__" if hasattr(x, "__array_interface__") else "__cuda_array_interface__"
    return bool(getattr(x, interface)["data"][0] == getattr(y, interface)["data"][0])


def _strides(x: Any) -> tuple[int, ...]:
    """In elements."""
    if callable(getattr(x, "stride", None)):
        return tuple(x.stride())
    return tuple(step // x.itemsize for step in x.strides)


def what_fits(a: Any, b: Any, out: Any) -> str:
    """What to do about operands that do not fit."""
    shapes: list[tuple[Any, ...]] = [tuple(getattr(each, "shape", ())) for each in (a, b)]
    if all(len(shape) in (2, 3) for shape in shapes):
        m, k, rows, n = shapes[0][-2], shapes[0][-1], shapes[1][-2], shapes[1][-1]
        if k != rows:
            turned = ".T" if len(shapes[1]) == 2 else ".swapaxes(-1, -2)"
            if k == n:
                return f"; pass b{turned} if b is stored as (n, k)"
            if m == rows:
                return f"; pass a{turned} if a is stored as (k, m)"
            return ""
    for name, array in (("a", a), ("b", b), ("out", out)):
        if not hasattr(array, "shape") or not (hasattr(array, "strides") or callable(getattr(array, "stride", None))):
            continue
        strides, shape = _strides(array)[-2:], tuple(array.shape)[-2:]
        is_plain = len(strides) == 2 and (
            min(strides) >= 0 and any(step == 1 or extent <= 1 for step, extent in zip(strides, shape, strict=True))
        )
        if not is_plain and len(strides) == 2:
            is_torch = hasattr(array, "contiguous")
            packed = f"{name}.contiguous()" if is_torch else f"numpy.ascontiguousarray({name})"
            return f"; pass {packed}" if name != "out" else "; pass an out that is contiguous along rows or columns"
    return ""


def _length_of(a: Any, b: Any) -> int | None:
    """The number of matrices in the lists; None if neither is a list."""
    lengths = [len(each) for each in (a, b) if isinstance(each, (list, tuple))]
    if len(set(lengths)) == 2:
        raise InvalidArgument(f"a is a list of {lengths[0]} matrices, but b is one of {lengths[1]}")
    return lengths[0] if lengths else None


def shape_of_out(a: Any, b: Any, bound: Any, count: int | None) -> tuple[int, ...]:
    for name, array in (("a", a), ("b", b)):
        if not hasattr(array, "shape"):
            raise InvalidArgument(no_array(name, array))
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3):
        raise InvalidArgument(
            f"a and b must be vectors, matrices or batches, got shapes {(*a.shape,)} and {(*b.shape,)}"
        )
    m, n = int(a.shape[-2]), int(b.shape[-1])
    batches = [int(x.shape[0]) for x in (a, b) if len(x.shape) == 3] + ([] if count is None else [count])
    if len(set(batches)) > 1:
        raise InvalidArgument(
            f"a and b have batches of {batches[0]} and {batches[1]}: they must be equal, or one operand a single matrix"
        )
    batch = max(batches) if batches else None
    graph = bound if isinstance(bound, Epilogue) else None
    if isinstance(bound, EpilogueArguments):
        graph = bound._bind(batch, m, n, compute_type(a), out_type(a))[0]
    columns = n // 2 if graph is not None and graph.is_gated else n
    return (m, columns) if batch is None else (batch, m, columns)


