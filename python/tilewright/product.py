"""Products of arrays in one call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewright._tilewright import DType, Epilogue, GemmArguments, Prepared, _DeviceArray, _stream_handle, dtype, prepare
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument

_NUMPY_NAMES = {
    DType.f64: "float64",
    DType.f32: "float32",
    DType.f16: "float16",
    DType.bf16: "bfloat16",
    DType.s32: "int32",
    DType.s8: "int8",
    DType.u8: "uint8",
    DType.e4m3: "float8_e4m3fn",
    DType.e5m2: "float8_e5m2",
}


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
    **operands: Any,
) -> Any:
    """epilogue(a @ b), or without one alpha * a @ b + beta * c, by the best kernel there is.

    a, b              arrays of torch, NumPy, CuPy or JAX, (m, k) and (k, n), or batches of them: (batch, m, k) and
                      (batch, k, n), one of which may be a single matrix; not the tracers of jax.jit
    epilogue          a Python function, which is traced, a text or an Epilogue; `operands` are what its names stand for
    c, alpha, beta    for epilogues that have them, as named ones do; beta is 1 where there is a `c`, unless given
    out               where to; an array like `a` unless given
    out_dtype         of that array: a's type, int32 for products of 8-bit integers, bfloat16 for those of 8-bit floats
    accumulator_type  float32, or what the operands' type implies
    math              how float32 is multiplied: "multiply_add" (exactly), "multiply_add_tf32", ...
    stream            of the GPU; the framework's current one unless given. A new array is allocated there, too.

    Returns `out`. On a GPU the work is enqueued; arrays of the host are complete on return.
    Raises InvalidArgument with the number that is wrong.
    """
    bound = _bound(epilogue, operands)
    is_given = out is not None
    if not is_given:
        kind = dtype(out_dtype) if out_dtype is not None else _out_type(a)
        out = _empty_like(a, _shape_of_out(a, b, bound), kind, stream)
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
    prepared: Prepared = prepare(arguments)
    prepared.run(stream=stream)
    return out if is_given else _as_framework_of(a, out)


def _bound(epilogue: Any, operands: dict[str, Any]) -> Any:
    """What GemmArguments takes."""
    if epilogue is None or isinstance(epilogue, EpilogueArguments):
        if operands:
            raise InvalidArgument(f"matmul() has no argument {', '.join(sorted(operands))}")
        return epilogue
    if isinstance(epilogue, Epilogue) and not operands:
        return epilogue
    return EpilogueArguments(epilogue, **operands)


def _shape_of_out(a: Any, b: Any, bound: Any) -> tuple[int, ...]:
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3):
        raise InvalidArgument(f"a and b are matrices or batches of them, got shapes {(*a.shape,)} and {(*b.shape,)}")
    m, n = int(a.shape[-2]), int(b.shape[-1])
    batches = [int(x.shape[0]) for x in (a, b) if len(x.shape) == 3]
    batch = max(batches) if batches else None
    graph = bound if isinstance(bound, Epilogue) else None
    if isinstance(bound, EpilogueArguments):
        graph = bound._bind(batch, m, n, _compute_type(a), _out_type(a))[0]
    columns = n // 2 if graph is not None and graph.pairs_columns else n
    return (m, columns) if batch is None else (batch, m, columns)


def _compute_type(a: Any) -> DType:
    return DType.f64 if dtype(a.dtype) == DType.f64 else DType.f32


def _out_type(a: Any) -> DType:
    kind = dtype(a.dtype)
    if kind in (DType.s8, DType.u8):
        return DType.s32
    return DType.bf16 if kind in (DType.e4m3, DType.e5m2) else kind


def _empty_like(a: Any, shape: tuple[int, ...], kind: DType, stream: Any) -> Any:
    """An array that can be written, of a's framework where that has such, on a's device; in the order of `stream`."""
    name = _NUMPY_NAMES[kind]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        if stream is None or not a.is_cuda:
            return torch.empty(shape, dtype=getattr(torch, name), device=a.device)
        with torch.cuda.stream(_torch_stream(torch, stream, a.device)):
            return torch.empty(shape, dtype=getattr(torch, name), device=a.device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(a, cupy.ndarray):
        with a.device:
            if stream is None:
                return cupy.empty(shape, dtype=name)
            with cupy.cuda.ExternalStream(_stream_handle(stream)):
                return cupy.empty(shape, dtype=name)
    numpy = sys.modules.get("numpy")
    if (numpy is not None and isinstance(a, numpy.ndarray)) or (_is_of_jax(a) and _jax_gpu(a) is None):
        import numpy

        if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            import ml_dtypes  # NumPy has no such types of its own

            return numpy.empty(shape, dtype=getattr(ml_dtypes, name))
        return numpy.empty(shape, dtype=name)
    if _is_of_jax(a):
        return _DeviceArray(shape, kind, _jax_gpu(a), stream)
    raise InvalidArgument(f"no array can be made like one of {type(a).__module__}.{type(a).__name__}: pass out=")


def _torch_stream(torch: Any, stream: Any, device: Any) -> Any:
    if isinstance(stream, torch.cuda.Stream):
        return stream
    handle = _stream_handle(stream)
    return torch.cuda.ExternalStream(handle, device) if handle else torch.cuda.default_stream(device)


def _is_of_jax(a: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(a, jax.Array)


def _jax_gpu(a: Any) -> int | None:
    """The ordinal of the GPU that it lies on; None for memory of the host."""
    cpu = 1  # DLPack's number
    if not hasattr(a, "__dlpack_device__"):
        raise InvalidArgument("tracers of jax.jit have no memory: multiply outside of it")
    kind, ordinal = a.__dlpack_device__()
    return None if kind == cpu else int(ordinal)


def _as_framework_of(a: Any, made: Any) -> Any:
    """What _empty_like() made, when it is written."""
    if not _is_of_jax(a):
        return made
    import jax

    return jax.dlpack.from_dlpack(made) if isinstance(made, _DeviceArray) else jax.numpy.asarray(made)
