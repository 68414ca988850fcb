"""Allocates arrays for results, in the framework of the operands."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from tilewright._tilewright import DType, _DeviceArray, _shape_of, _stream_handle
from tilewright.errors import InvalidArgument, OutOfMemory

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


def numpy_name(kind: DType) -> str:
    """The name that NumPy and PyTorch have for an element type. Raises InvalidArgument if arrays cannot have it."""
    if kind not in _NUMPY_NAMES:
        known = ", ".join(each.name for each in _NUMPY_NAMES)
        raise InvalidArgument(f"out_dtype is {kind.name}, which no array has: it must be one of {known}")
    return _NUMPY_NAMES[kind]


def empty_like(a: Any, shape: tuple[int, ...], kind: DType, stream: Any) -> Any:
    """A writable array on the device of `a`, allocated in stream order on `stream`.

    It is an array of the same framework as `a` after as_framework_of().
    """
    name = numpy_name(kind)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        if stream is None or not a.is_cuda:
            return torch.empty(shape, dtype=getattr(torch, name), device=a.device)
        with on_stream(a, stream):
            return torch.empty(shape, dtype=getattr(torch, name), device=a.device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(a, cupy.ndarray):
        with on_stream(a, stream):
            return cupy.empty(shape, dtype=name)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(a, numpy.ndarray):
        return _numpy_empty(shape, name)
    if is_of_jax(a):
        ordinal = _jax_gpu(a)
        return _numpy_empty(shape, name) if ordinal is None else _DeviceArray(shape, kind, ordinal, stream)
    raise InvalidArgument(f"cannot allocate an array like a {type(a).__module__}.{type(a).__name__}: pass out=")


@contextlib.contextmanager
def on_stream(a: Any, stream: Any) -> Iterator[None]:
    """Makes `stream`, unless it is None, the current stream of PyTorch or CuPy, whose array `a` is, on the device of
    `a`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        if stream is None or not a.is_cuda:
            yield
            return
        with torch.cuda.stream(_torch_stream(torch, stream, a.device)):
            yield
        return
    cupy = sys.modules["cupy"]
    with a.device:
        if stream is None:
            yield
            return
        with _cupy_stream(cupy, stream):
            yield


def shaped(a: Any) -> Any:
    """`a` if it has a shape and a dtype. An object that has only __array_interface__ is replaced by a NumPy array of
    the same shape and type, which takes up no memory."""
    if (hasattr(a, "shape") and hasattr(a, "dtype")) or not hasattr(a, "__array_interface__"):
        return a
    import numpy

    read = _shape_of(a)
    return numpy.broadcast_to(numpy.zeros((), numpy_name(read.dtype)), tuple(read.shape))


def as_framework_of(a: Any, made: Any) -> Any:
    """Converts an array of empty_like(), after the result was written to it, to an array of the same framework as `a`.

    Only JAX needs this: its arrays cannot be written, so JAX takes over another array.
    """
    if not is_of_jax(a):
        return made
    import jax

    if isinstance(made, _DeviceArray):
        return jax.dlpack.from_dlpack(made)
    return jax.device_put(made, next(iter(a.devices())))


def _numpy_empty(shape: tuple[int, ...], name: str) -> Any:
    import numpy

    kind: Any = name
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes  # defines these types for NumPy

        kind = getattr(ml_dtypes, name)
    try:
        return numpy.empty(shape, dtype=kind)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an address can count
        raise OutOfMemory(f"the result, {shape} of {name}, does not fit into memory: {error}") from None


def _torch_stream(torch: Any, stream: Any, device: Any) -> Any:
    if isinstance(stream, torch.cuda.Stream):
        return stream
    handle = _stream_handle(stream)
    is_default = handle in (0, 1)  # CU_STREAM_LEGACY is 1
    return torch.cuda.default_stream(device) if is_default else torch.cuda.ExternalStream(handle, device)


class _External:
    """A stream handle in the form that CuPy accepts for streams of other libraries."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def _cupy_stream(cupy: Any, stream: Any) -> Any:
    if isinstance(stream, cupy.cuda.Stream):
        return stream
    handle = _stream_handle(stream)
    is_old = not hasattr(cupy.cuda.Stream, "from_external")  # before CuPy 14
    return cupy.cuda.ExternalStream(handle) if is_old else cupy.cuda.Stream.from_external(_External(handle))


def is_of_jax(a: Any) -> bool:
    """Whether `a` is an array of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(a, jax.Array)


def has_tracers(*values: Any) -> bool:
    """Whether one of the values stands for an array in a program that JAX traces."""
    jax = sys.modules.get("jax")
    return jax is not None and hasattr(jax, "core") and any(isinstance(value, jax.core.Tracer) for value in values)


def is_on_host(a: Any) -> bool:
    """Whether an array is known to be in host memory."""
    cpu = 1  # kDLCPU
    return hasattr(a, "__dlpack_device__") and not has_tracers(a) and bool(a.__dlpack_device__()[0] == cpu)


def _jax_gpu(a: Any) -> int | None:
    """The ordinal of the GPU that holds the array; None if it is in host memory."""
    cpu = 1  # kDLCPU
    if not hasattr(a, "__dlpack_device__"):
        raise InvalidArgument("tracers of jax.jit have no memory: only matmul and the functions of tilewright.jax take them")
    kind, ordinal = a.__dlpack_device__()
    return None if kind == cpu else int(ordinal)
