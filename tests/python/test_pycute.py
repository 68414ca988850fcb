"""tilewright.pycute: the names of PyCuTe, and the numbers of a GMMA descriptor that are computed with them."""

from __future__ import annotations

import pytest

from tilewright import InvalidArgument, layout, pycute
from tilewright.arch import TiledMma, smem_tile, wgmma_atom
from tilewright.pycute import *

# Every name of PyCuTe's modules int_tuple, layout, swizzle and typing, but for those that its functions alone call.
NAMES = """
Integer is_int is_tuple flatten signum product inner_product tuple_max elem_scale shape_div prefix_product idx2crd crd2idx
crd2crd slice_ has_none LayoutBase is_layout Layout make_layout size cosize coalesce filter composition complement
right_inverse left_inverse logical_divide logical_product zipped_divide tiled_divide zipped_product tiled_product
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
    assert layout_composition is layout.composition and layout_product is layout.logical_product


def test_layouts_are_made_of_lists_and_shapes() -> None:
    modes = [Layout(4, 2), Layout((2, 3))]
    made = Layout((4, (2, 3)), (2, (1, 2)))
    assert make_layout(*modes) == make_layout(modes) == make_layout((*modes,)) == make_layout(m for m in modes) == made
    assert make_layout((4, 2)) == make_layout((4, 2), (1, 4)) == Layout((4, 2))
    assert make_layout(Layout(4, 2)) == layout.make_layout(Layout(4, 2))
    assert (made.size(), made.cosize()) == (size(made), cosize(made)) == (24, 12)
    swizzled = composition(Swizzle(2, 0, 3), Layout(8))
    assert (swizzled.size(), swizzled.cosize()) == (8, 8)
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
