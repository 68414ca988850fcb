"""The documented properties of the algebra on random layouts: each result is exact, or InvalidArgument is raised."""

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright import InvalidArgument
from tilewright import layout as lt
from tilewright.layout import ComposedLayout, IntTuple, Layout, Swizzle

LARGEST = 256


def leaves(t: IntTuple) -> list[IntTuple]:
    return [leaf for mode in t for leaf in leaves(mode)] if isinstance(t, tuple) else [t]


def in_profile(t: IntTuple, values: list[int]) -> IntTuple:
    """The values as leaves of a tuple with the hierarchy of t."""
    return tuple(in_profile(mode, values) for mode in t) if isinstance(t, tuple) else values.pop(0)


def image(layout: Layout | ComposedLayout) -> list[int]:
    return [layout(i) for i in range(lt.size(layout))]


shapes: st.SearchStrategy[IntTuple] = st.recursive(
    st.integers(1, 8), lambda modes: st.lists(modes, min_size=1, max_size=3).map(tuple), max_leaves=4
).filter(lambda shape: lt.product(shape) <= LARGEST)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Random strides, which are often too small, 0 or negative."""
    shape = draw(shapes)
    strides = [draw(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 16, -1, -4])) for _ in leaves(shape)]
    return Layout(shape, in_profile(shape, strides))


@st.composite
def compact_layouts(draw: st.DrawFn, of: st.SearchStrategy[IntTuple] = shapes) -> Layout:
    """Layouts that are bijections of [0, size), with the leaves in any order."""
    shape = draw(of)
    order = draw(st.permutations(range(len(leaves(shape)))))
    return lt.make_ordered_layout(shape, in_profile(shape, list(order)))


swizzles = st.builds(
    lambda bits, base, more, sign: Swizzle(bits, base, sign * (bits + more)),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from([1, -1]),
)


def exact_or_refused(verb: Callable[[], Layout]) -> Layout:
    try:
        return verb()
    except InvalidArgument:
        assume(False)
        raise AssertionError from None


@given(layouts())
def test_a_layout_is_the_inner_product_of_coordinate_and_stride(layout: Layout) -> None:
    for i in range(lt.size(layout)):
        coord = lt.idx2crd(i, layout.shape)
        assert lt.crd2idx(coord, layout.shape) == i
        assert layout(i) == layout(coord) == lt.inner_product(coord, layout.stride)
    offsets = image(layout)
    assert lt.cosize(layout) == 1 + max(offsets) - min(offsets)
    assert lt.size(layout) == lt.product(layout.shape) == math.prod(lt.size(mode) for mode in layout)
    assert lt.rank(layout) == len(layout)


@given(layouts(), swizzles, st.integers(0, 64))
def test_values_read_back(layout: Layout, swizzle: Swizzle, offset: int) -> None:
    composed = ComposedLayout(swizzle, offset, layout)
    assert Layout.parse(str(layout)) == layout == eval(repr(layout))
    assert ComposedLayout.parse(str(composed)) == composed == eval(repr(composed))
    assert lt.evaluate(str(layout)) == layout
    assert [swizzle(offset + o) for o in image(layout) if offset + o >= 0] == [
        composed(i) for i in range(lt.size(layout)) if offset + layout(i) >= 0
    ]


@given(layouts())
def test_coalesce_is_the_same_function(layout: Layout) -> None:
    flat = lt.coalesce(layout)
    assert lt.depth(flat) <= 1 and image(flat) == image(layout)
    assert set(image(lt.filter(layout))) == set(image(layout))
    past = lt.coalesce_past_end(layout)
    assert [past(i) for i in range(2 * LARGEST)] == [layout(i) for i in range(2 * LARGEST)]


@given(layouts() | compact_layouts(), layouts() | compact_layouts())
def test_composition_applies_b_first(a: Layout, b: Layout) -> None:
    r = exact_or_refused(lambda: lt.composition(a, b))
    assert lt.compatible(b.shape, r.shape)
    assert image(r) == [a(b(i)) for i in range(lt.size(b))]


@given(compact_layouts(), st.integers(1, 8), st.integers(1, LARGEST))
def test_complement_fills_the_cotarget(layout: Layout, stride: int, cotarget: int) -> None:
    spread = Layout(
        layout.shape, lt.elem_scale(layout.stride, in_profile(layout.shape, [stride] * len(leaves(layout.shape))))
    )
    rest = exact_or_refused(lambda: lt.complement(spread, cotarget))
    both = image(lt.make_layout(spread, rest))
    assert len(set(both)) == len(both), "each offset once"
    assert set(range(cotarget)) <= set(both)
    assert image(rest) == sorted(image(rest))


@given(layouts() | compact_layouts())
def test_right_inverse(layout: Layout) -> None:
    r = lt.right_inverse(layout)
    assert [layout(r(i)) for i in range(lt.size(r))] == list(range(lt.size(r)))


@given(compact_layouts())
def test_the_inverse_of_a_bijection_has_its_size(layout: Layout) -> None:
    assert lt.size(lt.right_inverse(layout)) == lt.size(layout)
    left = lt.left_inverse(layout)
    assert [left(layout(i)) for i in range(lt.size(layout))] == list(range(lt.size(layout)))


@given(layouts())
def test_left_inverse_or_refused(layout: Layout) -> None:
    r = exact_or_refused(lambda: lt.left_inverse(layout))
    assert [layout(r(o)) for o in image(layout)] == image(layout)


@given(compact_layouts(), compact_layouts(st.integers(1, 8)))
def test_divide_rearranges(layout: Layout, tile: Layout) -> None:
    divided = exact_or_refused(lambda: lt.logical_divide(layout, tile))
    assert image(divided[0]) == [layout(tile(i)) for i in range(lt.size(tile))]
    assert set(image(divided)) >= set(image(layout))
    if lt.size(layout) % lt.size(tile) == 0:
        assert sorted(image(divided)) == sorted(image(layout))


@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_zipped_divide_separates_tiles_and_the_rest(tile: tuple[int, int], count: tuple[int, int]) -> None:
    shape = (tile[0] * count[0], tile[1] * count[1])
    layout = lt.make_row_major(shape)
    zipped = lt.zipped_divide(layout, tile)
    assert zipped[0] == lt.composition(layout, tile)
    for m in range(count[0]):
        for n in range(count[1]):
            part, offset = lt.local_tile(layout, tile, (m, n))
            assert offset == layout(m * tile[0], n * tile[1]) == zipped((0, 0), (m, n))
            assert part == zipped[0]
    assert lt.size(lt.tiled_divide(layout, tile)) == lt.size(lt.flat_divide(layout, tile)) == lt.size(layout)


@given(
    compact_layouts(st.tuples(st.integers(1, 4), st.integers(1, 4))),
    compact_layouts(st.tuples(st.integers(1, 4), st.integers(1, 4))),
)
def test_products_repeat_without_overlap(block: Layout, copies: Layout) -> None:
    product = lt.logical_product(block, copies)
    assert product[0] == block
    elements = list(range(lt.size(block) * lt.size(copies)))
    for repeated in (product, lt.blocked_product(block, copies), lt.raked_product(block, copies)):
        assert sorted(image(repeated)) == elements


@given(layouts(), st.sampled_from([1, 2, 4, 8]))
def test_recast_and_back_is_the_same(layout: Layout, n: int) -> None:
    fine = exact_or_refused(lambda: lt.downcast(layout, n))
    assert image(lt.upcast(fine, n)) == image(layout)


@given(compact_layouts(), swizzles)
def test_code_computes_the_layout(layout: Layout, swizzle: Swizzle) -> None:
    for function in (layout, ComposedLayout(swizzle, 0, layout)):
        code = lt.index_code(function, ["i"]).replace("/", "//")
        assert [eval(code, {"i": i}) for i in range(lt.size(layout))] == image(function)


@given(swizzles)
def test_a_swizzle_permutes_its_block(swizzle: Swizzle) -> None:
    block = range(lt.size(swizzle))
    assert sorted(map(swizzle, block)) == list(block)
    assert all(swizzle(swizzle(o)) == o for o in block)


@pytest.mark.parametrize("shape", [(4, (2, 3)), 7, ((2, 2), 1, 3)])
def test_constructors(shape: IntTuple) -> None:
    assert image(lt.make_layout(shape)) == list(range(lt.product(shape)))
    assert sorted(image(lt.make_row_major(shape))) == list(range(lt.product(shape)))
    identity = lt.make_identity_layout(shape)
    for i in range(lt.product(shape)):
        coord = lt.idx2crd(i, shape)
        assert lt.coordinate(identity, coord) == coord
