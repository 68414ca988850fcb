"""`tilewright gemm` on .npy files against NumPy: every type, every row/column combination of A, B and D, five sizes."""

import dataclasses
import os

import numpy as np
import pytest

SIZES = [(1, 1, 1), (3, 5, 7), (127, 129, 65), (128, 128, 128), (256, 192, 320)]
DEVICES = os.environ.get("TILEWRIGHT_DEVICES", "emulator:sm_80,emulator:sm_90a").split(",")


def to_bf16(x):
    """Rounds f32 to bf16, to nearest even, kept in f32: the upper 16 bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def saturate(dtype):
    limits = np.iinfo(dtype)
    return lambda x: np.clip(np.rint(x), limits.min, limits.max).astype(dtype)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    file: type  # dtype of the input files
    options: tuple = ()
    out: type = None  # dtype of the output file; the input's unless given
    as_input: object = staticmethod(lambda x: x)  # how inputs are rounded
    as_output: object = None  # how the result is rounded into D
    unit: float = 0.0  # roundoff of the accumulator; 0: exact
    lost: float = (
        0.0  # of a product, relative to it, where operands are rounded to tf32 (docs/decisions/tf32_rounding.md)
    )
    out_unit: float = 0.0  # roundoff of D
    largest: int = 3  # integers of the exact test

    def store(self, x):
        return self.as_output(x) if self.as_output else x.astype(self.out or self.file)


F32 = 2.0**-24
CASES = [
    Case("f64", np.float64, unit=2.0**-53, out_unit=2.0**-53, largest=1000),
    Case("f32", np.float32, unit=F32, out_unit=F32, largest=8),
    Case("tf32", np.float32, ("--dtype", "tf32"), unit=F32, lost=1.34 * 2.0**-10, out_unit=F32, largest=8),
    Case(
        "f32_fast_f32",
        np.float32,
        ("--math", "multiply_add_fast_f32"),
        unit=F32,
        lost=3.01 * 2.0**-20,
        out_unit=F32,
        largest=8,
    ),
    Case("f16", np.float16, unit=F32, out_unit=2.0**-11, largest=3),
    Case("f16_acc_f16", np.float16, ("--accumulator", "f16"), unit=2.0**-11, out_unit=2.0**-11, largest=1),
    Case("f16_out_f32", np.float16, ("--out-dtype", "f32"), out=np.float32, unit=F32, out_unit=F32, largest=8),
    Case("bf16", np.float32, ("--dtype", "bf16"), as_input=to_bf16, as_output=to_bf16, unit=F32, out_unit=2.0**-8),
    Case("s8_out_s32", np.int8, out=np.int32, largest=127),
    Case("s8_out_s8", np.int8, ("--out-dtype", "s8"), as_output=saturate(np.int8)),
    Case("s8_out_f32", np.int8, ("--out-dtype", "f32"), out=np.float32, largest=100),
    Case("u8_out_s32", np.uint8, out=np.int32, largest=255),
    Case("u8_out_s8", np.uint8, ("--out-dtype", "s8"), as_output=saturate(np.int8)),
    Case("u8_out_f32", np.uint8, ("--out-dtype", "f32"), out=np.float32, largest=200),
]
LAYOUTS = [(a, b, d) for a in "rc" for b in "rc" for d in "rc"]


def integers(random, case, shape):
    low = 0 if case.file is np.uint8 else -case.largest
    return random.integers(low, case.largest + 1, shape).astype(case.file)


def normals(random, case, shape):
    return random.standard_normal(shape).astype(case.file)


def multiply(tilewright, save, tmp_path, case, layouts, device, a, b):
    """D as the command computes it, with column-major operands in files that hold their transposes."""
    arguments = ["gemm", "--device", device, "--out", tmp_path / "d.npy", *case.options]
    for name, matrix, layout in zip("ab", (a, b), layouts):
        arguments += [f"--{name}", save(name, matrix.T.copy() if layout == "c" else matrix)]
    arguments += [f"--transpose-{name}" for name, layout in zip("abd", layouts) if layout == "c"]
    finished = tilewright(*arguments)
    assert finished.returncode == 0, finished.stderr
    d = np.load(tmp_path / "d.npy")
    return d.T if layouts[2] == "c" else d


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("layouts", LAYOUTS, ids="".join)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("device", DEVICES)
def test_equals_numpy(tilewright, save, tmp_path, device, case, layouts, size):
    m, n, k = size
    random = np.random.default_rng(m * 1000 + k)

    a, b = integers(random, case, (m, k)), integers(random, case, (k, n))
    d = multiply(tilewright, save, tmp_path, case, layouts, device, a, b)
    expected = case.store(a.astype(np.float64) @ b.astype(np.float64))
    assert d.dtype == expected.dtype
    np.testing.assert_array_equal(d, expected)

    if not case.unit:
        return  # integer types have integer data only
    a, b = normals(random, case, (m, k)), normals(random, case, (k, n))
    d = multiply(tilewright, save, tmp_path, case, layouts, device, a, b).astype(np.float64)
    exact_a, exact_b = case.as_input(a).astype(np.float64), case.as_input(b).astype(np.float64)
    magnitude = np.abs(exact_a) @ np.abs(exact_b)
    expected = exact_a @ exact_b
    bound = (2 * (k + 2) * case.unit + case.lost) * magnitude + 1.01 * case.out_unit * (
        np.abs(expected) + magnitude * case.unit
    )
    assert np.all(np.abs(d - expected) <= bound), np.max(np.abs(d - expected) / bound)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((), (3,)), ((3,), (1,)), ((1,), (1,))], ids=str)
@pytest.mark.parametrize("name", ["f32", "f16", "s8_out_s32"])
@pytest.mark.parametrize("device", DEVICES)
def test_batches_equal_numpy(tilewright, save, tmp_path, device, name, shapes):
    """Files of rank 3, or one matrix for all: as numpy.matmul broadcasts them. B and D are column-major."""
    case = next(case for case in CASES if case.name == name)
    m, n, k = 40, 24, 48
    random = np.random.default_rng(3)
    a, b = integers(random, case, (*shapes[0], m, k)), integers(random, case, (*shapes[1], k, n))
    finished = tilewright(
        "gemm",
        "--device",
        device,
        "--a",
        save("a", a),
        "--b",
        save("b", np.ascontiguousarray(np.swapaxes(b, -1, -2))),
        "--transpose-b",
        "--transpose-d",
        "--verify",
        "--out",
        tmp_path / "d.npy",
    )
    assert finished.returncode == 0, finished.stderr
    expected = case.store(a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_array_equal(np.swapaxes(np.load(tmp_path / "d.npy"), -1, -2), expected)


def test_batches_that_differ_are_refused(tilewright, save):
    ones = np.ones((3, 4, 4), np.float32)
    finished = tilewright("gemm", "--a", save("a", ones), "--b", save("b", ones[:2]))
    assert finished.returncode == 2
    assert "B is a batch of 2, D of 3: they must agree, or B be one matrix for all" in finished.stderr
    finished = tilewright("gemm", "--batch", -2, "--m", 1, "--n", 1, "--k", 1)
    assert finished.returncode == 2
    assert "--batch must not be negative, got -2" in finished.stderr


@pytest.mark.parametrize("command", ["gemm", "find"])
def test_random_batches(tilewright, command):
    finished = tilewright(command, "--batch", 5, "--m", 64, "--n", 64, "--k", 64, "--dtype", "f16", "--json")
    assert finished.returncode == 0, finished.stderr
    assert '"problem": "5 of 64x64x64: f16' in finished.stdout
    assert tilewright("gemm", "--batch", 0, "--m", 4, "--n", 4, "--k", 4, "--verify").returncode == 0


@pytest.mark.parametrize("device", DEVICES)
def test_alpha_beta_c_and_epilogue(tilewright, save, tmp_path, device):
    random = np.random.default_rng(5)
    a, b, c = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((20, 30), (30, 40), (20, 40)))
    finished = tilewright(
        "gemm",
        "--device",
        device,
        "--a",
        save("a", a),
        "--b",
        save("b", b),
        "--c",
        save("c", c.T.copy()),
        "--transpose-c",
        "--alpha",
        0.5,
        "--beta",
        -2,
        "--epilogue",
        "relu",
        "--verify",
        "--out",
        tmp_path / "d.npy",
    )
    assert finished.returncode == 0, finished.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), np.maximum(0.5 * (a @ b) - 2 * c, 0))


@pytest.mark.parametrize("device", DEVICES)
def test_zero_beta_does_not_read_c(tilewright, save, tmp_path, device):
    a = np.ones((4, 4), np.float32)
    c = np.full((4, 4), np.nan, np.float32)
    finished = tilewright(
        "gemm",
        "--device",
        device,
        "--a",
        save("a", a),
        "--b",
        save("b", a),
        "--c",
        save("c", c),
        "--out",
        tmp_path / "d.npy",
    )
    assert finished.returncode == 0, finished.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), a @ a)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", [((0, 4), (4, 3)), ((3, 0), (0, 5)), ((3, 4), (4, 0))])
def test_empty_extents(tilewright, save, tmp_path, device, shapes):
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    finished = tilewright(
        "gemm",
        "--device",
        device,
        "--a",
        save("a", a),
        "--b",
        save("b", b),
        "--out",
        tmp_path / "d.npy",
        "--verify",
    )
    assert finished.returncode == 0, finished.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), a @ b)


@pytest.mark.parametrize("device", DEVICES)
def test_explicit_design_and_leading_dimensions(tilewright, device):
    finished = tilewright(
        "gemm",
        "--device",
        device,
        "--m",
        130,
        "--n",
        70,
        "--k",
        40,
        "--lda",
        44,
        "--ldb",
        72,
        "--ldd",
        80,
        "--tile",
        "128x128x8",
        "--stages",
        4,
        "--warps",
        "2x4x1",
        "--instruction",
        "1x1x1",
        "--swizzle",
        2,
        "--verify",
        "--json",
    )
    assert finished.returncode == 0, finished.stderr
    assert '"exact": true' in finished.stdout
    assert "128x128x8_s4_w2x4x1" in finished.stdout
