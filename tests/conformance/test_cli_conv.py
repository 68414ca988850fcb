"""`tilewright conv`, and problem files of convolutions: each option, each mistake."""

import json
import os

import pytest

DEVICES = os.environ.get("TILEWRIGHT_DEVICES", "emulator:sm_80,emulator:sm_90a").split(",")
SHAPE = ("--n", 2, "--h", 7, "--w", 6, "--c", 8, "--k", 16, "--r", 3, "--s", 3)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def verified(tilewright, device, *options):
    done = tilewright("conv", *SHAPE, *options, "--device", device, "--verify", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("options", "elements"),
    [
        (("--padding", 1), 2 * 7 * 6 * 16),
        (("--stride", "2x1", "--padding", "1x0"), 2 * 4 * 4 * 16),
        (("--pass", "dgrad", "--stride", 2), 2 * 7 * 6 * 8),
        (("--pass", "wgrad", "--dilation", "2x1", "--mode", "convolution"), 16 * 9 * 8),
        (("--groups", 4, "--seed", 3), 2 * 5 * 4 * 16),
    ],
    ids=["fprop", "strided", "dgrad", "wgrad", "groups"],
)
def test_convolutions_are_computed(tilewright, device, options, elements):
    result = verified(tilewright, device, "--dtype", "f16", *options)["verify"]
    assert (result["ok"], result["exact"], result["elements"]) == (True, True, elements)


def test_types_and_epilogues(tilewright):
    device = DEVICES[-1]
    text = "D = relu(acc * $scale + row(bias) + residual); row(total) = sum(acc)"
    fused = verified(
        tilewright, device, "--epilogue", text, "--epilogue-scalar", "scale=0.5", "--epilogue-dtype", "residual=f16"
    )
    assert fused["verify"]["exact"] and fused["verify"]["elements"] == 2 * 5 * 4 * 16 + 16
    source = verified(tilewright, device, "--dtype", "bf16", "--out-dtype", "f32", "--alpha", 2, "--beta", -1)
    assert source["verify"]["exact"] and "bf16 -> f32" in source["problem"]
    normal = verified(tilewright, device, "--dtype", "tf32", "--distribution", "normal", "--epilogue", "relu")
    assert normal["verify"]["ok"] and "multiply_add_tf32" in normal["problem"]
    gated = verified(tilewright, device, "--epilogue", "D = reglu(acc)")
    assert gated["verify"]["elements"] == 2 * 5 * 4 * 8


def test_a_kernel_is_chosen_and_explained(tilewright):
    common = ("conv", *SHAPE, "--device", "emulator:sm_80")
    explained = tilewright(*common, "--explain")
    assert explained.returncode == 0 and "kernels, best first" in explained.stdout
    name = tilewright(*common, "--kernel", "simt", "--verify")
    assert name.returncode == 0 and "equal the reference bit for bit" in name.stdout
    design = tilewright(*common, "--tile", "32x32x8", "--warps", "1x1x1", "--verify", "--json")
    assert "32x32x8_s2_w1x1" in json.loads(design.stdout)["kernel"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stride", 0), "--stride must be an integer of 1 to 2^30, or two such as 2x1, got '0'"),
        (("--padding", -1), "--padding must be an integer of 0 to 2^30, or two such as 2x1, got '-1'"),
        (("--dilation", "1x2x3"), "--dilation must be an integer of 1 to 2^30, or two such as 2x1, got '1x2x3'"),
        (("--dilation", 4), "the filter does not fit: --r 3 with --dilation 4 covers 9 pixels of 7 with padding"),
        (("--groups", 5), "--c must be a multiple of --groups 5, got 8"),
        (("--pass", "bprop"), "--pass must be fprop, dgrad or wgrad, got 'bprop'"),
        (("--mode", "fast"), "--mode must be cross_correlation or convolution, got 'fast'"),
        (("--dtype", "f8"), "--dtype: unknown type 'f8'; the types are f64 f32 "),
        (("--distribution", "uniform"), "--distribution must be integer or normal, got 'uniform'"),
        (("--epilogue", "relu", "--epilogue-scalar", "a=1"), "--epilogue-scalar is for an --epilogue that is a text"),
        (("--epilogue-dtype", "bias=f16"), "--epilogue-dtype: the epilogue has no 'bias'"),
        (
            ("--pass", "dgrad", "--epilogue", "D = reglu(acc)"),
            "pairs channels of the output, which only fprop supports",
        ),
    ],
    ids=str,
)
def test_mistakes(tilewright, options, message):
    done = tilewright("conv", *SHAPE, *options, "--device", "emulator:sm_80")
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_extents_are_required(tilewright):
    done = tilewright("conv", "--n", 1, "--device", "emulator:sm_80")
    assert (done.returncode, done.stderr) == (
        2,
        "tilewright: --h is missing: --n, --h, --w, --c and --k are required\n",
    )


PROBLEM = {
    "operation": "conv2d",
    "pass": "dgrad",
    "extents": {"n": 2, "h": 7, "w": 6, "c": 8, "k": 16, "r": 3, "s": 3},
    "stride": [2, 1],
    "padding": 1,
    "types": {"x": "f32", "w": "f16", "y": "f16"},
    "scalars": {"alpha": 2},
}


def run(tilewright, tmp_path, *options, **changes):
    problem = {key: value for key, value in {**PROBLEM, **changes}.items() if value is not None}
    (tmp_path / "problem.json").write_text(json.dumps(problem))
    return tilewright("run", "--problem", tmp_path / "problem.json", "--device", "emulator:sm_80", *options)


def test_a_problem_file_is_computed(tilewright, tmp_path):
    done = run(tilewright, tmp_path, "--verify")
    assert done.returncode == 0, done.stderr
    assert "conv2d dgrad w(16,3,3,8):f16 y(2,4,6,16):f16 x(2,7,6,8):f32, stride 2x1, padding 1x1\n" in done.stdout
    assert "672 elements equal the reference bit for bit" in done.stdout
    with_c = {"x": "f16", "w": "f16", "y": "f32", "C": "f32"}
    done = run(
        tilewright,
        tmp_path,
        "--verify",
        **{"pass": "fprop", "types": with_c, "scalars": {"beta": 1}, "groups": 2, "dilation": 2, "epilogue": "relu"},
        extents={**PROBLEM["extents"], "p": 5, "q": 4},
    )
    assert done.returncode == 0 and "y(2,5,4,16):f32" in done.stdout, done.stderr
    assert "kernels, best first" in run(tilewright, tmp_path, "--find").stdout


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pass": "bprop"}, "unknown pass 'bprop'"),
        ({"stride": [1, 2, 3]}, "stride must be an integer or a list of two"),
        ({"stride": 0}, "groups, stride and dilation must be at least 1"),
        ({"padding": -1}, "padding must be an integer from 0 to 2^31 - 1, got -1"),
        ({"groups": 3}, "C, the channels of x, must be a multiple of 3 groups, got 8"),
        ({"types": {"x": "f16", "w": "f16"}}, "types lacks the field 'y'"),
        ({"extents": {"n": 1, "h": 4}}, "extents lacks the field 'c'"),
        ({"strides": {}}, "the problem has no field 'strides'"),
    ],
    ids=str,
)
def test_mistakes_in_a_file(tilewright, tmp_path, changes, message):
    done = run(tilewright, tmp_path, **changes)
    assert done.returncode == 2 and message in done.stderr, done.stderr
