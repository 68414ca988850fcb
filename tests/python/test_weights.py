"""tilewright.pack_weights and weight_matmul: results are exact on integers; what is refused is named with its number."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, PackedWeights, pack_weights, weight_matmul

ml_dtypes = pytest.importorskip("ml_dtypes")
ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(5)
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
MATRICES = [np.ones(shape, np.float32) for shape in ((4, 8), (8, 4), (4, 4))]
RANGES = {"s4": (-8, 8), "s8": (-128, 128), "e4m3": (-8, 8)}


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kernels with narrow weights need wgmma."""
    if not tilewright.device_target().startswith("sm_90"):
        tilewright.configure(device="emulator:sm_90a")
        yield
        tilewright.configure(device="auto")
    else:
        yield


def layer(kind: str, outputs: int, inputs: int, group: int, scale_type: str = "bf16") -> tuple[Any, Any, np.ndarray]:
    """Quantised weights, their scales, which are powers of two, and the weights that they stand for."""
    weights = RANDOM.integers(*RANGES[kind], (outputs, inputs)).astype(np.int8)
    groups = -(-inputs // group) if group else 1
    scales = RANDOM.choice([0.5, 1.0, 2.0], (groups, outputs)).astype(TYPES[scale_type])
    of_inputs = np.arange(inputs) // group if group else np.zeros(inputs, int)
    values = weights * scales[of_inputs].T.astype(np.float64)
    given: Any = weights.astype(ml_dtypes.float8_e4m3fn) if kind == "e4m3" else weights
    return given, scales if group else scales[0], values


@pytest.mark.parametrize(
    ("kind", "group", "x_type", "shape"),
    [("s4", 128, "bf16", (5,)), ("s8", 64, "f16", (1,)), ("e4m3", 0, "bf16", (2, 9)), ("s4", 0, "f16", ())],
)
def test_results_are_exact(kind: str, group: int, x_type: str, shape: tuple[int, ...]) -> None:
    outputs, inputs = 138, 200  # neither whole chunks nor whole groups nor aligned scales
    weights, scales, values = layer(kind, outputs, inputs, group, x_type)
    packed = pack_weights(weights, scales, None if kind == "e4m3" else kind, group=group or None)
    assert (packed.dtype, packed.shape, packed.group) == (kind, (outputs, inputs), group)
    x = RANDOM.integers(-3, 4, (*shape, inputs)).astype(TYPES[x_type])
    out = weight_matmul(x, packed, out_dtype="f32")
    np.testing.assert_array_equal(out, (x.astype(np.float64) @ values.T).astype(np.float32))
    assert weight_matmul(x, packed).dtype == x.dtype


def test_packed_weights_are_those_of_the_reference() -> None:
    """The reference of the operation unpacks with the library's own function."""
    for kind in RANGES:
        weights, scales, values = layer(kind, 70, 130, 0)
        packed = pack_weights(weights, scales, None if kind == "e4m3" else kind)
        x = RANDOM.integers(-3, 4, (3, 136)).astype(ml_dtypes.bfloat16)[:, :130]
        out = (x.astype(np.float64) @ values.T).astype(np.float32)
        args = packed.arguments(x, out)
        assert args.verify()
        out[1, 69] += 1000
        assert not args.verify()


def test_out_is_written_and_other_calls_take_the_problem() -> None:
    weights, scales, values = layer("s8", 64, 128, 128)
    packed = pack_weights(weights, scales, "s8")
    assert repr(packed) == "<PackedWeights 64 x 128 s8, groups of 128>"
    x, out = RANDOM.integers(-3, 4, (4, 128)).astype(np.float16), np.full((2, 2, 64), np.nan, np.float32)
    packed = pack_weights(weights, scales.astype(np.float16), "s8")
    assert weight_matmul(x.reshape(2, 2, 128), packed, out=out) is out
    np.testing.assert_array_equal(out.reshape(4, 64), (x.astype(np.float64) @ values.T).astype(np.float32))
    found = tilewright.find_kernels(packed.arguments(x, out.reshape(4, 64)), deterministic=True)
    assert found[0].metadata.operation == "weight_gemm"


def refuses(message: str, *args: Any, **keywords: Any) -> None:
    with pytest.raises(InvalidArgument, match=message):
        pack_weights(*args, **keywords)


def test_packing_refuses_with_the_number() -> None:
    weights, scales = np.zeros((4, 256), np.int8), np.ones((2, 4), np.float16)
    wrong = weights.copy()
    wrong[2, 7] = -9
    refuses(r"weights of s4 must be from -8 to 7, but weights\[2,7\] is -9", wrong, scales, "s4")
    refuses(r"weights of s8 must be from -128 to 127, but weights\[0,0\] is 128", weights + np.int16(128), scales, "s8")
    nan = weights.astype(ml_dtypes.float8_e4m3fn)
    nan[3, 1] = np.nan
    refuses(r"weights\[3,1\] is NaN", nan, scales)
    refuses(r"weights of int8 cannot be packed as e4m3", weights, scales, "e4m3")
    refuses(r"dtype must be 's4' or 's8' for weights of int8", weights, scales)
    refuses(r"dtype must be 's4', 's8' or 'e4m3', got 's5'", weights, scales, "s5")
    refuses(r"weights must be integers or float8_e4m3fn, got float32", weights.astype(np.float32), scales)
    refuses(r"weights must have the shape \(outputs, inputs\), got \(4,\)", weights[:, 0], scales, "s4")
    refuses(r"scales must have the shape \(groups, 4\).*got \(4, 2\)", weights, scales.T, "s4")
    refuses(r"scales must be float16, bfloat16 or float32, got float64", weights, scales.astype(float), "s4")
    refuses(r"256 inputs in groups of 64 have 4 groups, got 2", weights, scales, "s4", group=64)
    refuses(r"group must be 16, 32, 64 or a multiple of 128, got 96", weights[:, :192], scales, "s4")
    refuses(r"2 groups do not divide 255 inputs", weights[:, :255], scales, "s4")
    refuses(r"scales of shape \(4,\) are one for each output, but group is 64", weights, scales[0], "s4", group=64)


def test_products_refuse_with_the_number() -> None:
    packed = pack_weights(np.zeros((64, 256), np.int8), np.ones((2, 64), np.float16), "s4")
    x = np.zeros((3, 256), np.float16)
    with pytest.raises(InvalidArgument, match=r"x must have the shape \(..., 256\).*got \(3, 255\)"):
        weight_matmul(x[:, :255], packed)
    with pytest.raises(InvalidArgument, match="'x' must be f16 or bf16, got f32"):
        weight_matmul(x.astype(np.float32), packed, out_dtype="f16")
    with pytest.raises(InvalidArgument, match=r"out must have the shape \(3, 64\), got \(3, 63\)"):
        weight_matmul(x, packed, out=np.empty((3, 63), np.float16))
    with pytest.raises(TypeError, match="PackedWeights"):
        weight_matmul(x, np.zeros((64, 256)))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="wgmma needs sm_90a, the target is sm_80"):
        tilewright.configure(device="emulator:sm_80")
        weight_matmul(x, packed)
    with pytest.raises(InvalidArgument, match="dtype must be"):
        PackedWeights(packed.data, packed.scales, "s2", (64, 256), 128)


def test_no_tokens_have_an_empty_result() -> None:
    weights, scales, _ = layer("s4", 64, 128, 128, "f16")
    packed = pack_weights(weights, scales, "s4")
    for shape in ((0, 128), (2, 0, 128)):
        assert weight_matmul(np.ones(shape, np.float16), packed).shape == (*shape[:-1], 64)


def test_rows_that_cannot_be_loaded_are_named() -> None:
    weights, scales, _ = layer("s4", 64, 100, 128, "f16")
    packed = pack_weights(weights, scales, "s4", group=128)
    with pytest.raises(InvalidArgument, match=r"strides of 2 and 6 bytes; pass numpy.ascontiguousarray\(x\)"):
        weight_matmul(np.asfortranarray(np.ones((3, 100), np.float16)), packed)
    with pytest.raises(InvalidArgument, match="multiples of 16 bytes, but they are 200 bytes apart.* multiple of 8"):
        weight_matmul(np.ones((3, 100), np.float16), packed)
    wide = np.ones((3, 104), np.float16)
    assert weight_matmul(wide[:, :100], packed).shape == (3, 64)
    with pytest.raises(InvalidArgument, match="x must be an array of PyTorch, NumPy, CuPy or JAX, got a list"):
        weight_matmul([[1.0] * 100], packed)
    with pytest.raises(InvalidArgument, match="weights must be an array of PyTorch, NumPy, CuPy or JAX, got a list"):
        pack_weights(weights.tolist(), scales, "s4")


def test_other_products_stay_fast_afterwards() -> None:
    """The family is no provider of the user's, whose kernels would be asked for at each call."""
    before = [refused.name for refused in tilewright.explain(tilewright.GemmArguments(*MATRICES)).refused]
    weights, scales, _ = layer("s4", 64, 128, 128, "f16")
    pack_weights(weights, scales, "s4").arguments(np.ones((1, 128), np.float16), np.ones((1, 64), np.float16))
    assert "weight_gemm" in before
    assert before == [refused.name for refused in tilewright.explain(tilewright.GemmArguments(*MATRICES)).refused]


def test_the_example_of_the_guide_runs() -> None:
    guide = (ROOT / "docs/python.md").read_text().partition("### Weights of 4 or 8 bits")[2]
    code = guide.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "docs/python.md", "exec"), {})
