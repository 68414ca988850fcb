"""The classes of tilewright.layout: construction, calls, comparison, and conversion to text."""

import copy
import pickle
import re
import subprocess
import typing

import numpy as np
import pytest

import tilewright
from conftest import BINARIES
from tilewright import _tilewright
from tilewright import layout as lt
from tilewright.layout import ComposedLayout, E, IntTuple, Layout, ScaledBasis, Swizzle

ROWS = Layout((4, 8), (8, 1))
SWIZZLED = ComposedLayout(Swizzle(2, 0, 3), 0, Layout((8, 4), (4, 1)))


def test_a_layout_maps_coordinates_to_offsets() -> None:
    assert ROWS.shape == (4, 8) and ROWS.stride == (8, 1)
    assert ROWS(1, 3) == ROWS((1, 3)) == ROWS(13) == 11
    nested = Layout(((2, 2), (2, 4)), ((1, 4), (2, 8)))
    assert nested((1, 1), (0, 3)) == nested(3, 6) == nested(27) == 29


def test_without_a_stride_the_first_mode_is_fastest() -> None:
    assert Layout((4, (2, 3))) == Layout((4, (2, 3)), (1, (4, 8)))
    assert Layout(8).stride == 1


def test_none_in_a_coordinate_slices() -> None:
    assert ROWS(1, None) == Layout((8,), (1,))
    assert lt.slice_and_offset((1, None), ROWS) == (Layout((8,), (1,)), 8)
    assert SWIZZLED(3, None) == ComposedLayout(Swizzle(2, 0, 3), 12, Layout((4,), (1,)))
    assert lt.slice_((None, (1, None)), (4, (2, 3))) == (4, 3)
    assert lt.dice((None, (1, None)), (4, (2, 3))) == (2,)


def test_modes_are_accessed_by_index() -> None:
    assert len(ROWS) == 2
    assert [ROWS[0], ROWS[1]] == list(ROWS) == [Layout(4, 8), Layout(8, 1)]
    assert ROWS[-1] == Layout(8, 1)
    for mode in (2, -3):
        with pytest.raises(IndexError, match=f"mode {mode} of a layout of rank 2"):
            ROWS[mode]


def test_layouts_with_basis_strides_map_to_coordinates() -> None:
    identity = lt.make_identity_layout((4, (2, 3)))
    assert identity.stride == (E(0), (E((1, 0)), E((1, 1))))
    assert identity(3, (1, 2)) == lt.coordinate(identity, (3, (1, 2))) == (3, (1, 2))
    tiles = Layout((64, 64, 2), (E(1), E(0), 64 * E(1)))
    assert str(tiles) == "(64,64,2):(1@1,1@0,64@1)"
    assert (64 * E(1)).value == 64 and E((0, 2)).mode == (0, 2) and E(1).mode == 1
    assert str(E((0, 2))) == "1@2@0"


@pytest.mark.parametrize("value", [ROWS, SWIZZLED, Swizzle(3, 4, 3), ScaledBasis(64, (0, 1)), Layout(3, E(1))])
def test_values_compare_hash_copy_and_read_back(value: object) -> None:
    for again in (eval(repr(value), dict(vars(lt))), pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value and hash(again) == hash(value) and type(again) is type(value)
    assert value != 5 and value != "text"


def test_text_is_that_of_cute() -> None:
    assert str(ROWS) == "(4,8):(8,1)" and repr(ROWS) == "Layout((4, 8), (8, 1))"
    assert str(SWIZZLED) == "Sw<2,0,3> o 0 o (8,4):(4,1)"
    assert Layout.parse("(_4,_8):(_8,_1)") == ROWS
    assert ComposedLayout.parse(str(SWIZZLED)) == SWIZZLED
    assert Swizzle.parse("Sw<3,4,3>") == Swizzle(3, 4, 3)
    with pytest.raises(tilewright.InvalidArgument, match="column 8"):
        Layout.parse("(4,8):x")


def test_expressions_evaluate_to_values() -> None:
    assert lt.evaluate("(4,8):(8,1)") == ROWS
    assert lt.evaluate("((4,8):(8,1))(1,_)") == (Layout((8,), (1,)), 8)
    assert lt.evaluate("idx2crd(13,(4,8))") == (1, 3)
    assert lt.evaluate("congruent((1,2),(3,4))") is True
    assert lt.evaluate("<2:1,_>") == (Layout(2, 1), None)
    with pytest.raises(tilewright.InvalidArgument, match="column 1"):
        lt.evaluate("no_such_function(1)")


def test_a_swizzle_is_an_involution() -> None:
    swizzle = Swizzle(3, 4, 3)
    assert (swizzle.bits, swizzle.base, swizzle.shift) == (3, 4, 3)
    assert [swizzle(swizzle(o)) for o in range(2048)] == list(range(2048))
    assert lt.make_swizzle(lt.source_bits(swizzle), lt.target_bits(swizzle)) == swizzle


def test_numpy_integers_are_accepted() -> None:
    one, four, eight = (typing.cast("int", number) for number in (np.int64(1), np.int32(4), np.uint8(8)))
    assert Layout((four, eight), (eight, one)) == ROWS
    assert ROWS(one, 3) == 11


@pytest.mark.parametrize("shape", [1.0, "4", True, (4, None), [4, 8], None, (4, (8, "x"))])
def test_other_types_are_type_errors(shape: IntTuple) -> None:
    with pytest.raises(TypeError):
        Layout(shape)
    with pytest.raises(TypeError):
        lt.crd2idx(0, shape)


@pytest.mark.parametrize(
    "shape, reason",
    [
        (0, "extents must be at least 1"),
        ((4, -1), "extents must be at least 1"),
        (2**63, "the integer 9223372036854775808 does not fit in 63 bits"),
        (-(2**63), "does not fit in 63 bits"),
        ((2**40, 2**40), "63 bits"),
    ],
)
def test_values_that_can_never_work_are_refused(shape: IntTuple, reason: str) -> None:
    with pytest.raises(tilewright.InvalidArgument, match=reason):
        Layout(shape)


def test_hostile_trees_are_refused() -> None:
    deep: IntTuple = 1
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(tilewright.InvalidArgument, match="nested more than 64 deep"):
        Layout(deep)
    with pytest.raises(ValueError, match="a basis has at most 7 levels"):
        lt.get((1, 2), [0] * 8)


def test_calls_that_fit_no_coordinate_are_refused() -> None:
    with pytest.raises(tilewright.InvalidArgument, match="ranks differ"):
        ROWS(1, 2, 3)
    for wrong in (1.5, "1", True):
        with pytest.raises(TypeError, match="a coordinate must consist of integers, tuples and None"):
            ROWS(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ROWS()


def test_every_function_of_the_command_exists_in_python() -> None:
    printed = subprocess.run(
        [BINARIES / "tilewright", "layout", "functions"], capture_output=True, check=True, text=True
    )
    functions = set(re.findall(r"^(\w+)\(", printed.stdout, re.MULTILINE))
    attributes = {"shape", "stride", "layout", "offset", "swizzle"}  # attributes of the classes
    python_has_words = {"make_tiler"}  # a tuple is a tiler
    renamed = {"slice": "slice_"}
    assert len(functions) > 70
    assert {renamed.get(f, f) for f in functions - attributes - python_has_words} - set(lt.__all__) == set()


def test_everything_is_exported_and_documented() -> None:
    extension = {name: value for name, value in vars(_tilewright.layout).items() if not name.startswith("_")}
    assert extension.keys() | {"IntTuple", "Coord", "Tiler"} == set(lt.__all__)
    for name, value in extension.items():
        signatures = 0 if isinstance(value, type) else 1
        assert len((value.__doc__ or "").splitlines()) > signatures, f"{name} has no documentation"
