"""The names of PyCuTe, CUTLASS's Python package of layouts, for programs that are written for it.

    >>> from tilewright.pycute import *
    >>> zipped_divide(Layout((8, 8), (8, 1)), (2, 4))
    Layout(((2, 4), (4, 2)), ((8, 1), (16, 4)))

Layouts, swizzles and their operations are those of tilewright.layout, which has more of them. This module adds the names
that only PyCuTe has, and takes what PyCuTe takes where the functions of tilewright.layout differ: an integer or None in
place of a layout, None in place of a tiler, and the arguments of crd2crd() in PyCuTe's order. An operation that PyCuTe
asserts, or computes wrongly, raises InvalidArgument.
"""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright import layout as _layout
from tilewright.errors import InvalidArgument
from tilewright.layout import (
    ComposedLayout,
    IntTuple,
    Layout,
    Swizzle,
    cosize,
    elem_scale,
    inner_product,
    product,
    shape_div,
    size,
    slice_,
    slice_and_offset,
    suffix_product,
    tuple_max,
)
from tilewright.missing_name import refuse_unknown
from tilewright.submodules import add_submodules

if TYPE_CHECKING:
    Integer: TypeAlias = int
else:

    class Integer(ABC):
        """The class of which integers are instances, and of which bool is no subclass."""

        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            return issubclass(other, int) and other is not bool


LayoutBase = Layout
SwizzleBase = Swizzle


def is_int(x: object) -> bool:
    """Whether `x` is an integer, and no bool."""
    return isinstance(x, int) and not isinstance(x, bool)


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


def flatten(t: Any) -> Any:
    """The leaves of a nested tuple as a tuple: that of 4 is (4,). The modes of a layout without their hierarchy."""
    return _layout.flatten(t if is_tuple(t) or is_layout(t) else (t,))


def prefix_product(a: Any, init: Any = 1) -> Any:
    """The products of all leaves before each leaf, times `init`, which may be a tuple with a factor for each mode."""
    if not is_tuple(init):
        return _layout.prefix_product(a, init)
    return tuple(prefix_product(mode, each) for mode, each in _pairs(a, init, "init"))


def idx2crd(idx: Any, shape: Any, stride: Any = None) -> Any:
    """The coordinate at an index: (idx // stride) % shape for each leaf. The default stride is column-major."""
    found = _layout.idx2crd(idx, shape) if stride is None else _layout.idx2crd(idx, shape, stride)
    return _modulo(found, shape)


def crd2idx(crd: Any, shape: Any, stride: Any = None) -> Any:
    """The index at a coordinate, in which None counts as 0. The default stride is column-major."""
    crd = _zeros_for_none(crd)
    return _layout.crd2idx(crd, shape) if stride is None else _layout.crd2idx(crd, shape, stride)


def crd2crd(crd: Any, dst_shape: Any, src_shape: Any = None) -> Any:
    """A coordinate as one of the profile of `dst_shape`. `src_shape` is needed where a tuple becomes an integer."""
    if is_tuple(crd) and is_tuple(dst_shape):
        shapes = src_shape if is_tuple(src_shape) and len(src_shape) == len(crd) else (None,) * len(crd)
        pairs = _pairs(crd, dst_shape, "dst_shape")
        return tuple(crd2crd(x, y, z) for (x, y), z in zip(pairs, shapes, strict=True))
    if is_tuple(crd):
        if src_shape is None:
            raise InvalidArgument(f"crd2crd of {crd} to the integer {dst_shape} needs src_shape, the shape of the coordinate")
        return crd2idx(crd, src_shape)
    if is_tuple(dst_shape):
        return idx2crd(crd, dst_shape)
    if crd >= dst_shape:
        raise InvalidArgument(f"the coordinate {crd} is not in the shape {dst_shape}")
    return crd


def coalesce(layout: Any, profile: Any = None) -> Any:
    """As few modes as possible for the same function; with a tuple as a profile, mode by mode."""
    return _layout.coalesce(layout, _ones(profile)) if is_tuple(profile) else _layout.coalesce(layout)


def filter(layout: Any, profile: Any = None) -> Any:
    """The layout without modes of stride 0 or shape 1, coalesced; with a tuple as a profile, mode by mode."""
    return _layout.filter(layout, _ones(profile)) if is_tuple(profile) else _layout.filter(layout)


def composition(a: Any, b: Any) -> Any:
    """The layout c with c(i) == a(b(i)). None for `b` gives `a`; a tuple is composed mode by mode."""
    return a if b is None else _layout.composition(a, b)


def complement(layout: Any, max_idx: Any = 1) -> Any:
    """The layout that repeats `layout`, or the layout n:1 of an integer n, so that both cover `max_idx` indices."""
    return _layout.complement(_of_integer(layout), max_idx)


def right_inverse(layout: Any) -> Any:
    """The longest layout r with layout(r(i)) == i. That of an integer n is n:1, that of None is None."""
    return None if layout is None else _layout.right_inverse(_of_integer(layout))


def left_inverse(layout: Any) -> Any:
    """A layout l with l(layout(i)) == i. That of an integer n is n:1, that of None is None."""
    return None if layout is None else _layout.left_inverse(_of_integer(layout))


def logical_divide(a: Any, b: Any) -> Any:
    """`a` divided into tiles by `b`: the elements of a tile, and the tiles. None for `b` gives `a`."""
    return a if b is None else _layout.logical_divide(a, b)


def logical_product(a: Any, b: Any) -> Any:
    """`a` repeated as `b` says. None for `b` gives `a`."""
    return a if b is None else _layout.logical_product(a, b)


def zipped_divide(a: Any, b: Any) -> Any:
    """logical_divide(), with the modes of tiles gathered in the first mode, and all others in the second."""
    return _nothing_split(a) if b is None else _layout.zipped_divide(a, b)


def tiled_divide(a: Any, b: Any) -> Any:
    """zipped_divide() with the modes of the second mode as modes of the result."""
    return _layout.make_layout(Layout(1, 0), *a) if b is None else _layout.tiled_divide(a, b)


def zipped_product(a: Any, b: Any) -> Any:
    """logical_product(), with the modes of `a` gathered in the first mode, and the repetitions in the second."""
    return _nothing_split(a) if b is None else _layout.zipped_product(a, b)


def tiled_product(a: Any, b: Any) -> Any:
    """zipped_product() with the modes of the second mode as modes of the result."""
    return _layout.make_layout(Layout(1, 0), *a) if b is None else _layout.tiled_product(a, b)


def hier_unzip(splitter: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Applies `splitter`, which returns two modes, to each mode of `a` and `b`, and gathers the first modes of the results
    and the second ones: zipped_divide() is that of logical_divide()."""
    if b is None:
        return _nothing_split(a)
    if not is_tuple(b):
        return splitter(a, b)
    if len(a) < len(b):
        raise InvalidArgument(f"{b} has {len(b)} modes, more than the {len(a)} of {a}")
    parts = [hier_unzip(splitter, a[mode], each) for mode, each in enumerate(b)]
    rest = [a[mode] for mode in range(len(b), len(a))]
    return make_layout(make_layout([part[0] for part in parts]), make_layout([*(part[1] for part in parts), *rest]))


def _nothing_split(a: Any) -> Any:
    return _layout.make_layout(Layout(1, 0), a)


def _of_integer(layout: Any) -> Any:
    return Layout(layout) if is_int(layout) else layout


def _pairs(a: Any, b: Any, name: str) -> list[tuple[Any, Any]]:
    if not is_tuple(a) or len(a) != len(b):
        raise InvalidArgument(f"{name} = {b} must have as many modes as {a}")
    return [*zip(a, b, strict=True)]


def _modulo(crd: Any, shape: Any) -> Any:
    if is_tuple(crd):
        return tuple(_modulo(each, extent) for each, extent in zip(crd, shape, strict=True))
    return crd % shape if is_int(crd) and is_int(shape) else crd


def _zeros_for_none(crd: Any) -> Any:
    return tuple(map(_zeros_for_none, crd)) if is_tuple(crd) else 0 if crd is None else crd


def _ones(profile: Any) -> Any:
    """The profile with 1 in place of what is no tuple, None for example."""
    return tuple(map(_ones, profile)) if is_tuple(profile) else 1


# Names of these operations in texts about code generation with PyCuTe.
layout_composition = composition
layout_product = logical_product

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
    "hier_unzip",
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

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
