"""The layers of conv2d.py that are drawn at random."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
from conv_layers import KINDS, LAYERS, MOST_BYTES, MOST_OPERATIONS, random_layers  # noqa: E402


def test_a_number_names_the_same_layer_whatever_the_count():
    few, many = list(random_layers(7, 5)), list(random_layers(7, 20))
    assert many[:5] == few
    assert few[3].id == "R7-003"
    assert few != list(random_layers(8, 5))
    assert (few[0].n, few[0].h, few[0].c, few[0].k) == (63, 88, 3, 32)


def test_layers_are_valid_and_bounded():
    for case in random_layers(1, 300):
        shapes = case.shapes()
        assert all(extent >= 1 for shape in shapes.values() for extent in shape)
        assert case.c % case.groups == 0 and case.k % case.groups == 0
        assert case.operations() <= MOST_OPERATIONS and case.moved_bytes() <= MOST_BYTES
        assert set(case.kinds) <= set(KINDS) and "fprop" in case.kinds


def test_all_groups_and_types_are_drawn():
    cases = list(random_layers(1, 300))
    groups = {case.group for case in cases}
    assert groups == {
        "stem", "depthwise", "groups", "tf32", "odd channels", "dilated", "strided", "1x1", "few channels", "others"
    }  # fmt: skip
    assert {case.type for case in cases} == {"bf16", "f16", "tf32"}


def test_ids_of_the_list_are_unique():
    assert len({case.id for case in LAYERS}) == len(LAYERS)
