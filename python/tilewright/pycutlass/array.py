"""Arrays as PyCUTLASS uses them: as memory, whose shape and strides follow from the problem and the layouts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

from tilewright._tilewright import DType, dtype
from tilewright.errors import InvalidArgument


@dataclass(frozen=True)
class Memory:
    """The memory of an array."""

    owner: Any  # keeps the memory alive
    address: int
    elements: int | None  # None: unknown, for a pointer
    kind: DType | None  # None: unknown, for a pointer
    device: int | None  # the ordinal of the GPU; None: host memory
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    is_read_only: bool = False

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are in memory in the order of their indices, without gaps."""
        return self.elements == 0 or self.lies_as(self.shape, packed(self.shape))

    def lies_as(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
        if self.shape != shape:
            return False
        return all(have == want or extent == 1 for extent, have, want in zip(shape, self.strides, strides, strict=True))


class View:
    """A view of an array's memory with another shape and other strides, with an array interface."""

    def __init__(
        self, memory: Memory, kind: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0
    ) -> None:
        """Strides and `offset`, that of the first element, are in elements."""
        self.memory = memory
        self.shape = shape
        self.dtype = kind
        self.strides, self.offset = strides, offset
        self.device = memory.device
        interface = {
            "shape": shape,
            "strides": tuple(stride * item_bytes(kind) for stride in strides),
            "data": (memory.address + offset * item_bytes(kind), memory.is_read_only),
            "version": 3,
        }
        if memory.device is None:
            self.__array_interface__ = interface
        else:
            self.__cuda_array_interface__ = interface

    def slice(self, mode: int, begin: int, end: int) -> View:
        """The view with the coordinates from `begin` to `end` of a mode."""
        shape = tuple(end - begin if each == mode else extent for each, extent in enumerate(self.shape))
        return View(self.memory, self.dtype, shape, self.strides, self.offset + begin * self.strides[mode])


def packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The row-major strides of a shape without gaps, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(1, extent)
    return tuple(strides)


def product_of(extents: Iterable[int]) -> int:
    """The product of the extents."""
    count = 1
    for extent in extents:
        count *= extent
    return count


def item_bytes(kind: DType) -> int:
    """The size of an element in bytes."""
    return {"f64": 8, "f32": 4, "tf32": 4, "s32": 4, "f16": 2, "bf16": 2}.get(kind.name, 1)


def memory_of(array: Any, role: str) -> Memory:
    """The memory of a NumPy, PyTorch or CuPy array, or a CUdeviceptr. Raises InvalidArgument for other objects."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _memory_of_torch(array)
    for is_device, attribute in ((True, "__cuda_array_interface__"), (False, "__array_interface__")):
        interface = getattr(array, attribute, None)
        # The memory that a scalar of NumPy has in its interface is freed at once.
        if interface is not None and not isinstance(array, numpy.generic):
            if str(interface.get("typestr", "")).startswith(">"):
                raise InvalidArgument(f"{role} is {array.dtype}: big-endian arrays are not supported")
            return _memory_of_interface(array, interface, is_device)
    if type(array).__name__ == "CUdeviceptr":
        return Memory(array, int(array), None, None, 0, (), ())
    kind = type(array)
    raise InvalidArgument(
        f"{role} must be a NumPy, PyTorch or CuPy array, or a CUdeviceptr, got {kind.__module__}.{kind.__name__}"
    )


def _memory_of_torch(tensor: Any) -> Memory:
    return Memory(
        tensor,
        int(tensor.data_ptr()),
        int(tensor.numel()),
        dtype(tensor.dtype),
        int(tensor.get_device()) if tensor.is_cuda else None,
        tuple(tensor.shape),
        tuple(tensor.stride()),
    )


def _memory_of_interface(array: Any, interface: Any, is_device: bool) -> Memory:
    kind = dtype(array.dtype)
    shape = tuple(int(extent) for extent in interface["shape"])
    strides = interface.get("strides")
    steps = packed(shape) if strides is None else tuple(int(step) // item_bytes(kind) for step in strides)
    address, is_read_only = interface["data"]
    device = int(array.device.id) if is_device and hasattr(getattr(array, "device", None), "id") else 0
    elements = 1
    for extent in shape:
        elements *= extent
    return Memory(array, int(address), elements, kind, device if is_device else None, shape, steps, bool(is_read_only))


@dataclass(frozen=True)
class Staged:
    """A NumPy array whose elements are not in the order of its indices, and a copy in that order; or a vector of any
    framework, and a matrix that has it in each row."""

    array: Any
    copy: Any

    def refresh(self) -> None:
        self.copy[...] = self.array


def current_stream(memory: Memory) -> int:
    """The current stream of the array's framework; 0 unless it is a PyTorch or CuPy array on a GPU."""
    if memory.device is None:
        return 0
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(memory.owner, torch.Tensor):
        return int(torch.cuda.current_stream(memory.device).cuda_stream)
    if cupy is not None and isinstance(memory.owner, cupy.ndarray):
        return int(cupy.cuda.get_current_stream().ptr)
    return 0
