"""Channels-last strides of tensors with four modes: convolutions read pixels whose channels are contiguous."""

from __future__ import annotations

import sys
from typing import Any, Literal

from tilewright._tilewright import DType
from tilewright.errors import InvalidArgument
from tilewright.results import empty_like, is_of_jax, on_stream, with_shape

Layout = Literal["nchw", "nhwc"]
CHANNELS_LAST = (0, 2, 3, 1)  # the modes of NCHW in the order of NHWC
CHANNELS_SECOND = (0, 3, 1, 2)


def check_layout(layout: str) -> None:
    if layout not in ("nchw", "nhwc"):
        raise InvalidArgument(f'layout must be "nchw" or "nhwc", got {layout!r}')


def as_nhwc(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The four extents of a shape in the order n, h, w, c."""
    return tuple(shape[mode] for mode in CHANNELS_LAST) if layout == "nchw" else tuple(shape)


def in_layout(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """The inverse of as_nhwc()."""
    return tuple(shape[mode] for mode in CHANNELS_SECOND) if layout == "nchw" else tuple(shape)


def is_channels_last(array: Any, layout: str, *, is_packed: bool) -> bool:
    """Whether the channels are contiguous and, if `is_packed`, the pixels follow each other without gaps.

    True for objects whose strides are not known here.
    """
    if is_of_jax(array):
        return layout == "nhwc"
    strides = _strides(array)
    if strides is None or len(strides) != 4:
        return True
    extents, strides = as_nhwc(tuple(int(extent) for extent in array.shape), layout), as_nhwc(strides, layout)
    if extents[3] > 1 and strides[3] != 1:
        return False
    if not is_packed:
        return all(stride >= 1 for extent, stride in zip(extents, strides, strict=True) if extent > 1)
    expected = 1
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def channels_last(array: Any, layout: str, stream: Any, *, is_packed: bool) -> Any:
    """`array`, or a copy of the same shape with channels-last strides, which is made in the order of `stream`."""
    if layout == "nhwc":
        return array
    array = with_shape(array)
    if is_channels_last(array, layout, is_packed=is_packed):
        return array
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        with on_stream(array, stream):
            return array.detach().clone(memory_format=torch.channels_last)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        with on_stream(array, stream):
            return cupy.ascontiguousarray(array.transpose(CHANNELS_LAST)).transpose(CHANNELS_SECOND)
    _refuse_jax(array)
    import numpy

    return numpy.ascontiguousarray(array.transpose(CHANNELS_LAST)).transpose(CHANNELS_SECOND)


def _refuse_jax(array: Any) -> None:
    if is_of_jax(array):
        raise InvalidArgument(
            'arrays of JAX have no channels-last strides: pass layout="nhwc", and arrays of that order'
        )


def empty_images(like: Any, shape: tuple[int, ...], kind: DType, layout: str, stream: Any) -> Any:
    """A writable array of `shape` with channels-last strides, of the same framework as `like`."""
    if layout != "nhwc":
        _refuse_jax(like)
    made = empty_like(like, as_nhwc(shape, layout), kind, stream)
    if layout == "nhwc":
        return made
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(made, torch.Tensor):
        return made.permute(CHANNELS_SECOND)
    return made.transpose(CHANNELS_SECOND)


def _strides(array: Any) -> tuple[int, ...] | None:
    """The strides in elements; None if they are not known."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return tuple(int(stride) for stride in array.stride())
    for library in ("cupy", "numpy"):
        module = sys.modules.get(library)
        if module is not None and isinstance(array, module.ndarray):
            return tuple(stride // array.itemsize for stride in array.strides)
    return None
