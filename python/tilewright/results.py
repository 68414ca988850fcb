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
    if numpy is not None and isinstance(a, (numpy.ndarray, numpy.generic)):
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
    """`a` if it has a shape and a dtype. An object that has only __array_interface__, __cuda_array_interface__ or
    __dlpack__ is replaced by an array of the same shape and type, which takes up no memory: of NumPy in host memory, else
    of PyTorch or CuPy, whichever the program has imported. Without them, an object in GPU memory is returned as it is."""
    interfaces = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    if (hasattr(a, "shape") and hasattr(a, "dtype")) or not any(hasattr(a, each) for each in interfaces):
        return a
    read = _shape_of(a)
    name, shape = numpy_name(read.dtype), tuple(read.shape)
    ordinal = _gpu_of(a)
    if ordinal is None:
        return _numpy_shape(name, shape)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None:
        return torch.empty((), dtype=getattr(torch, name), device=f"cuda:{ordinal}").expand(shape)
    if cupy is not None:
        with cupy.cuda.Device(ordinal):
            return cupy.broadcast_to(cupy.empty((), name), shape)
    return a


def with_shape(a: Any) -> Any:
    """`a`, or a NumPy view of an object in host memory that has an interface of arrays but no attribute `shape`."""
    if hasattr(a, "shape") or not is_on_host(a):
        return a
    _shape_of(a)  # checks the interface, by which NumPy may crash: __dlpack__ if there is one, else __array_interface__
    import numpy

    try:
        return numpy.from_dlpack(a) if hasattr(a, "__dlpack__") else numpy.asarray(a)
    except (AttributeError, BufferError, RuntimeError, TypeError):
        return a  # NumPy needs __dlpack_device__, and does not take every element type, nor read-only memory


def _numpy_shape(name: str, shape: tuple[int, ...]) -> Any:
    """A NumPy array of this shape with one element in memory."""
    import numpy

    return numpy.broadcast_to(_numpy_empty((), name), shape)


def _gpu_of(a: Any) -> int | None:
    """The ordinal of the GPU that holds an array that has no attributes but those of an interface; None for host memory,
    and for an object with __dlpack__ that does not say its device."""
    if hasattr(a, "__dlpack_device__"):
        kind, ordinal = a.__dlpack_device__()
        return int(ordinal) if kind == 2 else None  # kDLCUDA
    return 0 if hasattr(a, "__cuda_array_interface__") else None


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
    if hasattr(a, "__array_interface__"):
        return True
    cpu = 1  # kDLCPU
    has_device = hasattr(a, "__dlpack__") and hasattr(a, "__dlpack_device__") and not has_tracers(a)
    return has_device and bool(a.__dlpack_device__()[0] == cpu)


def _jax_gpu(a: Any) -> int | None:
    """The ordinal of the GPU that holds the array; None if it is in host memory."""
    cpu = 1  # kDLCPU
    if not hasattr(a, "__dlpack_device__"):
        raise InvalidArgument("tracers of jax.jit have no memory: only matmul and the functions of tilewright.jax take them")
    kind, ordinal = a.__dlpack_device__()
    return None if kind == cpu else int(ordinal)


def row_or_column_major(x: Any) -> Any:
    """`x` if it is row-major or column-major, as kernels require; else a row-major copy."""
    (rows, columns), (row_stride, column_stride) = x.shape[-2:], x.stride()[-2:]
    is_row_major = column_stride == 1 and row_stride >= columns
    is_column_major = row_stride == 1 and column_stride >= rows
    return x if is_row_major or is_column_major or x.numel() == 0 else x.contiguous()
