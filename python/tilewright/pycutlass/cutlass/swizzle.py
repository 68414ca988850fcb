"""In which order a kernel takes tiles of D. The order changes what caches keep, never a result."""

from __future__ import annotations

from typing import ClassVar


class Swizzle:
    """Base of the orders: groups of `raster_width` columns of tiles are walked row by row."""

    raster_width: ClassVar[int] = 1
    is_of_strided_dgrad: ClassVar[bool] = False


class IdentitySwizzle1(Swizzle):
    pass


class IdentitySwizzle2(Swizzle):
    raster_width = 2


class IdentitySwizzle4(Swizzle):
    raster_width = 4


class IdentitySwizzle8(Swizzle):
    raster_width = 8


class HorizontalSwizzle(Swizzle):
    """Along rows, as far as groups of 8 columns of tiles go."""

    raster_width = 8


class BatchedIdentitySwizzle(Swizzle):
    """Matrix by matrix of a batch. All kernels take batches so."""


class StridedDgradIdentitySwizzle1(Swizzle):
    is_of_strided_dgrad = True


class StridedDgradIdentitySwizzle4(Swizzle):
    raster_width = 4
    is_of_strided_dgrad = True


class StridedDgradHorizontalSwizzle(Swizzle):
    raster_width = 8
    is_of_strided_dgrad = True
