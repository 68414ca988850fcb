"""tilewright.matmul."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._tilewright import (
    DType,
    Epilogue,
    GemmArguments,
    PointerArray,
    PreparedCall,
    _default_output,
    dtype,
    prepare,
)
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
                      (batch, m, k) and (batch, k, n), one of which may be a single matrix; no tracers of jax.jit.
                      Each of a, b, c and out may also be a list or tuple of matrices that are alike, or a
                      PointerArray: the matrices of a batch, wherever they lie, in one launch
    epilogue          a Python function, which is traced; a name such as "relu"; a text in the epilogue language; an
                      Epilogue or an EpilogueArguments
    operands          keywords: the arrays and numbers that the names in `epilogue` stand for, and an array for each
                      output other than D
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

    On a GPU the work is enqueued. Host arrays are complete on return.
    Raises InvalidArgument with the number that is wrong.
    """
    bound = _bound(epilogue, operands)
    is_given = out is not None
    if not is_given:
        like = shaped(_first_of(a, "a"))
        kind = dtype(out_dtype) if out_dtype is not None else _out_type(like)
        shape = _shape_of_out(like, shaped(_first_of(b, "b")), bound, _length_of(a, b))
        out = empty_like(like, shape, kind, stream)
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
    return out if is_given else as_framework_of(like, out)


def _bound(epilogue: Any, operands: dict[str, Any], caller: str = "matmul") -> Any:
    """The epilogue with its operands, in a form that GemmArguments accepts."""
    if epilogue is None or isinstance(epilogue, EpilogueArguments):
        if operands:
            raise InvalidArgument(f"{caller}() has no argument {', '.join(sorted(operands))}")
        return epilogue
    if isinstance(epilogue, Epilogue) and not operands:
        return epilogue
    return EpilogueArguments(epilogue, **operands)


def _first_of(operand: Any, name: str) -> Any:
    """The operand, or the first array of a list."""
    if isinstance(operand, PointerArray):
        raise InvalidArgument(f"{name} is a PointerArray, of which no array can be made: pass out=")
    if not isinstance(operand, (list, tuple)):
        return operand
    if not operand:
        raise InvalidArgument(f"{name} is an empty list: it must have at least one array")
    return operand[0]


def _length_of(a: Any, b: Any) -> int | None:
    """The number of matrices in the lists; None if neither is a list."""
    lengths = [len(each) for each in (a, b) if isinstance(each, (list, tuple))]
    return max(lengths) if lengths else None


def _shape_of_out(a: Any, b: Any, bound: Any, count: int | None) -> tuple[int, ...]:
    for name, array in (("a", a), ("b", b)):
        if not hasattr(array, "shape"):
            raise InvalidArgument(f"{name}, a {type(array).__name__}, has no attribute shape: pass out=")
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3):
        raise InvalidArgument(f"a and b must have rank 2 or 3, got shapes {(*a.shape,)} and {(*b.shape,)}")
    m, n = int(a.shape[-2]), int(b.shape[-1])
    batches = [int(x.shape[0]) for x in (a, b) if len(x.shape) == 3] + ([] if count is None else [count])
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
