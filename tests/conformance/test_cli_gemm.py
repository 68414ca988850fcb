"""`tilewright gemm` on .npy files, compared with NumPy.

These tests cover the command: each type of file and of computation, each option, each error. Every type runs at five
sizes. Layouts and devices alternate over the cases, so that each type has every operand in both layouts.
type_and_layout_test.cpp covers the product of all types, layouts and kinds of extents, in one process and against the
reference; NumPy, an independent oracle, is used only here.
"""

import dataclasses
import itertools
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
    out: type = None  # dtype of the output file; default: that of the input files
    as_input: object = staticmethod(lambda x: x)  # rounds inputs to the operand type
    as_output: object = None  # rounds the result to the type of D
    unit: float = 0.0  # unit roundoff of the accumulator; 0: exact
    # Relative error of a product whose operands are rounded to tf32 or split (docs/decisions/tf32_rounding.md,
    # split_tf32.md).
    operand_error: float = 0.0
    out_unit: float = 0.0  # unit roundoff of D's type
    largest: int = 3  # largest magnitude of the integer inputs, with which every sum is exact

    def store(self, x):
        return self.as_output(x) if self.as_output else x.astype(self.out or self.file)


F32 = 2.0**-24
CASES = [
    Case("f64", np.float64, unit=2.0**-53, out_unit=2.0**-53, largest=1000),
    Case("f32", np.float32, unit=F32, out_unit=F32, largest=8),
    Case("tf32", np.float32, ("--dtype", "tf32"), unit=F32, operand_error=1.34 * 2.0**-10, out_unit=F32, largest=8),
    Case(
        "f32_fast_f32",
        np.float32,
        ("--math", "multiply_add_fast_f32"),
        unit=F32,
        operand_error=3.01 * 2.0**-20,
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


def in_turn(*cases):
    """The product of the cases. Each combination runs on one device; the devices alternate."""
    return [(DEVICES[sum(at) % len(DEVICES)], *(case[i] for case, i in zip(cases, at)))
            for at in itertools.product(*(range(len(case)) for case in cases))]


def cases_with_layouts():
    """(device, case, layouts, size) for every case at every size. Any five of the eight combinations of layouts have each
    operand in both layouts."""
    turns = itertools.product(range(len(CASES)), range(len(SIZES)))
    # i // 2 instead of i, because otherwise D would have the same layout in all cases of a device.
    return [(DEVICES[(i // 2 + j) % len(DEVICES)], CASES[i], LAYOUTS[(i + 3 * j) % len(LAYOUTS)], SIZES[j])
            for i, j in turns]


def name_of(parameter):
    if isinstance(parameter, Case):
        return parameter.name
    if isinstance(parameter, tuple) and all(isinstance(each, int) for each in parameter):
        return "x".join(map(str, parameter))
    return "".join(map(str, parameter)) if isinstance(parameter, tuple) else str(parameter)


def integers(random, case, shape):
    low = 0 if case.file is np.uint8 else -case.largest
    return random.integers(low, case.largest + 1, shape).astype(case.file)


def normals(random, case, shape):
    return random.standard_normal(shape).astype(case.file)


def multiply(tilewright, save, tmp_path, case, layouts, device, a, b):
    """Returns the command's D. The file of a column-major operand holds its transpose."""
    arguments = ["gemm", "--device", device, "--out", tmp_path / "d.npy", *case.options]
    for name, matrix, layout in zip("ab", (a, b), layouts):
        arguments += [f"--{name}", save(name, matrix.T.copy() if layout == "c" else matrix)]
    arguments += [f"--transpose-{name}" for name, layout in zip("abd", layouts) if layout == "c"]
    finished = tilewright(*arguments)
    assert finished.returncode == 0, finished.stderr
    d = np.load(tmp_path / "d.npy")
    return d.T if layouts[2] == "c" else d


@pytest.mark.parametrize(("device", "case", "layouts", "size"), cases_with_layouts(), ids=name_of)
def test_equals_numpy(tilewright, save, tmp_path, device, case, layouts, size):
    m, n, k = size
    random = np.random.default_rng(m * 1000 + k)

    a, b = integers(random, case, (m, k)), integers(random, case, (k, n))
    d = multiply(tilewright, save, tmp_path, case, layouts, device, a, b)
    expected = case.store(a.astype(np.float64) @ b.astype(np.float64))
    assert d.dtype == expected.dtype
    np.testing.assert_array_equal(d, expected)

    if not case.unit:
        return  # integer types are tested with integers only
    a, b = normals(random, case, (m, k)), normals(random, case, (k, n))
    d = multiply(tilewright, save, tmp_path, case, layouts, device, a, b).astype(np.float64)
    exact_a, exact_b = case.as_input(a).astype(np.float64), case.as_input(b).astype(np.float64)
    magnitude = np.abs(exact_a) @ np.abs(exact_b)
    expected = exact_a @ exact_b
    bound = (2 * (k + 2) * case.unit + case.operand_error) * magnitude + 1.01 * case.out_unit * (
        np.abs(expected) + magnitude * case.unit
    )
    assert np.all(np.abs(d - expected) <= bound), np.max(np.abs(d - expected) / bound)


BATCHES = [((3,), (3,)), ((), (3,)), ((3,), (1,)), ((1,), (1,))]


@pytest.mark.parametrize(("device", "name", "shapes"), in_turn(["f32", "f16", "s8_out_s32"], BATCHES), ids=str)
def test_batches_equal_numpy(tilewright, save, tmp_path, device, name, shapes):
    """Files of rank 3 and files of rank 2 that are broadcast, as in numpy.matmul. B and D are column-major."""
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
    assert "B has a batch of 2, D a batch of 3: they must be equal, or B a single matrix" in finished.stderr
    finished = tilewright("gemm", "--batch", -2, "--m", 1, "--n", 1, "--k", 1)
    assert finished.returncode == 2
    assert "--batch takes an integer from 0 to 2147483647, got '-2'" in finished.stderr


@pytest.mark.parametrize("command", ["gemm", "find"])
def test_random_batches(tilewright, command):
    finished = tilewright(command, "--batch", 5, "--m", 64, "--n", 64, "--k", 64, "--dtype", "f16", "--json")
    assert finished.returncode == 0, finished.stderr
    assert '"problem": "5 of 64x64x64: f16' in finished.stdout
    assert tilewright("gemm", "--batch", 0, "--m", 4, "--n", 4, "--k", 4, "--verify").returncode == 0


def fp8_values(exponent_bits, fraction_bits, has_infinity):
    """The values of the 256 bit patterns of an 8-bit floating-point type."""
    codes = np.arange(128)
    exponents, fractions = codes >> fraction_bits, (codes & (2**fraction_bits - 1)) / 2**fraction_bits
    bias = 2 ** (exponent_bits - 1) - 1
    values = np.where(exponents == 0, fractions * 2.0 ** (1 - bias), (1 + fractions) * 2.0 ** (exponents - bias))
    if has_infinity:
        values[exponents == 2**exponent_bits - 1] = np.nan
        values[(2**exponent_bits - 1) << fraction_bits] = np.inf
    else:
        values[-1] = np.nan
    return np.concatenate([values, -values])


FP8 = {"e4m3": fp8_values(4, 3, False), "e5m2": fp8_values(5, 2, True)}
FP8_UNIT = {"e4m3": 2.0**-4, "e5m2": 2.0**-3}


def to_fp8(x, values):
    """Rounds to the bit pattern of the nearest finite value, ties to even; saturates."""
    finite = values[:128][np.isfinite(values[:128])]
    upper = np.clip(np.searchsorted(finite, np.abs(x)), 1, len(finite) - 1)
    below, above = np.abs(x) - finite[upper - 1], finite[upper] - np.abs(x)
    lower_wins = (below < above) | ((below == above) & (upper % 2 == 1))
    codes = np.where(lower_wins, upper - 1, upper)
    return (codes + 128 * np.signbit(x)).astype(np.uint8)


FP8_CASES = [
    ("e4m3", "e4m3", "bf16", ()),
    ("e4m3", "e5m2", "f32", ()),
    ("e5m2", "e4m3", "e4m3", ()),
    ("e5m2", "e5m2", "e5m2", ("--transpose-d",)),
    ("e4m3", "e4m3", "f16", ("--math", "multiply_add_fast_accumulate")),
]


FP8_SIZES = [(37, 41, 19), (70, 48, 272), (256, 192, 320)]


# A is a file of bit patterns; B is a transposed file of f32, which the command rounds.
@pytest.mark.parametrize(("device", "case", "size"), in_turn(FP8_CASES, FP8_SIZES), ids=str)
def test_fp8_equals_numpy(tilewright, save, tmp_path, device, case, size):
    (a_type, b_type, out, options), (m, n, k) = case, size
    random = np.random.default_rng(m)

    def multiply_fp8(a, b):
        codes = to_fp8(a, FP8[a_type])
        files = ("--a", save("a", codes), "--b", save("b", np.ascontiguousarray(b.T, np.float32)), "--out", tmp_path / "d.npy")
        types = ("--dtype", a_type, "--b-dtype", b_type, "--out-dtype", out)
        finished = tilewright("gemm", "--device", device, *files, "--transpose-b", *types, *options)
        assert finished.returncode == 0, finished.stderr
        d = np.load(tmp_path / "d.npy")
        return d.T if "--transpose-d" in options else d

    a, b = random.integers(-4, 5, (m, k)), random.integers(-4, 5, (k, n))
    exact = (a @ b).astype(np.float64)
    d = multiply_fp8(a, b)
    if out in FP8:
        assert d.dtype == np.uint8
        np.testing.assert_array_equal(FP8[out][d], FP8[out][to_fp8(exact, FP8[out])])
    else:
        stored = {"bf16": to_bf16, "f32": np.float32, "f16": np.float16}[out]
        np.testing.assert_array_equal(d, stored(exact))

    a, b = random.standard_normal((m, k)), random.standard_normal((k, n)).astype(np.float32)
    d = multiply_fp8(a, b)
    d = FP8[out][d] if out in FP8 else d.astype(np.float64)
    a, b = (FP8[kind][to_fp8(x, FP8[kind])] for kind, x in ((a_type, a), (b_type, b)))
    exact, magnitude = a @ b, np.abs(a) @ np.abs(b)
    added = min(k, 128) if "--math" not in options else k
    unit = {"bf16": 2.0**-8, "f32": F32, "f16": 2.0**-11, **FP8_UNIT}[out]
    error = (added + 2) * 2.0**-13 * magnitude
    assert np.all(np.abs(d - exact) <= error + 1.01 * unit * (np.abs(exact) + error) + 2.0**-10)


def test_fp8_takes_files_of_u8_and_f32_only(tilewright, save):
    halves = save("a", np.ones((16, 16), np.float16))
    finished = tilewright("gemm", "--a", halves, "--b", halves, "--dtype", "e4m3")
    assert finished.returncode == 2
    assert "holds f16, but --dtype is e4m3" in finished.stderr


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
        "--beta",
        0,
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
        "--raster-width",
        2,
        "--verify",
        "--json",
    )
    assert finished.returncode == 0, finished.stderr
    assert '"exact": true' in finished.stdout
    assert "128x128x8_s4_w2x4" in finished.stdout
