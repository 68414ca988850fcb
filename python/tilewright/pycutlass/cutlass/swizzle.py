"""Raster orders, in which a kernel computes the tiles of D. They affect cache hit rates, but not the result."""

from __future__ import annotations

from typing import ClassVar


class Swizzle:
    """Base class. Tiles are taken row by row within groups of `raster_width` tile columns."""

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
    """Along rows, within groups of 8 tile columns."""

    raster_width = 8


class BatchedIdentitySwizzle(Swizzle):
    """One matrix of a batch after another, as all kernels do."""


class StridedDgradIdentitySwizzle1(Swizzle):
    is_of_strided_dgrad = True


class StridedDgradIdentitySwizzle4(Swizzle):
    raster_width = 4
    is_of_strided_dgrad = True


class StridedDgradHorizontalSwizzle(Swizzle):
    raster_width = 8
    is_of_strided_dgrad = True
