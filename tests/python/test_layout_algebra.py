"""The layout algebra on CuTe's documented examples. Where CuTe's Python and C++ differ, the C++ result is expected."""

import pytest

from tilewright import InvalidArgument
from tilewright import layout as lt
from tilewright.layout import ComposedLayout, Layout, Swizzle, Tiler

L = Layout.parse


def image(layout: Layout) -> list[int]:
    return [layout(i) for i in range(lt.size(layout))]


@pytest.mark.parametrize(
    "layout, expected",
    [
        ("(2,(1,6)):(1,(6,2))", "12:1"),
        ("(4,8):(8,1)", "(4,8):(8,1)"),
        ("(2,4,6):(1,2,8)", "48:1"),
        ("(2,1,3):(2,0,4)", "6:2"),
        ("(2,1,6):(1,7,2)", "12:1"),
        ("1:0", "1:0"),
    ],
)
def test_coalesce(layout: str, expected: str) -> None:
    assert lt.coalesce(L(layout)) == L(expected)


def test_coalesce_by_mode() -> None:
    assert lt.coalesce(L("(2,(1,6)):(1,(6,2))"), (1, 1)) == L("(2,6):(1,2)")


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(8,8):(8,1)", "2:3", "2:24"),
        ("(8,8):(8,1)", "3:3", "3:24"),
        ("(4,3):(3,1)", "24:1", "(4,6):(3,1)"),
        ("(4,3):(3,1)", "8:1", "(4,2):(3,1)"),
        ("(4,3,1):(3,1,0)", "24:1", "(4,3,2):(3,1,0)"),
        ("(8,8):(8,1)", "<2:1,4:1>", "(2,4):(8,1)"),
        ("(8,8,3):(8,1,64)", "<2:1,4:1>", "(2,4):(8,1)"),
    ],
)
def test_composition(a: str, b: str, expected: str) -> None:
    tiler = lt.evaluate(b)
    assert isinstance(tiler, (Layout, tuple))
    assert lt.composition(L(a), tiler) == L(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("a, b", [("(8,8):(8,1)", "4:3"), ("(6,2):(1,100)", "8:1")])
def test_compositions_that_are_not_layouts_are_refused(a: str, b: str) -> None:
    with pytest.raises(InvalidArgument, match="divisibility"):
        lt.composition(L(a), L(b))


@pytest.mark.parametrize(
    "layout, cotarget, expected",
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("4:2", 19, "(2,3):(1,8)"),
    ],
)
def test_complement(layout: str, cotarget: int, expected: str) -> None:
    assert lt.complement(L(layout), cotarget) == L(expected)


def test_complement_of_overlapping_strides_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        lt.complement(L("(2,2):(2,3)"), 19)


def test_inverses() -> None:
    assert lt.right_inverse(L("(4,8):(8,1)")) == L("(8,4):(4,1)")
    assert lt.left_inverse(L("(4,2):(1,16)")) == L("(16,2):(1,4)")
    assert lt.left_inverse(L("4:2")) == L("(2,4):(0,1)")
    assert lt.max_common_vector(L("(4,8):(1,4)"), L("(4,8):(1,8)")) == 4
    assert lt.nullspace(L("(2,3):(0,1)")) == L("2:1")
    assert lt.domain_distribute((15, 14), 6) == L("(3,2):(1,15)")


TILED = L("(9,(4,8)):(59,(13,1))")
TILER: Tiler = (Layout(3, 3), Layout((2, 4), (1, 8)))


def test_divisions() -> None:
    assert lt.logical_divide(L("(4,2,3):(2,1,8)"), L("4:2")) == L("((2,2),(2,3)):((4,1),(2,8))")
    assert lt.logical_divide(TILED, TILER) == L("((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))")
    assert lt.zipped_divide(TILED, TILER) == L("((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))")
    assert lt.tiled_divide(TILED, TILER) == L("((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))")
    assert lt.flat_divide(TILED, TILER) == L("(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))")
    assert lt.zipped_divide(TILED, TILER)[0] == lt.composition(TILED, TILER)
    assert lt.logical_divide(L("6:1"), 4) == L("(4,2):(1,4)"), "the last tile hangs over"


def test_tilers_are_accepted_in_every_notation() -> None:
    data = L("(8,8):(8,1)")
    expected = L("((2,4),(4,2)):((8,1),(16,4))")
    tilers: list[Tiler] = [(2, 4), (Layout(2, 1), 4), (Layout(2), Layout(4))]
    assert [lt.zipped_divide(data, tiler) for tiler in tilers] == [expected] * 3
    assert lt.logical_divide(data, (None, 4)) == L("(8,(4,2)):(8,(1,4))")
    with pytest.raises(InvalidArgument):
        lt.zipped_divide(data, (2, 0))
    with pytest.raises(TypeError):
        lt.zipped_divide(data, (2, 4.0))  # type: ignore[arg-type]


def test_products() -> None:
    block = L("(2,2):(4,1)")
    assert lt.logical_product(block, 6) == L("((2,2),(2,3)):((4,1),(2,8))")
    assert lt.logical_product(block, L("(4,2):(2,1)")) == L("((2,2),(4,2)):((4,1),(8,2))")
    assert lt.blocked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)")) == L("((2,3),(5,4)):((5,10),(1,30))")
    assert lt.raked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)")) == L("((3,2),(4,5)):((10,5),(30,1))")
    assert lt.tile_to_shape(L("(8,64):(64,1)"), (64, 128)) == L("((8,8),(64,2)):((64,512),(1,4096))")
    assert lt.tile_to_shape(L("(64,8):(1,64)"), (128, 64), (1, 0)) == L("((64,2),(8,8)):((1,4096),(64,512))")


def test_partitions() -> None:
    data = L("(8,8):(8,1)")
    assert lt.local_tile(data, (2, 4), (1, 1)) == (L("(2,4):(8,1)"), 20)
    assert lt.local_tile(data, (2, 4), (1, None)) == (L("(2,4,2):(8,1,4)"), 16)
    assert lt.local_tile(data, (2, 16, 4), (1, 9, 1), (1, None, 1)) == (L("(2,4):(8,1)"), 20)
    part, offset = lt.local_partition(data, L("(2,4):(1,2)"), 3)
    assert (part, offset) == (L("(4,2):(16,4)"), 9)


def test_the_operands_of_wgmma() -> None:
    """The leading and stride byte offsets of Hopper's matrix descriptors are strides of a layout (docs/layouts.md)."""
    a = lt.tile_to_shape(ComposedLayout(Swizzle(3, 3, 3), 0, L("(8,64):(64,1)")), (64, 64))
    assert a == ComposedLayout.parse("Sw<3,3,3> o 0 o ((8,8),(64,1)):((64,512),(1,4096))")
    assert a(1, 0) == 72 and a(3, 17) == 201
    assert lt.logical_divide(lt.recast(L("(64,16):(64,1)"), 16, 128), (8, 2)) == L("((8,8),(2,1)):((8,64),(1,0))")
    assert lt.recast(Swizzle(3, 4, 3), 8, 16) == Swizzle(3, 3, 3)
    assert lt.upcast(L("(128,64):(64,1)"), 8) == L("(128,8):(8,1)")
    assert lt.upcast(Swizzle(3, 4, 3), 8) == Swizzle(3, 1, 3)


def test_the_box_of_a_tma_copy() -> None:
    smem = lt.tile_to_shape(L("(8,64):(64,1)"), (64, 128))
    box = lt.coalesce(lt.composition(lt.make_identity_layout((64, 128)), lt.right_inverse(smem)))
    assert str(box) == "(64,64,2):(1@1,1@0,64@1)"


def test_a_fragment_covers_its_tile_once() -> None:
    wgmma_c = L("((4,8,4),(2,2,8)):((128,1,16),(64,8,512))")
    assert sorted(image(wgmma_c)) == list(range(64 * 64))


def test_swizzles_compose() -> None:
    assert lt.composition(Swizzle(2, 4, 3), Swizzle(1, 6, 3)) == Swizzle(3, 4, 3)
    plain = L("(8,8):(8,1)")
    swizzled = lt.composition(Swizzle(3, 0, 3), plain)
    assert [swizzled(i) for i in range(64)] == [Swizzle(3, 0, 3)(plain(i)) for i in range(64)]
    assert lt.decay(swizzled) is None
    assert lt.decay(lt.composition(Swizzle(), plain)) == (plain, 0)


def test_tuples() -> None:
    assert lt.shape_div((6, 2), 12) == (1, 1) and lt.ceil_div((7, 2), 3) == (3, 2)
    assert lt.prefix_product(((2, 3), 4)) == ((1, 2), 6) and lt.suffix_product(((2, 3), 4)) == ((12, 4), 1)
    assert lt.product(()) == 1 and lt.product_each(((2, 2), 8)) == (4, 8)
    assert lt.group((2, 3, 5), 0, 2) == ((2, 3), 5) and lt.flatten(((2, 3), 5)) == (2, 3, 5)
    assert lt.get(((2, 3), 8), (0, 1)) == 3 and lt.size(((2, 3), 8), 0) == 6
    assert lt.append((2, 3), 1, rank=4) == (2, 3, 1, 1) and lt.prepend((2, 3), 1) == (1, 2, 3)
    assert lt.crd2crd((1, 3), (4, 8), (8, 4)) == (1, 3) and lt.crd2crd(13, (4, 8), (8, 4)) == (5, 1)
    assert lt.compatible((4, 6), ((2, 2), 6)) and not lt.compatible((4, 6), (6, 4))
    with pytest.raises(InvalidArgument, match="neither divides"):
        lt.shape_div(6, 4)


def test_code() -> None:
    assert lt.index_code(L("(8,8):(8,1)"), ["row", "column"]) == "row * 8 + column"
    assert lt.index_code(ComposedLayout.parse("Sw<3,4,3> o 0 o (8,8):(128,16)"), ["row", "chunk"]) == (
        "row << 7 | (chunk ^ row) << 4"
    )
    assert lt.coordinate_code(lt.make_identity_layout((4, 8)), ["i", "j"]) == ["i", "j"]
    with pytest.raises(InvalidArgument):
        lt.index_code(L("(8,8):(8,1)"), ["no name", "j"])
