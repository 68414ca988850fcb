"""The pool of device memory to which host arrays are copied."""

from __future__ import annotations

from tilewright._tilewright import allocated_bytes, configure
from tilewright.errors import InvalidArgument

from .extents import count


class PoolMemoryManager:
    """A memory pool that keeps from init_pool_size to max_pool_size bytes. See get_memory_pool()."""

    def __init__(self, init_pool_size: int, max_pool_size: int) -> None:
        init_pool_size = count(init_pool_size, "init_pool_size", 0)
        max_pool_size = count(max_pool_size, "max_pool_size", 0)
        if 0 < max_pool_size < init_pool_size:
            raise InvalidArgument(
                f"init_pool_size must be at most max_pool_size, got {init_pool_size} and {max_pool_size}"
            )
        configure(pool_initial_bytes=init_pool_size, pool_maximum_bytes=max_pool_size)
        self.init_pool_size = init_pool_size
        self.max_pool_size = max_pool_size

    def get_allocated_size(self) -> int:
        """The bytes in use."""
        return allocated_bytes()

    def pool_size(self) -> int:
        """The number of bytes that the pool keeps at least."""
        return max(self.init_pool_size, allocated_bytes())


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 2**34) -> PoolMemoryManager:
    """Sets the sizes of the memory pool in bytes. A max_pool_size of 0 allows all memory of the device.

    Raises InvalidArgument for a negative size, and if init_pool_size exceeds max_pool_size.
    """
    return PoolMemoryManager(init_pool_size, max_pool_size)


def get_allocated_size() -> int:
    """The bytes of the pool that are in use."""
    return allocated_bytes()


def align_size(size: int, alignment: int = 256) -> int:
    """`size` rounded up to a multiple of `alignment`."""
    step = count(alignment, "alignment")
    return (count(size, "size", 0) + step - 1) // step * step
