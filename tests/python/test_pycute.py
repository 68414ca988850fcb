"""tilewright.pycute: the names of PyCuTe, and the numbers of a GMMA descriptor that are computed with them."""

from __future__ import annotations

import copy
import pickle

import pytest

from tilewright import InvalidArgument, layout, pycute
from tilewright.arch import TiledMma, smem_tile, wgmma_atom
from tilewright.pycute import *

# Every name of PyCuTe's modules int_tuple, layout, swizzle and typing, but for those that its functions alone call.
NAMES = """
Integer is_int is_tuple flatten signum product inner_product tuple_max elem_scale shape_div prefix_product idx2crd crd2idx
crd2crd slice_ has_none LayoutBase is_layout Layout make_layout size cosize coalesce filter composition complement
right_inverse left_inverse hier_unzip logical_divide logical_product zipped_divide tiled_divide zipped_product tiled_product
slice_and_offset shiftr shiftl Swizzle SwizzleBase ComposedLayout
"""


def test_all_names_exist() -> None:
    assert set(NAMES.split()) <= set(pycute.__all__)
    assert {*pycute.__all__} <= {*vars(pycute)}


def test_functions_that_only_pycute_has() -> None:
    assert [signum(each) for each in (-3, 0, 4)] == [-1, 0, 1]
    assert (shiftl(3, 2), shiftl(12, -2), shiftr(12, 2), shiftr(3, -2)) == (12, 3, 3, 12)
    assert is_int(3) and not is_int((3,)) and is_tuple((3,)) and not is_tuple([3])
    assert has_none((0, (1, None))) and has_none(None) and not has_none((0, (1, 2)))
    assert is_layout(Layout(4)) and is_layout(composition(Swizzle(2, 0, 3), Layout(8))) and not is_layout((4,))
    assert isinstance(Layout(4), LayoutBase) and isinstance(Swizzle(2, 0, 3), SwizzleBase)
    assert layout_composition is pycute.composition and layout_product is pycute.logical_product


def test_integers_are_no_bools() -> None:
    for kind, value, expected in ((int, 1, True), (float, 1.0, False), (str, "hi", False), (bool, False, False)):
        assert issubclass(kind, Integer) is isinstance(value, Integer) is is_int(value) is expected


def test_coordinates_are_converted_in_the_order_of_pycute() -> None:
    assert crd2crd((1, 2), 6, (2, 3)) == 5
    assert crd2crd(5, (2, 3)) == crd2crd(5, (2, 3), 6) == crd2crd((1, 2), (2, 3), None) == (1, 2)
    assert crd2crd(3, 4, (2, 2)) == 3
    assert crd2crd((5, (1, 1)), ((2, 3), (2, 2))) == ((1, 2), (1, 1))
    assert crd2crd((1, (1, 1)), (2, 4), (2, (2, 2))) == (1, 3)
    with pytest.raises(InvalidArgument, match=r"crd2crd of \(1, 2\) to the integer 6 needs src_shape"):
        crd2crd((1, 2), 6)
    with pytest.raises(InvalidArgument, match="the coordinate 6 is not in the shape 6"):
        crd2crd(6, 6)
    with pytest.raises(InvalidArgument, match=r"dst_shape = \(2, 3, 4\) must have as many modes as \(1, 2\)"):
        crd2crd((1, 2), (2, 3, 4))


def test_coordinates_without_a_value_and_past_the_end() -> None:
    assert crd2idx(None, (2, 3)) == 0 and crd2idx((None, (None, 1)), (2, (3, 4)), (7, (1, 5))) == 5
    assert idx2crd(7, (2, 3)) == (1, 0) and idx2crd(7, 4) == 3 and idx2crd((1, 5), (2, 3)) == (1, 2)
    assert idx2crd(5, (2, 3), (3, 1)) == (1, 2)


def test_integers_and_none_in_place_of_layouts() -> None:
    assert flatten(4) == (4,) and flatten((1, (2, 3))) == (1, 2, 3) and flatten(()) == ()
    assert flatten(Layout((2, (3, 4)))) == Layout((2, 3, 4), (1, 2, 6))
    assert prefix_product((2, (3, 4)), (5, 7)) == (5, (7, 21)) and prefix_product((2, 3), 2) == (2, 4)
    a = Layout((4, 6), (6, 1))
    assert composition(a, None) == logical_divide(a, None) == logical_product(a, None) == a
    nothing = Layout((1, (4, 6)), (0, (6, 1)))
    assert zipped_divide(a, None) == zipped_product(a, None) == hier_unzip(logical_divide, a, None) == nothing
    assert tiled_divide(a, None) == tiled_product(a, None) == Layout((1, 4, 6), (0, 6, 1))
    assert right_inverse(5) == left_inverse(5) == Layout(5) and right_inverse(None) is left_inverse(None) is None
    assert complement(4, 24) == Layout(6, 4) and complement(Layout(4, 2)) == Layout(2, 1)
    nested = Layout((2, (1, 6)), (1, (6, 2)))
    assert coalesce(nested, [None, None]) == coalesce(nested) == Layout(12)
    assert coalesce(nested, (None, None)) == coalesce(nested, (1, 1)) == Layout((2, 6), (1, 2))
    assert filter(Layout((2, (4, 3)), (1, (0, 2))), (None, None)) == Layout((2, 3), (1, 2))


@pytest.mark.parametrize("b", [(2, 2), (2,), (None, 3), (Layout(2, 2), (3, 1)), Layout(4), 4])
def test_modes_are_gathered_by_hier_unzip(b: object) -> None:
    a = Layout((8, (6, 4)), (24, (1, 6)))
    assert hier_unzip(logical_divide, a, b) == zipped_divide(a, b)
    with pytest.raises(InvalidArgument, match="3 modes, more than the 2"):
        hier_unzip(logical_divide, a, (2, 2, 2))


def test_layouts_are_made_of_lists_and_shapes() -> None:
    modes = [Layout(4, 2), Layout((2, 3))]
    made = Layout((4, (2, 3)), (2, (1, 2)))
    assert make_layout(*modes) == make_layout(modes) == make_layout((*modes,)) == make_layout(m for m in modes) == made
    assert make_layout((4, 2)) == make_layout((4, 2), (1, 4)) == Layout((4, 2))
    assert make_layout(Layout(4, 2)) == layout.make_layout(Layout(4, 2))
    assert (made.size(), made.cosize()) == (size(made), cosize(made)) == (24, 12)
    swizzled = composition(Swizzle(2, 0, 3), Layout(8))
    assert (swizzled.size(), swizzled.cosize(), cosize(swizzled)) == (8, 32, 32)
    with pytest.raises(InvalidArgument, match="composition"):
        composition(made, Layout(5, 5))


def test_byte_offsets_of_a_descriptor_follow_from_the_layout() -> None:
    """A CTA tile of 64x128x64 of f16, MN-major B: distances between rows of the swizzle, and between core matrices."""
    atom = wgmma_atom("f16", "f16", "f32")
    b = smem_tile("mn", "f16", 128, 64)
    mma = TiledMma(atom, 128, smem_tile("k", "f16", 64, 64), b, b_major="mn")
    tiles = zipped_divide(b.layout, (64, 8))
    assert size(tiles[1]) == 2 * 8
    assert 2 * tiles(0, (1, 0)) == mma.desc_b.leading_byte_offset
    assert 2 * tiles(0, (0, 1)) == mma.desc_b.stride_byte_offset
    assert mma.mma_count == (1, 1, 4)


def test_members_and_texts_are_those_of_pycute() -> None:
    swizzle = Swizzle(3, 4, 3)
    assert (swizzle.size(), swizzle.cosize(), swizzle.yyy_msk, swizzle.zzz_msk) == (1024, 1024, 896, 112)
    back = Swizzle(2, 0, -3)
    assert (size(back), cosize(back), back.yyy_msk, back.zzz_msk) == (32, 32, 3, 24)
    tile = Layout((8, 64), (64, 1))
    composed = ComposedLayout(layoutB=swizzle, offset=2, layoutA=tile)
    assert composed.layoutA == tile and composed.layoutB == swizzle and composed[1].layoutA == Layout(64)
    assert (composed.size(), composed.cosize(), composed(3, 5)) == (512, 1024, swizzle(2 + tile(3, 5)))
    assert str(swizzle) == "SW_3_4_3" and str(Layout((2, (3, 4)))) == "(2, (3, 4)):(1, (2, 6))"
    assert str(composed) == f"{composed}" == "SW_3_4_3 o 2 o (8, 64):(64, 1)"
    assert str(layout.Layout((2, 3))) == "(2,3):(1,2)"


def test_all_layouts_are_those_of_pycute() -> None:
    a, b = Layout((8, (2, 4)), (8, (4, 1))), Layout(4, 2)
    made = [a[1], *a, a(None, 1), composition(a, b), coalesce(a), complement(b, 16), right_inverse(a), left_inverse(b)]
    made += [logical_divide(a, b), zipped_divide(a, (b, b)), logical_product(a, b), make_layout(a, b), filter(a)]
    made += [flatten(a), slice_((None, 1), a), hier_unzip(logical_divide, a, (b, b)), pickle.loads(pickle.dumps(a))]
    made += [slice_and_offset((None, 1), a)[0], composition(layout.Layout(8), 2)]
    assert {type(each) for each in made} == {Layout}
    composed = composition(Swizzle(2, 0, 3), Layout((4, 8)))
    assert {type(composed), type(composed[0]), type(copy.deepcopy(composed))} == {ComposedLayout}
    assert type(composed.layoutB) is type(copy.copy(composed.layoutB)) is Swizzle
    assert layout.composition(a, b) == composition(a, b) and hash(a) == hash(layout.Layout(a.shape, a.stride))


def test_keywords_are_those_of_pycute() -> None:
    assert composition(layoutA=Layout(8), layoutB=Layout(4, 2)) == Layout(4, 2)
    assert logical_divide(layoutA=Layout(16), layoutB=4) == zipped_divide(layoutA=Layout(16), layoutB=4) == Layout((4, 4))
    assert hier_unzip(splitter=logical_divide, layoutA=Layout(16), layoutB=4) == Layout((4, 4))
    assert Layout(_shape=(2, 3), _stride=(3, 1)) == Layout(shape=(2, 3), stride=(3, 1)) == Layout((2, 3), (3, 1))


def test_slices_of_integers() -> None:
    assert slice_(None, 7) == (7,) and slice_(1, 7) == () and slice_((1, None), (5, 6)) == (6,)
    assert slice_((None, (2, None)), (5, (6, (7, 8)))) == (5, (7, 8))
    with pytest.raises(InvalidArgument, match=r"trg = \(5, 6, 7\) must have as many modes as \(1, None\)"):
        slice_((1, None), (5, 6, 7))
