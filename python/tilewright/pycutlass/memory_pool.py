"""The pool of device memory that arrays of the host are copied to."""

from __future__ import annotations

from tilewright._tilewright import allocated_bytes, configure
from tilewright.errors import InvalidArgument


class PoolMemoryManager:
    """A pool that holds at least init_pool_size bytes, and never more than max_pool_size. See get_memory_pool()."""

    def __init__(self, init_pool_size: int, max_pool_size: int) -> None:
        if 0 < max_pool_size < init_pool_size:
            raise InvalidArgument(
                f"the pool holds at least {init_pool_size} bytes and never more than {max_pool_size}: the first must "
                "not be greater"
            )
        configure(pool_initial_bytes=init_pool_size, pool_maximum_bytes=max_pool_size)
        self.init_pool_size = init_pool_size
        self.max_pool_size = max_pool_size

    def get_allocated_size(self) -> int:
        """Bytes in use."""
        return allocated_bytes()

    def pool_size(self) -> int:
        """Bytes that the pool holds at least."""
        return max(self.init_pool_size, allocated_bytes())


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 2**34) -> PoolMemoryManager:
    """Sets the pool's sizes in bytes, from now on. A greatest size of 0 is all of the device.

    Raises InvalidArgument for a negative size, and for a least one above the greatest.
    """
    return PoolMemoryManager(init_pool_size, max_pool_size)


def get_allocated_size() -> int:
    """Bytes of the pool in use."""
    return allocated_bytes()


def align_size(size: int, alignment: int = 256) -> int:
    """The least multiple of `alignment` that is not below `size`."""
    return (size + alignment - 1) // alignment * alignment
