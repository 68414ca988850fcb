"""`tilewright gemm --epilogue TEXT` on .npy files, compared with NumPy; and texts and options that it refuses."""

import os

import numpy as np
import pytest

DEVICES = os.environ.get("TILEWRIGHT_DEVICES", "emulator:sm_80,emulator:sm_90a").split(",")
M, N, K = 70, 88, 48


@pytest.fixture
def operands(tmp_path):
    """Saves arrays of small integers in f16 and returns their values in f64."""
    random = np.random.default_rng(1)
    shapes = {"A": (M, K), "B": (K, N), "C": (M, N), "bias": (N,), "scale": (M,), "residual": (M, N), "shift": (1, 1)}
    arrays = {name: random.integers(-3, 4, shape).astype(np.float16) for name, shape in shapes.items()}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return {name: array.astype(np.float64) for name, array in arrays.items()}


def run(tilewright, tmp_path, *options, device=DEVICES[0], **sources):
    files = [option for name in sources for option in ("--epilogue-input", f"{name}={tmp_path / name}.npy")]
    return tilewright(
        "gemm", "--device", device, "--a", tmp_path / "A.npy", "--b", tmp_path / "B.npy",
        "--out", tmp_path / "D.npy", "--out-dtype", "f16", *files, "--verify", *options,
    )  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_tensors_and_outputs_equal_numpy(tilewright, tmp_path, operands, device):
    text = "let t = acc * 0.5 + row(bias); D = relu(t) - column(scale) * residual; t2 = t + single(shift); up = t > 0"
    outputs = ("--epilogue-output", f"t2={tmp_path / 't2.npy'}", "--epilogue-output", f"up={tmp_path / 'up.npy'}")
    finished = run(
        tilewright, tmp_path, "--epilogue", text, *outputs, "--epilogue-dtype", "up=u8",
        device=device, bias=1, scale=1, residual=1, shift=1,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    t = operands["A"] @ operands["B"] * 0.5 + operands["bias"]
    d = np.maximum(t, 0) - operands["scale"][:, None] * operands["residual"]
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), d.astype(np.float16))
    np.testing.assert_array_equal(np.load(tmp_path / "t2.npy"), (t + operands["shift"]).astype(np.float32))
    np.testing.assert_array_equal(np.load(tmp_path / "up.npy"), (t > 0).astype(np.uint8))


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_equal_numpy(tilewright, tmp_path, operands, device):
    text = "D = relu(acc + row(bias)); amax = absmax(acc); row(of_columns) = sum(D); column(top) = max(acc)"
    names = ("amax", "of_columns", "top")
    outputs = [option for name in names for option in ("--epilogue-output", f"{name}={tmp_path}/{name}.npy")]
    finished = run(tilewright, tmp_path, "--epilogue", text, *outputs, device=device, bias=1)
    assert finished.returncode == 0, finished.stderr
    product = operands["A"] @ operands["B"]
    d = np.maximum(product + operands["bias"], 0)
    expected = {"amax": [[np.abs(product).max()]], "of_columns": [d.sum(axis=0)], "top": product.max(axis=1)[:, None]}
    for name, values in expected.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), np.array(values, np.float32), name)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("is_transposed", [False, True])
def test_gated_epilogues_halve_the_columns_of_d(tilewright, tmp_path, operands, device, is_transposed):
    outputs = ("--epilogue-output", f"aux={tmp_path / 'aux.npy'}")
    text = "let t = acc + row(bias); D = reglu(t); aux = t"
    layout = ("--transpose-d",) if is_transposed else ()
    finished = run(tilewright, tmp_path, "--epilogue", text, *outputs, *layout, device=device, bias=1)
    assert finished.returncode == 0, finished.stderr
    t = operands["A"] @ operands["B"] + operands["bias"]
    expected = (np.maximum(t[:, ::2], 0) * t[:, 1::2]).astype(np.float16)
    np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), expected.T if is_transposed else expected)
    np.testing.assert_array_equal(np.load(tmp_path / "aux.npy"), t.astype(np.float32))


def test_a_scalar_does_not_change_the_kernel(tilewright, tmp_path, operands):
    for slope in ("0.5", "-2"):
        finished = run(
            tilewright,
            tmp_path,
            *("--epilogue", "D = acc * $slope + alpha", "--alpha", 3, "--epilogue-scalar", f"slope={slope}"),
        )
        assert finished.returncode == 0, finished.stderr
        expected = operands["A"] @ operands["B"] * float(slope) + 3
        np.testing.assert_array_equal(np.load(tmp_path / "D.npy"), expected.astype(np.float16))
        kernel = [line for line in finished.stdout.splitlines() if line.startswith("kernel")]
        assert slope == "0.5" or kernel == before
        before = kernel


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epilogue", "D = acc +"), "epilogue, character 10: expected a value, got the end"),
        (("--epilogue", 'D = relu(acc); asm("trap;")'), "epilogue, character 19: expected '=', got '('"),
        (("--epilogue", "D = __syncthreads()"), "epilogue, character 5: unknown function '__syncthreads'"),
        (("--epilogue", "D = " + "(" * 10000), "more than 128 nested expressions"),
        (("--epilogue", "D = " + "a" * 100000), "the text of an epilogue may have at most 16384 characters, got 100004"),
        (
            ("--epilogue", "D = acc", "--epilogue-output", "x=x.npy"),
            "--epilogue-output: the epilogue does not write 'x'",
        ),
        (("--epilogue", "D = acc", "--epilogue-dtype", "x=f16"), "--epilogue-dtype: the epilogue has no 'x'"),
        (("--epilogue", "D = acc", "--epilogue-input", "x"), "--epilogue-input takes NAME=VALUE, got 'x'"),
        (
            ("--epilogue", "D = acc * $s", "--epilogue-scalar", "s=half"),
            "--epilogue-scalar s takes a number such as -0.5 or 1e-3",
        ),
        (("--epilogue", "D = acc * $s"), "$s has no value"),
        (
            ("--epilogue", "D = acc + row(scale)", "--epilogue-input", "scale={}/scale.npy"),
            "'scale' must be (1,88), got (1,70)",
        ),
        (
            (
                *("--epilogue", "D = acc + row(scale)"),
                *("--epilogue-input", "scale={}/scale.npy", "--epilogue-dtype", "scale=s8"),
            ),
            ", but the type of 'scale' is s8",
        ),
        (("--epilogue", "D = acc", "--epilogue-input", "x={}/absent.npy"), "absent.npy: cannot be opened"),
    ],
)
def test_bad_epilogues_are_refused_with_the_reason(tilewright, tmp_path, operands, options, says):
    finished = run(tilewright, tmp_path, *(option.replace("{}", str(tmp_path)) for option in options))
    assert finished.returncode == 2
    assert says in finished.stderr
    assert not (tmp_path / "D.npy").exists()
