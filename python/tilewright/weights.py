"""tilewright.pack_weights and tilewright.weight_matmul: linear layers with weights of 4 or 8 bits."""

from __future__ import annotations

import sys
from typing import Any

from tilewright._tilewright import (
    OperationArguments,
    _packed_chunk,
    _weight_gemm_operation,
    dtype as _dtype,
    run,
)
from tilewright import gradients
from tilewright.call_arguments import check_out_dtype, type_of_result
from tilewright.errors import InvalidArgument
from tilewright.results import as_framework_of, empty_like, is_of_jax, shaped

_STORED = {"s4": "u8", "s8": "s8", "e4m3": "e4m3"}  # the element type of the packed array
_RANGES = {"s4": (-8, 7), "s8": (-128, 127)}
_ALIGNMENT = 16  # in bytes, of the rows of x and of the scales


class PackedWeights:
    """The weights of a linear layer in the packed format, with their scales. pack_weights() makes it.

    dtype     "s4", "s8" or "e4m3"
    shape     (outputs, inputs)
    group     the number of inputs that have a scale in common; 0: each output has one scale
    data      the packed weights, a vector of uint8 (two s4 in each), int8 or float8_e4m3fn
    scales    the array of shape (groups, outputs)
    """

    def __init__(self, data: Any, scales: Any, dtype: str, shape: tuple[int, int], group: int) -> None:
        if dtype not in _STORED:
            raise InvalidArgument(f"dtype must be 's4', 's8' or 'e4m3', got {dtype!r:.80}")
        self.data, self.scales, self.dtype, self.shape, self.group = data, scales, dtype, shape, group

    def arguments(self, x: Any, out: Any) -> OperationArguments:
        """The problem of weight_matmul() for matrices x and out: for find_kernels, explain, prepare, tune and run."""
        return OperationArguments(
            _weight_gemm_operation(), weights=self.data, scales=self.scales, x=x, out=out, group=float(self.group)
        )

    def __repr__(self) -> str:
        groups = f"groups of {self.group}" if self.group else "a scale for each output"
        return f"<PackedWeights {self.shape[0]} x {self.shape[1]} {self.dtype}, {groups}>"


def pack_weights(weights: Any, scales: Any, dtype: str | None = None, *, group: int | None = None) -> PackedWeights:
    """Packs quantised weights for weight_matmul().

    weights   an array of shape (outputs, inputs) of PyTorch, NumPy, CuPy or JAX: integers, or float8_e4m3fn
    scales    an array of the same framework, of float16, bfloat16 or float32: (groups, outputs), where weight [o, i] stands
              for weights[o, i] * scales[i // group, o]; or (outputs,), one scale for each output
    dtype     "s4" (from -8 to 7) or "s8" for integers; "e4m3", the default, for float8_e4m3fn
    group     the number of inputs that have a scale in common: 16, 32, 64 or a multiple of 128. It must be given if the
              number of groups does not divide that of inputs

    The packed weights are on the device of `weights`. Raises InvalidArgument with the number that is wrong.
    """
    given = shaped(weights)
    _check_array(given, "weights")
    _check_array(shaped(scales), "scales")
    if len(given.shape) != 2:
        raise InvalidArgument(f"weights must have the shape (outputs, inputs), got {_shape_text(given)}")
    outputs, inputs = (int(extent) for extent in given.shape)
    if outputs < 1 or inputs < 1:
        raise InvalidArgument(f"weights must have at least 1 output and 1 input, got {outputs} x {inputs}")
    kind = _kind_of(given, dtype)
    if _name_of_type(shaped(scales)) not in ("float16", "bfloat16", "float32"):
        raise InvalidArgument(f"scales must be float16, bfloat16 or float32, got {_name_of_type(shaped(scales))}")
    size = _group_of(shaped(scales), outputs, inputs, group)
    data = _pack(_host_of_jax(given), kind)
    aligned = _aligned_rows(_host_of_jax(shaped(scales)), outputs)
    return PackedWeights(
        as_framework_of(given, data), as_framework_of(shaped(scales), aligned), kind, (outputs, inputs), size
    )


def weight_matmul(x: Any, weights: PackedWeights, *, out: Any = None, out_dtype: Any = None, stream: Any = None) -> Any:
    """Returns x @ W.T, where W are the packed weights times their scales.

    x          an array of shape (..., inputs) of float16 or bfloat16, whose rows begin at multiples of 16 bytes
    weights    what pack_weights() returned, on the device of x
    out        the array for the result, of shape (..., outputs), which is also returned; by default a new array of x's
               framework
    out_dtype  float16, bfloat16 or float32, the element type of the new array; by default that of x
    stream     as in matmul()

    The products are summed in float32. Scales multiply sums of a group, or weights; the weight is then rounded to x's
    type. On a GPU the work is enqueued. Host arrays are complete on return.
    Raises InvalidArgument with the number that is wrong, and for a device other than sm_90a.
    """
    if not isinstance(weights, PackedWeights):
        raise TypeError(f"weights must be PackedWeights, which pack_weights() makes, got a {type(weights).__name__}")
    gradients.refuse("weight_matmul()", {"x": x, "scales": weights.scales, "out": out})
    given = shaped(x)
    _check_array(given, "x")
    shape = tuple(int(extent) for extent in given.shape)
    outputs, inputs = weights.shape
    if not shape or shape[-1] != inputs:
        raise InvalidArgument(f"x must have the shape (..., {inputs}), the inputs of the weights, got {shape}")
    is_given = out is not None
    of_out = (*shape[:-1], outputs)
    check_out_dtype(out, out_dtype)
    if not is_given:
        out = empty_like(given, of_out, _dtype(given) if out_dtype is None else type_of_result(out_dtype, given), stream)
    elif tuple(int(extent) for extent in shaped(out).shape) != of_out:
        raise InvalidArgument(f"out must have the shape {of_out}, got {_shape_text(shaped(out))}")
    if 0 not in of_out:
        rows = _matrix(x, shape, "x")
        _check_rows(rows)
        run(weights.arguments(rows, _matrix(out, of_out, "out")), stream)
    return out if is_given else as_framework_of(given, out)


def _check_array(value: Any, name: str) -> None:
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        raise InvalidArgument(f"{name} must be an array of PyTorch, NumPy, CuPy or JAX, got a {type(value).__name__}")


def _check_rows(x: Any) -> None:
    """Refuses a matrix whose rows the kernels cannot load: TMA reads them from multiples of 16 bytes."""
    if not hasattr(x, "strides") and not callable(getattr(x, "stride", None)):
        return  # of JAX: rows are packed
    is_torch = callable(getattr(x, "stride", None))
    steps, width = (tuple(x.stride()), x.element_size()) if is_torch else (tuple(x.strides), 1)
    row, column = (int(step) * int(width) for step in steps)
    size = int(x.element_size() if is_torch else x.itemsize)
    if x.shape[1] > 1 and column != size:
        packed = "x.contiguous()" if is_torch else "numpy.ascontiguousarray(x)"
        raise InvalidArgument(f"the rows of x must be contiguous, got strides of {row} and {column} bytes; pass {packed}")
    if x.shape[0] > 1 and row % _ALIGNMENT != 0:
        raise InvalidArgument(
            f"the rows of x must begin at multiples of {_ALIGNMENT} bytes, but they are {row} bytes apart: pass rows of "
            f"an array whose width is a multiple of {_ALIGNMENT // size}"
        )


def _shape_text(array: Any) -> str:
    return str(tuple(int(extent) for extent in getattr(array, "shape", ())))


def _matrix(array: Any, shape: tuple[int, ...], name: str) -> Any:
    """A view of an array of several batch modes as a matrix."""
    if len(shape) == 2:
        return array
    if len(shape) == 1:
        return array[None, :]
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    torch = sys.modules.get("torch")
    if name == "out":  # reshape() might copy it, and the result would be lost
        if torch is not None and isinstance(array, torch.Tensor):
            return array.view(rows, shape[-1])
        if not array.flags.c_contiguous:
            raise InvalidArgument(f"out of rank {len(shape)} must be contiguous")
    return array.reshape((rows, shape[-1]))


def _name_of_type(array: Any) -> str:
    """ "float16" for torch.float16 and numpy.float16."""
    return str(getattr(array, "dtype", type(array).__name__)).rpartition(".")[2]


def _kind_of(weights: Any, given: str | None) -> str:
    """ "s4", "s8" or "e4m3"."""
    name = _name_of_type(weights)
    is_integer = name.startswith(("int", "uint"))
    if not is_integer and name != "float8_e4m3fn":
        raise InvalidArgument(f"weights must be integers or float8_e4m3fn, got {name}: quantise them first")
    if given is None and is_integer:
        raise InvalidArgument(f"dtype must be 's4' or 's8' for weights of {name}")
    kind = "e4m3" if given is None else given
    if kind not in _STORED:
        raise InvalidArgument(f"dtype must be 's4', 's8' or 'e4m3', got {given!r:.80}")
    if is_integer == (kind == "e4m3"):
        raise InvalidArgument(f"weights of {name} cannot be packed as {kind}")
    return kind


def _group_of(scales: Any, outputs: int, inputs: int, given: int | None) -> int:
    """The number of inputs with one scale; 0: one for each output."""
    shape = tuple(int(extent) for extent in getattr(scales, "shape", ()))
    if len(shape) not in (1, 2) or shape[-1] != outputs or shape[0] < 1:
        raise InvalidArgument(
            f"scales must have the shape (groups, {outputs}) or ({outputs},), where {outputs} is the number of outputs, "
            f"got {shape}"
        )
    if len(shape) == 1:
        if given:
            raise InvalidArgument(f"scales of shape {shape} are one for each output, but group is {given}")
        return 0
    groups = shape[0]
    if given is None:
        if inputs % groups != 0:
            raise InvalidArgument(f"{groups} groups do not divide {inputs} inputs: pass group=")
        given = inputs // groups
    if not isinstance(given, int) or (given not in (16, 32, 64) and (given < 1 or given % 128 != 0)):
        raise InvalidArgument(f"group must be 16, 32, 64 or a multiple of 128, got {given!r:.80}")
    if groups != -(-inputs // given):
        raise InvalidArgument(f"{inputs} inputs in groups of {given} have {-(-inputs // given)} groups, got {groups}")
    return given


def _host_of_jax(array: Any) -> Any:
    import numpy

    return numpy.asarray(array) if is_of_jax(array) else array


def _is_of_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _zeros(like: Any, shape: tuple[int, ...], name: str | None = None) -> Any:
    """Zeros on the device of `like`, of the type `name`; None: that of `like`."""
    if _is_of_torch(like):
        torch = sys.modules["torch"]
        return torch.zeros(shape, dtype=getattr(torch, name) if name else like.dtype, device=like.device)
    module: Any = sys.modules[type(like).__module__.partition(".")[0]]
    return module.zeros(shape, dtype=name or like.dtype)


def _as(array: Any, name: str) -> Any:
    """The values of an array in the type `name`."""
    return array.to(getattr(sys.modules["torch"], name)) if _is_of_torch(array) else array.astype(name)


def _bits_as(array: Any, type_of_torch: str, type_of_numpy: Any) -> Any:
    """The bits of an array of 8-bit elements in another type."""
    if _is_of_torch(array):
        return array.view(getattr(sys.modules["torch"], type_of_torch))
    return array.view(type_of_numpy)


def _check_values(weights: Any, kind: str) -> None:
    least, most = _RANGES.get(kind, (0, 0))
    wrong = (weights & 127) == 127 if kind == "e4m3" else (weights < least) | (weights > most)
    if not bool(wrong.any()):
        return
    row, column = divmod(int(_as(wrong, "uint8").reshape(-1).argmax()), int(weights.shape[1]))
    if kind == "e4m3":
        raise InvalidArgument(f"weights[{row},{column}] is NaN, which the conversion does not keep")
    raise InvalidArgument(
        f"weights of {kind} must be from {least} to {most}, but weights[{row},{column}] is {int(weights[row, column])}"
    )


def _pack(weights: Any, kind: str) -> Any:
    """A vector with the elements in the order of the packed layout, in which every part of a row and of a column number
    has a stride: the array is split into these parts, which are sorted by their strides."""
    type_of_e4m3 = weights.dtype
    if kind == "e4m3":
        weights = _bits_as(weights, "uint8", "uint8")
    _check_values(weights, kind)
    of_rows, of_columns = _packed_chunk(kind)
    rows = columns = 1
    for extent, _ in of_rows:
        rows *= extent
    for extent, _ in of_columns:
        columns *= extent
    outputs, inputs = (int(extent) for extent in weights.shape)
    chunks_m, chunks_k = -(-outputs // rows), -(-inputs // columns)
    bits = _as(weights & 15, "uint8") if kind == "s4" else weights if kind == "e4m3" else _as(weights, "int8")
    if (outputs, inputs) != (chunks_m * rows, chunks_k * columns):
        padded = _zeros(bits, (chunks_m * rows, chunks_k * columns))
        padded[:outputs, :inputs] = bits
        bits = padded
    size = rows * columns
    # The slowest part comes first, as in the shape of a row-major array.
    parts = [(chunks_m, chunks_k * size), *reversed(of_rows), (chunks_k, size), *reversed(of_columns)]
    order = sorted(range(len(parts)), key=lambda part: -parts[part][1])
    split = bits.reshape([extent for extent, _ in parts])
    flat = (split.permute(order) if _is_of_torch(split) else split.transpose(order)).reshape(-1)
    if kind == "s4":
        flat = flat[0::2] | (flat[1::2] << 4)
    elif kind == "e4m3":
        flat = _bits_as(flat, "float8_e4m3fn", type_of_e4m3)
    return flat


def _aligned_rows(scales: Any, outputs: int) -> Any:
    """Scales as a matrix whose rows are at multiples of 16 bytes: a view of a larger one where that is needed."""
    matrix = scales if len(scales.shape) == 2 else scales.reshape((1, -1))
    width = int(matrix.itemsize) if hasattr(matrix, "itemsize") else int(matrix.element_size())
    columns = -(-outputs * width // _ALIGNMENT) * _ALIGNMENT // width
    padded = _zeros(matrix, (int(matrix.shape[0]), columns))
    padded[:, :outputs] = matrix
    return padded[:, :outputs]
