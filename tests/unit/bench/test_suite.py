"""The cases of the suite that triton_gemm.py measures, and those whose rows TMA cannot access."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
from suite import DenseTn, dense_tn  # noqa: E402


def cases():
    return {case.id: case for case in dense_tn(ROOT / "bench/problems/hopper.txt")}


def test_dense_tn_cases_of_the_suite_are_found():
    found = cases()
    assert found["G03-TN"] == DenseTn("G03-TN", "bf16", 4096, 4096, 4096, 4096, 4096, 4096)
    assert found["G03-TN-f16"].dtype == "f16"
    assert found["O05-TN"].lda == 4097
    assert {"G05-TN", "L04-TN", "D01-TN", "K01-TN"} <= found.keys()


def test_other_layouts_types_and_batches_are_skipped():
    found = cases()
    assert not found.keys() & {"G03-NN", "L12-NT", "B01-TN", "T01-TN", "F05-TN", "I01-TN"}
    assert all(case.endswith(("-TN", "-TN-f16")) for case in found)


def test_row_strides_that_tma_cannot_take_are_refused():
    found = cases()
    assert found["O01-TN"].why_not_tma() == "rows of A are 8190 bytes apart: must be a multiple of 16 for TMA"
    assert found["O02-TN"].why_not_tma().startswith("rows of D are 100514 bytes")
    assert found["G03-TN"].why_not_tma() == ""
