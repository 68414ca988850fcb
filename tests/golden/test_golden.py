"""The CUDA C++ emitted for fixed problems, as files. After an intended change: pytest tests/golden --update-golden."""

import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parent
DESIGN = ("--tile", "128x128x8", "--stages", 4, "--warps", "2x4x1", "--instruction", "1x1x1")
SIZE = ("--m", 512, "--n", 256, "--k", 128)
EMITTED = {
    "simt_gemm_f32": (*SIZE, *DESIGN, "--target", "sm_80"),
    "simt_gemm_s8_clamp": (
        *SIZE,
        "--dtype",
        "s8",
        "--out-dtype",
        "s8",
        "--epilogue",
        "clamp",
        *DESIGN,
        "--target",
        "sm_80",
    ),
    "sm80_gemm_f16_gelu": (
        *SIZE,
        "--dtype",
        "f16",
        "--transpose-b",
        "--epilogue",
        "gelu",
        "--tile",
        "128x128x32",
        "--stages",
        4,
        "--warps",
        "2x2x1",
        "--instruction",
        "16x8x16",
        "--target",
        "sm_80",
    ),
    "sm80_gemm_f64_sm90": (
        *SIZE,
        "--dtype",
        "f64",
        "--transpose-b",
        "--tile",
        "64x64x16",
        "--stages",
        3,
        "--warps",
        "2x2x1",
        "--instruction",
        "16x8x8",
        "--target",
        "sm_90a",
    ),
    "sm80_gemm_fast_f32_transposed": (
        *SIZE,
        "--math",
        "multiply_add_fast_f32",
        "--transpose-d",
        "--tile",
        "64x64x16",
        "--stages",
        3,
        "--warps",
        "2x2x1",
        "--instruction",
        "16x8x8",
        "--target",
        "sm_80",
    ),
}


@pytest.mark.parametrize("name", EMITTED)
def test_emitted_source(tilewright, request, name):
    finished = tilewright("emit", *EMITTED[name])
    assert finished.returncode == 0, finished.stderr
    golden = FOLDER / f"{name}.cu"
    if request.config.getoption("--update-golden"):
        golden.write_text(finished.stdout)
    assert finished.stdout == golden.read_text()


def test_no_golden_is_left_over():
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(EMITTED)
