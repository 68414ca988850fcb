"""tilewright.matmul."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._tilewright import DType, Epilogue, GemmArguments, PreparedCall, _default_output, dtype, prepare
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument
from tilewright.results import as_framework_of, empty_like, shaped


def matmul(
    a: Any,
    b: Any,
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
                      (batch, m, k) and (batch, k, n), one of which may be a single matrix; no tracers of jax.jit
    epilogue          a Python function, which is traced; a name such as "relu"; a text in the epilogue language; an
                      Epilogue or an EpilogueArguments
    operands          keywords: the arrays and numbers that the names in `epilogue` stand for, and an array for each
                      output other than D
    c, alpha, beta    for epilogues that use them, such as the named ones; beta defaults to 1 if `c` is given, else to 0
    out               the array for the result, which is also returned; by default a new array of a's framework
    out_dtype         the element type of the new array; by default that of `a`, but int32 for products of 8-bit
                      integers and bfloat16 for products of 8-bit floats
    accumulator_type  the type of the accumulators; the default follows from the operands' type and is mostly float32
    math              how float32 operands are multiplied: "multiply_add" (exact products), "multiply_add_tf32", ...
    stream            the GPU stream, on which a new array is also allocated; by default the framework's current stream
    deterministic     True: only kernels are chosen that promise equal bits in every run, as all shipped ones do
    batch_invariant   True: the bits of a row of the result depend neither on m, nor on the row's place, nor on the batch;
                      the default of both is that of configure()

    On a GPU the work is enqueued. Host arrays are complete on return.
    Raises InvalidArgument with the number that is wrong.
    """
    bound = _bound(epilogue, operands)
    is_given = out is not None
    if not is_given:
        like = shaped(a)
        kind = dtype(out_dtype) if out_dtype is not None else _out_type(like)
        out = empty_like(like, _shape_of_out(like, shaped(b), bound), kind, stream)
    arguments = GemmArguments(
        a,
        b,
        out,
        accumulator_type,
        bound,
        C=c,
        alpha=alpha,
        beta=(0.0 if c is None else 1.0) if beta is None else beta,
        math=math,
    )
    prepared: PreparedCall = prepare(arguments, deterministic=deterministic, batch_invariant=batch_invariant)
    prepared.run(stream=stream)
    return out if is_given else as_framework_of(a, out)


def _bound(epilogue: Any, operands: dict[str, Any]) -> Any:
    """The epilogue with its operands, in a form that GemmArguments accepts."""
    if epilogue is None or isinstance(epilogue, EpilogueArguments):
        if operands:
            raise InvalidArgument(f"matmul() has no argument {', '.join(sorted(operands))}")
        return epilogue
    if isinstance(epilogue, Epilogue) and not operands:
        return epilogue
    return EpilogueArguments(epilogue, **operands)


def _shape_of_out(a: Any, b: Any, bound: Any) -> tuple[int, ...]:
    for name, array in (("a", a), ("b", b)):
        if not hasattr(array, "shape"):
            raise InvalidArgument(f"{name}, a {type(array).__name__}, has no attribute shape: pass out=")
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3):
        raise InvalidArgument(f"a and b must have rank 2 or 3, got shapes {(*a.shape,)} and {(*b.shape,)}")
    m, n = int(a.shape[-2]), int(b.shape[-1])
    batches = [int(x.shape[0]) for x in (a, b) if len(x.shape) == 3]
    batch = max(batches) if batches else None
    graph = bound if isinstance(bound, Epilogue) else None
    if isinstance(bound, EpilogueArguments):
        graph = bound._bind(batch, m, n, _compute_type(a), _out_type(a))[0]
    columns = n // 2 if graph is not None and graph.is_gated else n
    return (m, columns) if batch is None else (batch, m, columns)


def _compute_type(a: Any) -> DType:
    return DType.f64 if _type_of(a) == DType.f64 else DType.f32


def _type_of(a: Any) -> DType:
    if not hasattr(a, "dtype"):
        raise InvalidArgument(f"a, a {type(a).__name__}, has no attribute dtype: pass out=")
    return dtype(a.dtype)


def _out_type(a: Any) -> DType:
    return _default_output(_type_of(a))
