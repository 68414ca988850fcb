"""Raster orders, in which a kernel computes the tiles of D. They affect cache hit rates, but not the result."""

from __future__ import annotations

from typing import ClassVar, Literal


class Swizzle:
    """Base class. CTAs take the tiles of D, or clusters of them, in the order that `raster_along` and `raster_width`
    mean in `BLASDesignMetadata`: by default row by row within groups of `raster_width` tile columns."""

    raster_width: ClassVar[int] = 1
    raster_along: ClassVar[Literal["m", "n"]] = "m"
    is_of_strided_dgrad: ClassVar[bool] = False


class IdentitySwizzle1(Swizzle):
    """One tile column after another."""


class IdentitySwizzle2(Swizzle):
    raster_width = 2


class IdentitySwizzle4(Swizzle):
    raster_width = 4


class IdentitySwizzle8(Swizzle):
    raster_width = 8


class HorizontalSwizzle(Swizzle):
    """One row of tiles after another."""

    raster_along = "n"


class BatchedIdentitySwizzle(Swizzle):
    """One matrix of a batch after another, as all kernels do, and in each one tile column after another."""


class StridedDgradIdentitySwizzle1(Swizzle):
    is_of_strided_dgrad = True


class StridedDgradIdentitySwizzle4(Swizzle):
    raster_width = 4
    is_of_strided_dgrad = True


class StridedDgradHorizontalSwizzle(Swizzle):
    raster_along = "n"
    is_of_strided_dgrad = True
