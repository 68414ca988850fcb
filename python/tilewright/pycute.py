"""The names of PyCuTe, CUTLASS's Python package of layouts, for programs that are written for it.

    >>> from tilewright.pycute import *
    >>> zipped_divide(Layout((8, 8), (8, 1)), (2, 4))
    Layout(((2, 4), (4, 2)), ((8, 1), (16, 4)))

The classes derive from those of tilewright.layout, whose functions take both. This module adds the names that only PyCuTe
has, and takes what PyCuTe takes where the functions of tilewright.layout differ: an integer or None in place of a layout,
None in place of a tiler, and the arguments of crd2crd() in PyCuTe's order. str() is PyCuTe's. An operation that PyCuTe
asserts, or computes wrongly, raises InvalidArgument.
"""

from __future__ import annotations

import functools
import sys
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tilewright import layout as _layout
from tilewright.errors import InvalidArgument
from tilewright.layout import IntTuple, elem_scale, inner_product, product, shape_div, suffix_product, tuple_max
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



class Swizzle(_layout.Swizzle):
    """A swizzle of tilewright.layout with PyCuTe's further members."""

    @property
    def yyy_msk(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def zzz_msk(self) -> int:
        """The bits that are changed."""
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    def size(self) -> int:
        """The number of offsets after which the swizzle repeats itself."""
        return 1 << (self.bits + self.base + abs(self.shift))

    def cosize(self) -> int:
        """The same as size()."""
        return self.size()

    def __str__(self) -> str:
        return f"SW_{self.bits}_{self.base}_{self.shift}"

    def __reduce__(self) -> tuple[object, ...]:
        return Swizzle, (self.bits, self.base, self.shift)


class Layout(_layout.Layout):
    """A layout of tilewright.layout that is printed as PyCuTe prints it."""

    def __init__(self, _shape: Any = None, _stride: Any = None, *, shape: Any = None, stride: Any = None) -> None:
        given = (_shape if shape is None else shape, _stride if stride is None else stride)
        super().__init__(*(given if given[1] is not None else given[:1]))

    def __call__(self, *coordinate: Any) -> Any:
        return _own(super().__call__(*coordinate))

    def __getitem__(self, mode: Any) -> Any:
        return _own(super().__getitem__(mode))

    def __iter__(self) -> Iterator[Any]:
        return iter([_own(mode) for mode in super().__iter__()])

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}"

    def __reduce__(self) -> tuple[object, ...]:
        return Layout, (self.shape, self.stride)


class ComposedLayout(_layout.ComposedLayout):
    """layoutB(offset + layoutA(c)), where layoutB is a swizzle, with PyCuTe's names."""

    def __init__(self, layoutB: _layout.Swizzle, offset: int, layoutA: _layout.Layout) -> None:
        super().__init__(layoutB, offset, layoutA)

    @property
    def layoutA(self) -> Layout:
        """The layout that is applied first."""
        return Layout(self.layout.shape, self.layout.stride)

    @property
    def layoutB(self) -> Swizzle:
        """The swizzle, which is applied last."""
        return Swizzle(self.swizzle.bits, self.swizzle.base, self.swizzle.shift)

    def cosize(self) -> int:
        """The cosize of layoutB, as PyCuTe defines it."""
        return self.layoutB.cosize()

    def __call__(self, *coordinate: Any) -> Any:
        return _own(super().__call__(*coordinate))

    def __getitem__(self, mode: Any) -> Any:
        return _own(super().__getitem__(mode))

    def __iter__(self) -> Iterator[Any]:
        return iter([_own(mode) for mode in super().__iter__()])

    def __str__(self) -> str:
        return f"{self.layoutB} o {self.offset} o {self.layoutA}"

    def __reduce__(self) -> tuple[object, ...]:
        return ComposedLayout, (self.layoutB, self.offset, self.layoutA)


LayoutBase = _layout.Layout
SwizzleBase = _layout.Swizzle


def _own(value: Any) -> Any:
    """A layout or a swizzle as one of this module; tuples of them too."""
    if isinstance(value, tuple):
        return tuple(map(_own, value))
    if isinstance(value, _layout.ComposedLayout):
        return ComposedLayout(_own(value.swizzle), value.offset, _own(value.layout))
    if isinstance(value, _layout.Layout):
        return Layout(value.shape, value.stride)
    return Swizzle(value.bits, value.base, value.shift) if isinstance(value, _layout.Swizzle) else value


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _returns_own(function: _Function) -> _Function:
    """A decorator: the function returns layouts of this module."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        return _own(function(*arguments, **keywords))

    return wrapped  # type: ignore[return-value]


def size(layout: Any) -> int:
    """The number of coordinates of a layout, or the product of an integer or a tuple; the size of a swizzle."""
    return layout.size() if isinstance(layout, Swizzle) else _layout.size(layout)


def cosize(layout: Any) -> int:
    """The largest offset of a layout plus 1, and the cosize of the swizzle of a composed layout."""
    return int(layout.cosize())


@_returns_own
def slice_(crd: Any, trg: Any) -> Any:
    """The modes of a layout, or of a tuple, where the coordinate is None. That of an integer is (trg,) or ()."""
    if is_layout(trg):
        return _layout.slice_(crd, trg)
    if is_tuple(crd):
        return tuple(each for mode, extent in _pairs(crd, trg, "trg") for each in slice_(mode, extent))
    return (trg,) if crd is None else ()


@_returns_own
def slice_and_offset(crd: Any, layout: Any) -> Any:
    """The slice of a layout, and the offset at which it begins."""
    return _layout.slice_and_offset(crd, layout)


def is_int(x: object) -> bool:
    """Whether `x` is an integer, and no bool."""
    return isinstance(x, int) and not isinstance(x, bool)


def is_tuple(x: object) -> bool:
    """Whether `x` is a tuple."""
    return isinstance(x, tuple)


def is_layout(x: object) -> bool:
    """Whether `x` is a layout or a composed layout."""
    return isinstance(x, (_layout.Layout, _layout.ComposedLayout))


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


@_returns_own
def make_layout(*layouts: Any) -> Any:
    """The layout whose modes are the given layouts, which may be in one tuple, list or generator; or a layout of a shape
    and a stride."""
    if len(layouts) == 1 and isinstance(layouts[0], Iterable) and not is_layout(layouts[0]):
        given = (*layouts[0],)
        if given and all(isinstance(each, _layout.Layout) for each in given):
            return _layout.make_layout(*given)
        return _layout.make_layout(given)
    return _layout.make_layout(*layouts)


@_returns_own
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


@_returns_own
def coalesce(layout: Any, profile: Any = None) -> Any:
    """As few modes as possible for the same function; with a tuple as a profile, mode by mode."""
    return _layout.coalesce(layout, _ones(profile)) if is_tuple(profile) else _layout.coalesce(layout)


@_returns_own
def filter(layout: Any, profile: Any = None) -> Any:
    """The layout without modes of stride 0 or shape 1, coalesced; with a tuple as a profile, mode by mode."""
    return _layout.filter(layout, _ones(profile)) if is_tuple(profile) else _layout.filter(layout)


@_returns_own
def composition(layoutA: Any, layoutB: Any) -> Any:
    """The layout c with c(i) == a(b(i)). None for `layoutB` gives `layoutA`; a tuple is composed mode by mode."""
    return layoutA if layoutB is None else _layout.composition(layoutA, layoutB)


@_returns_own
def complement(layout: Any, max_idx: Any = 1) -> Any:
    """The layout that repeats `layout`, or the layout n:1 of an integer n, so that both cover `max_idx` indices."""
    return _layout.complement(_of_integer(layout), max_idx)


@_returns_own
def right_inverse(layout: Any) -> Any:
    """The longest layout r with layout(r(i)) == i. That of an integer n is n:1, that of None is None."""
    return None if layout is None else _layout.right_inverse(_of_integer(layout))


@_returns_own
def left_inverse(layout: Any) -> Any:
    """A layout l with l(layout(i)) == i. That of an integer n is n:1, that of None is None."""
    return None if layout is None else _layout.left_inverse(_of_integer(layout))


@_returns_own
def logical_divide(layoutA: Any, layoutB: Any) -> Any:
    """`layoutA` divided into tiles by `layoutB`: the elements of a tile, and the tiles. None for `layoutB` gives
    `layoutA`."""
    return layoutA if layoutB is None else _layout.logical_divide(layoutA, layoutB)


@_returns_own
def logical_product(layoutA: Any, layoutB: Any) -> Any:
    """`layoutA` repeated as `layoutB` says. None for `layoutB` gives `layoutA`."""
    return layoutA if layoutB is None else _layout.logical_product(layoutA, layoutB)


@_returns_own
def zipped_divide(layoutA: Any, layoutB: Any) -> Any:
    """logical_divide(), with the modes of tiles gathered in the first mode, and all others in the second."""
    return _nothing_split(layoutA) if layoutB is None else _layout.zipped_divide(layoutA, layoutB)


@_returns_own
def tiled_divide(layoutA: Any, layoutB: Any) -> Any:
    """zipped_divide() with the modes of the second mode as modes of the result."""
    return _layout.make_layout(Layout(1, 0), *layoutA) if layoutB is None else _layout.tiled_divide(layoutA, layoutB)


@_returns_own
def zipped_product(layoutA: Any, layoutB: Any) -> Any:
    """logical_product(), with the modes of `layoutA` gathered in the first mode, and the repetitions in the second."""
    return _nothing_split(layoutA) if layoutB is None else _layout.zipped_product(layoutA, layoutB)


@_returns_own
def tiled_product(layoutA: Any, layoutB: Any) -> Any:
    """zipped_product() with the modes of the second mode as modes of the result."""
    return _layout.make_layout(Layout(1, 0), *layoutA) if layoutB is None else _layout.tiled_product(layoutA, layoutB)


@_returns_own
def hier_unzip(splitter: Callable[[Any, Any], Any], layoutA: Any, layoutB: Any) -> Any:
    """Applies `splitter`, which returns two modes, to each mode of `layoutA` and `layoutB`, and gathers the first modes of
    the results and the second ones: zipped_divide() is that of logical_divide()."""
    if layoutB is None:
        return _nothing_split(layoutA)
    if not is_tuple(layoutB):
        return splitter(layoutA, layoutB)
    if len(layoutA) < len(layoutB):
        raise InvalidArgument(f"{layoutB} has {len(layoutB)} modes, more than the {len(layoutA)} of {layoutA}")
    parts = [hier_unzip(splitter, layoutA[mode], each) for mode, each in enumerate(layoutB)]
    rest = [layoutA[mode] for mode in range(len(layoutB), len(layoutA))]
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
