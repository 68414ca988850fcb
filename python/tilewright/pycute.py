"""The names of PyCuTe, CUTLASS's Python package of layouts, for programs that are written for it.

    >>> from tilewright.pycute import *
    >>> zipped_divide(Layout((8, 8), (8, 1)), (2, 4))
    Layout(((2, 4), (4, 2)), ((8, 1), (16, 4)))

Layouts, swizzles and their operations are those of tilewright.layout, which has more of them. This module adds the names
that only PyCuTe has. An operation that PyCuTe asserts, or computes wrongly, raises InvalidArgument.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeAlias

from tilewright import layout as _layout
from tilewright.layout import (
    ComposedLayout,
    IntTuple,
    Layout,
    Swizzle,
    coalesce,
    complement,
    composition,
    cosize,
    crd2crd,
    crd2idx,
    elem_scale,
    filter,
    flatten,
    idx2crd,
    inner_product,
    left_inverse,
    logical_divide,
    logical_product,
    prefix_product,
    product,
    right_inverse,
    shape_div,
    size,
    slice_,
    slice_and_offset,
    suffix_product,
    tiled_divide,
    tiled_product,
    tuple_max,
    zipped_divide,
    zipped_product,
)
from tilewright.submodules import add_submodules

Integer: TypeAlias = int
LayoutBase = Layout
SwizzleBase = Swizzle

# Names of these operations in texts about code generation with PyCuTe.
layout_composition = composition
layout_product = logical_product


def is_int(x: object) -> bool:
    """Whether `x` is an integer."""
    return isinstance(x, int)


def is_tuple(x: object) -> bool:
    """Whether `x` is a tuple."""
    return isinstance(x, tuple)


def is_layout(x: object) -> bool:
    """Whether `x` is a layout or a composed layout."""
    return isinstance(x, (Layout, ComposedLayout))


def signum(a: int) -> int:
    """-1, 0 or 1, as `a` is negative, zero or positive."""
    return (a > 0) - (a < 0)


def has_none(a: Any) -> bool:
    """Whether a coordinate contains None, which stands for a whole mode."""
    return any(has_none(mode) for mode in a) if isinstance(a, tuple) else a is None


def shiftl(a: int, s: int) -> int:
    """`a` shifted by `s` bits to the left, or to the right if `s` is negative."""
    return a << s if s >= 0 else a >> -s


def shiftr(a: int, s: int) -> int:
    """`a` shifted by `s` bits to the right, or to the left if `s` is negative."""
    return shiftl(a, -s)


def make_layout(*layouts: Any) -> Layout:
    """The layout whose modes are the given layouts, which may be in one tuple, list or generator; or a layout of a shape
    and a stride."""
    if len(layouts) == 1 and isinstance(layouts[0], Iterable) and not is_layout(layouts[0]):
        given = (*layouts[0],)
        if given and all(isinstance(each, Layout) for each in given):
            return _layout.make_layout(*given)
        return _layout.make_layout(given)
    return _layout.make_layout(*layouts)


__all__ = [
    "ComposedLayout",
    "IntTuple",
    "Integer",
    "Layout",
    "LayoutBase",
    "Swizzle",
    "SwizzleBase",
    "coalesce",
    "complement",
    "composition",
    "cosize",
    "crd2crd",
    "crd2idx",
    "elem_scale",
    "filter",
    "flatten",
    "has_none",
    "idx2crd",
    "inner_product",
    "is_int",
    "is_layout",
    "is_tuple",
    "layout_composition",
    "layout_product",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_layout",
    "prefix_product",
    "product",
    "right_inverse",
    "shape_div",
    "shiftl",
    "shiftr",
    "signum",
    "size",
    "slice_",
    "slice_and_offset",
    "suffix_product",
    "tiled_divide",
    "tiled_product",
    "tuple_max",
    "zipped_divide",
    "zipped_product",
]

_this = sys.modules[__name__]
add_submodules(__name__, int_tuple=_this, layout=_this, swizzle=_this, typing=_this)
