"""The target of custom calls by which XLA runs products of Tilewright in programs of jax.jit.

XLA calls a C function with a frame that describes the buffers of the call, its attributes and, on a GPU, its stream
(xla/ffi/api/c_api.h; the layouts below are those of its version 0). The function is written in Python: it takes the
GIL, describes the buffers as arrays in place, and calls Tilewright. On a GPU that only enqueues the work on
XLA's stream.
"""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

import jax

import tilewright
from tilewright._tilewright import DType, GroupedGemmArguments

TARGET = "tilewright_matmul"

_EXTENSION_METADATA = 1
_STAGE_EXECUTE = 3
_CANCELLED, _INTERNAL = 1, 13
_TYPES = {
    2: DType.s8,
    4: DType.s32,
    6: DType.u8,
    10: DType.f16,
    11: DType.f32,
    12: DType.f64,
    16: DType.bf16,
    19: DType.e5m2,
    20: DType.e4m3,
}
_SIZES = {DType.f64: 8, DType.f32: 4, DType.s32: 4, DType.f16: 2, DType.bf16: 2}  # in bytes; of the others: 1
_Pointer, _Size, _Integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def _plain_structure(name: str, *fields: tuple[str, Any]) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": [*fields]})


def _structure(name: str, *fields: tuple[str, Any]) -> Any:
    return _plain_structure(name, ("struct_size", _Size), ("extensions", _Pointer), *fields)


_Extension = _plain_structure(
    "Extension", ("struct_size", _Size), ("type", _Integer), ("next", _Pointer), ("metadata", _Pointer)
)
_Version = _structure("Version", ("major", _Integer), ("minor", _Integer))
_Metadata = _plain_structure(
    "Metadata", ("struct_size", _Size), ("version", _Version), ("traits", ctypes.c_uint32)
)  # fmt: skip
_ErrorCreate = _structure("ErrorCreate", ("message", ctypes.c_char_p), ("code", _Integer))
_StreamGet = _structure("StreamGet", ("context", _Pointer), ("stream", _Pointer))
_OrdinalGet = _structure("OrdinalGet", ("context", _Pointer), ("ordinal", ctypes.c_int32))
_API_FUNCTIONS = (
    "error_create error_message error_destroy register stream_get type_register context_get state_set state_get "
    "memory_allocate memory_free schedule thread_count future_create future_available future_error run_id ordinal_get"
).split()
_Api = _structure(
    "Api", ("version", _Version), ("internal", _Pointer), *((function, _Pointer) for function in _API_FUNCTIONS)
)
_XlaBuffer = _structure(
    "XlaBuffer", ("dtype", _Integer), ("data", _Pointer), ("rank", ctypes.c_int64),
    ("dims", ctypes.POINTER(ctypes.c_int64)),
)  # fmt: skip
_Buffers = _structure(
    "Buffers", ("size", ctypes.c_int64), ("types", _Pointer),
    ("items", ctypes.POINTER(ctypes.POINTER(_XlaBuffer))),
)  # fmt: skip
_Bytes = _plain_structure("Bytes", ("data", _Pointer), ("size", _Size))
_Attributes = _structure(
    "Attributes", ("size", ctypes.c_int64), ("types", _Pointer),
    ("names", ctypes.POINTER(ctypes.POINTER(_Bytes))), ("items", ctypes.POINTER(ctypes.POINTER(_Bytes))),
)  # fmt: skip
_Frame = _structure(
    "Frame", ("api", ctypes.POINTER(_Api)), ("context", _Pointer), ("stage", _Integer), ("args", _Buffers),
    ("results", _Buffers), ("attributes", _Attributes),
)  # fmt: skip
_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))


class Buffer:
    """A row-major buffer of XLA, or its transpose, as an array for tilewright.matmul. `ordinal` is None on the host."""

    def __init__(self, buffer: Any, ordinal: int | None, batch_modes: int, is_transposed: bool = False) -> None:
        dims = [buffer.dims[mode] for mode in range(buffer.rank)]
        if batch_modes > 0:  # the modes of jax.vmap and of the batch become one
            dims = [math.prod(dims[:batch_modes]), *dims[batch_modes:]]
        self.dtype = _TYPES[buffer.dtype]
        size = _SIZES.get(self.dtype, 1)
        strides = [size * math.prod(dims[mode + 1 :]) for mode in range(len(dims))]
        if is_transposed:
            dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
        self.shape = tuple(dims)
        interface = {
            "shape": self.shape,
            "strides": tuple(strides),
            "typestr": f"<V{size}",
            "data": (buffer.data or 0, False),
            "version": 3,
        }
        if ordinal is None:
            self.__array_interface__ = interface
        else:
            self.__cuda_array_interface__ = interface
            self.device = ordinal


def _execute(frame: Any, is_on_gpu: bool) -> int | None:
    try:
        api = frame.contents.api.contents
        if _answers_metadata(frame.contents, api) or frame.contents.stage != _STAGE_EXECUTE:
            return None
        stream = _get(api.stream_get, _StreamGet, "stream", frame.contents.context) if is_on_gpu else None
        ordinal = _get(api.ordinal_get, _OrdinalGet, "ordinal", frame.contents.context) if is_on_gpu else None
        call = json.loads(_attribute(frame.contents.attributes, b"call"))
        multiply = _multiply_groups if "groups" in call else _multiply
        multiply(call, frame.contents, ordinal, stream or None)
    except BaseException as error:  # nothing may pass through XLA's frames; also not a Ctrl-C
        code = _INTERNAL if isinstance(error, Exception) else _CANCELLED
        return _make_error(frame.contents.api.contents, code, f"tilewright.matmul: {type(error).__name__}: {error}")
    return None


def _multiply(call: Any, frame: Any, ordinal: int | None, stream: int | None) -> None:
    given = [frame.args.items[index].contents for index in range(frame.args.size)]
    out = frame.results.items[0].contents
    extra = given[0].rank - call["rank"]  # modes that jax.vmap has added in front
    batch_modes = [buffer.rank - 2 if extra else 0 for buffer in (*given[:2], out)]
    a, b = (
        Buffer(buffer, ordinal, modes, is_transposed)
        for buffer, modes, is_transposed in zip(given[:2], batch_modes[:2], call["transposes"], strict=True)
    )
    rest = [Buffer(buffer, ordinal, 0) for buffer in given[2:]]
    c = rest.pop(0) if call["has_c"] else None
    tilewright.matmul(
        a,
        b,
        c=c,
        out=Buffer(out, ordinal, batch_modes[2]),
        stream=stream,
        **call["options"],
        **dict(zip(call["operands"], rest, strict=True)),
        **call["numbers"],
    )


def _multiply_groups(call: Any, frame: Any, ordinal: int | None, stream: int | None) -> None:
    a, b, ends = (frame.args.items[index].contents for index in range(3))
    turn_a, turn_b = call["transposes"]
    mode, out = call["groups"], Buffer(frame.results.items[0].contents, ordinal, 0)
    options: dict[str, Any] = {"mode": mode, "expected_sizes": call["expected_sizes"]}
    options["offsets" if mode.startswith("ragged") else "counts"] = Buffer(ends, ordinal, 0)
    operands = Buffer(a, ordinal, 0, turn_a), Buffer(b, ordinal, 0, turn_b)
    tilewright.prepare(GroupedGemmArguments(operands[0], operands[1], out, **options)).run(stream=stream)


def _attribute(attributes: Any, name: bytes) -> str:
    for index in range(attributes.size):
        key = attributes.names[index].contents
        if ctypes.string_at(key.data, key.size) == name:
            value = attributes.items[index].contents
            return ctypes.string_at(value.data, value.size).decode()
    raise LookupError(f"the custom call has no attribute {name.decode()}")


def _answers_metadata(frame: Any, api: Any) -> bool:
    """Whether XLA only asks for the version of the interface. The answer is XLA's own, whose structures are checked."""
    if not frame.extensions:
        return False
    extension = _Extension.from_address(frame.extensions)
    if extension.type != _EXTENSION_METADATA:
        return False
    if api.version.major != 0:
        raise NotImplementedError(f"version {api.version.major} of XLA's foreign functions is not supported, only 0")
    metadata = _Metadata.from_address(extension.metadata)
    metadata.version.major, metadata.version.minor, metadata.traits = api.version.major, api.version.minor, 0
    return True


def _get(function: int, structure: Any, field: str, context: int | None) -> int:
    arguments = structure(struct_size=ctypes.sizeof(structure), context=context)
    failed = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(ctypes.addressof(arguments))
    if failed:
        raise RuntimeError(f"XLA does not tell the {field} of the call")
    return int(getattr(arguments, field) or 0)


def _make_error(api: Any, code: int, message: str) -> int | None:
    arguments = _ErrorCreate(struct_size=ctypes.sizeof(_ErrorCreate), message=message.encode(), code=code)
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(api.error_create)
    made: int | None = create(ctypes.addressof(arguments))
    return made


_HANDLERS = {
    "cpu": _Handler(lambda frame: _execute(frame, is_on_gpu=False)),
    "CUDA": _Handler(lambda frame: _execute(frame, is_on_gpu=True)),
}


def register() -> None:
    """Registers the target, once for each platform."""
    for platform, handler in _HANDLERS.items():
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)
