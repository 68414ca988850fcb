"""The functions of cutlass_api.utils."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from tilewright._tilewright import DType, Status, device_target, dtype
from tilewright.errors import DriverError, InvalidArgument

_LETTERS: dict[tuple[int, ...], str] = {(0, 0, 1): "t", (0, 1, 0): "n"}


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    """The least multiple of b that is not less than a."""
    return ceil_div(a, b) * b


def is_numpy_available() -> bool:
    """Whether NumPy can be imported."""
    return importlib.util.find_spec("numpy") is not None


def is_torch_available() -> bool:
    """Whether PyTorch can be imported."""
    return importlib.util.find_spec("torch") is not None


def is_numpy_tensor(value: object) -> bool:
    """Whether the object is an array of NumPy. Does not import NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_torch_tensor(value: object) -> bool:
    """Whether the object is a tensor of PyTorch. Does not import PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_torch_fake_tensor(value: object) -> bool:
    """Whether the object is a FakeTensor of PyTorch, which has no memory."""
    return is_torch_tensor(value) and type(value).__name__ == "FakeTensor"


def check_cuda_errors(result: Sequence[Any]) -> Any:
    """The values of a result of cuda.bindings, which is (error, value, ...). Raises DriverError for an error."""
    error, *values = result
    code = int(getattr(error, "value", error))
    if code != 0:
        raise DriverError(f"CUDA error: {getattr(error, 'name', code)}", code)
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def device_cc(device: int | None = None) -> int:
    """The compute capability of a GPU, such as 90; without an ordinal, that of the device in use."""
    target = device_target("" if device is None else f"cuda:{device}")
    return int("".join(each for each in target if each.isdigit()))


def is_device_cc_supported(supported: Iterable[int]) -> Status:
    """Whether the compute capability of the device in use is one of `supported`."""
    known, own = sorted(supported), device_cc()
    if own in known:
        return Status.success()
    return Status.fail(f"Compute capability {own} is not in supported set {known}.")


def to_cutlass_type(type: Any) -> DType:
    """The DType of a type of any framework, or of its name."""
    return dtype(type)


cutlass_type_from_torch_type = to_cutlass_type


def to_cuda_stream(stream: Any, skip_if_ffi: bool = True) -> Any:
    """The stream as kernels take it. Streams of PyTorch, CuPy and cuda.bindings are taken as they are; None is the
    current stream of the arrays' framework."""
    return stream


def leading_dim(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The mode whose stride is 1; of several such modes, the last one with more than one element."""
    modes = [mode for mode, step in enumerate(stride) if step == 1]
    if not modes:
        raise InvalidArgument(f"no entry of stride is 1, got {(*stride,)}")
    return max(modes, key=lambda mode: (shape[mode] > 1, mode))


def get_stride_order(stride: Sequence[int]) -> tuple[int, ...]:
    """The modes in the order of their strides, the least one first."""
    return tuple(sorted(range(len(stride)), key=lambda mode: stride[mode]))


def get_stride_rank(stride: Sequence[int]) -> tuple[int, ...]:
    """The place of each mode in get_stride_order()."""
    order = get_stride_order(stride)
    return tuple(order.index(mode) for mode in range(len(stride)))


def strides_to_layout_string(*strides: Sequence[int]) -> str:
    """A letter for each operand: "t" for row-major strides, (0, 0, 1), and "n" for column-major ones, (0, 1, 0)."""
    letters = []
    for stride in strides:
        letter = _LETTERS.get(tuple(stride))
        if letter is None:
            raise InvalidArgument(f"strides must be (0, 0, 1) or (0, 1, 0), got {stride!r}")
        letters.append(letter)
    return "".join(letters)


def tuple_to_string(extents: Iterable[int]) -> str:
    """ "64x64x32" for (64, 64, 32)."""
    return "x".join(map(str, extents))


__all__ = [
    "ceil_div",
    "check_cuda_errors",
    "cutlass_type_from_torch_type",
    "device_cc",
    "get_stride_order",
    "get_stride_rank",
    "is_device_cc_supported",
    "is_numpy_available",
    "is_numpy_tensor",
    "is_torch_available",
    "is_torch_fake_tensor",
    "is_torch_tensor",
    "leading_dim",
    "round_up",
    "strides_to_layout_string",
    "to_cuda_stream",
    "to_cutlass_type",
    "tuple_to_string",
]
