"""conv2d(), its gradients and Conv2dArguments on NumPy arrays.

Data are integers, so that every order of addition gives the same bits. Where `out` is given, it is a view in a larger
array of NaN, so that writes outside of it are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from convolution_numpy import Convolution

import tilewright
from tilewright import (
    Conv2dArguments,
    EpilogueArguments,
    InvalidArgument,
    ShapeOnly,
    conv2d,
    conv2d_input,
    conv2d_weight,
)

PROBLEMS = {
    "3x3": Convolution((2, 16, 6, 7), (24, 16, 3, 3), padding=(1, 1)),
    "1x1": Convolution((2, 16, 5, 4), (8, 16, 1, 1)),
    "strided": Convolution((2, 8, 9, 8), (16, 8, 3, 3), stride=(2, 2), padding=(1, 1)),
    "1x1 strided": Convolution((1, 8, 7, 6), (8, 8, 1, 1), stride=(2, 2)),
    "dilated": Convolution((1, 8, 9, 9), (8, 8, 3, 2), padding=(2, 1), dilation=(2, 3)),
    "not square": Convolution((2, 8, 5, 12), (8, 8, 1, 5), stride=(1, 3), padding=(0, 2)),
    "groups": Convolution((1, 16, 6, 6), (24, 4, 3, 3), padding=(1, 1), groups=4),
    "depthwise": Convolution((1, 8, 6, 6), (8, 1, 3, 3), padding=(1, 1), groups=8),
    "3 channels": Convolution((1, 3, 9, 9), (8, 3, 3, 3), stride=(2, 2), padding=(1, 1)),
    "one pixel": Convolution((3, 8, 1, 1), (8, 8, 1, 1)),
}


@pytest.fixture(params=["emulator:sm_90a", "emulator:sm_80", ""], ids=["sm_90a", "sm_80", "gpu"], autouse=True)
def device(request: pytest.FixtureRequest, has_gpu: bool) -> Iterator[str]:
    if request.param == "" and not has_gpu:
        pytest.skip("no GPU")
    before = tilewright.device_name()
    tilewright.configure(device=request.param or "cuda:0")
    yield request.param
    tilewright.configure(device=before if before.startswith("emulator") else "cuda:0")


@pytest.fixture
def on_one_emulator(device: str) -> None:
    """Skips the test on the second emulator: what it tests does not depend on the architecture."""
    if device == "emulator:sm_80":
        pytest.skip("tested on sm_90a")


def integers(*shape: int, dtype: Any = np.float16, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).integers(-3, 4, shape).astype(dtype)


def channels_last(array: Any) -> Any:
    """A copy of the same shape, (n, c, h, w), whose channels are contiguous."""
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def guarded(*shape: int, dtype: Any = np.float16) -> tuple[Any, Any]:
    """An array of NaN, and a view of `shape`, (n, c, h, w), with channels-last strides in the middle of it."""
    n, c, h, w = shape
    around = np.full(n * c * h * w + 64, np.nan, dtype)
    return around, around[32:-32].reshape(n, h, w, c).transpose(0, 3, 1, 2)


def assert_only_inside(around: Any, inside: Any, expected: Any) -> None:
    """`inside`, a view of `around`, equals `expected`, and everything around it is untouched."""
    np.testing.assert_array_equal(inside, expected)
    assert np.isnan(around[:32]).all() and np.isnan(around[-32:]).all(), "something around the result was written"


def numbers(problem: Convolution) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("stride", "padding", "dilation", "groups")}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_all_passes(problem: Convolution) -> None:
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    around, out = guarded(*problem.y)
    assert conv2d(channels_last(x), channels_last(w), out=out, **numbers(problem)) is out
    assert_only_inside(around, out, problem.fprop(x, w))
    around, out = guarded(*problem.x)
    assert conv2d_input(problem.x, channels_last(w), channels_last(y), out=out, **numbers(problem)) is out
    assert_only_inside(around, out, problem.dgrad(w, y))
    around, out = guarded(*problem.w)
    assert conv2d_weight(channels_last(x), problem.w, channels_last(y), out=out, **numbers(problem)) is out
    assert_only_inside(around, out, problem.wgrad(x, y))


@pytest.mark.usefixtures("on_one_emulator")
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_results_of_reductions_have_the_shapes_of_numpy(kind: str, layout: str, keepdims: bool) -> None:
    problem = PROBLEMS["strided"]
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    expected = {"fprop": problem.fprop(x, w), "dgrad": problem.dgrad(w, y), "wgrad": problem.wgrad(x, y)}[kind]
    if layout == "nhwc":
        x, w, y, expected = (np.ascontiguousarray(each.transpose(0, 2, 3, 1)) for each in (x, w, y, expected))
    channels = 0 if kind == "wgrad" else layout.index("c")  # the filters are the rows of the gradient of the filter
    rest = tuple(mode for mode in range(4) if mode != channels)
    if kind == "wgrad":
        text, axes = "D = acc; column(p) = sum(acc); row(q) = sum(acc); r = sum(acc)", {"p": rest, "q": (0,)}
    else:
        text, axes = "D = acc; row(p) = sum(acc); column(q) = sum(acc); r = sum(acc)", {"p": rest, "q": (channels,)}
    axes["r"] = (0, 1, 2, 3)
    sums = {name: expected.sum(axis=axis, dtype=np.float32, keepdims=keepdims) for name, axis in axes.items()}
    outputs = {name: np.full(each.shape, np.nan, np.float32) for name, each in sums.items()}
    if kind == "wgrad" and layout == "nchw":  # as the filter, its channels are contiguous
        outputs["q"] = np.moveaxis(np.moveaxis(outputs["q"], -3, -1).copy(), -1, -3)
    given = {**numbers(problem), "layout": layout, "epilogue": text, **outputs}
    if kind == "fprop":
        conv2d(x, w, **given)
    elif kind == "dgrad":
        conv2d_input(expected.shape, w, y, **given)
    else:
        conv2d_weight(x, expected.shape, y, **given)
    for name, each in sums.items():
        np.testing.assert_array_equal(outputs[name], each)


@pytest.mark.usefixtures("on_one_emulator")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, "bfloat16"])
def test_types(dtype: Any) -> None:
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    problem = PROBLEMS["strided"]
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    got = conv2d(x.astype(dtype), w.astype(dtype), stride=2, padding=1)
    assert got.dtype == (np.int32 if dtype == np.int8 else dtype)
    np.testing.assert_array_equal(got, problem.fprop(x, w).astype(got.dtype))
    got = conv2d_weight(x.astype(dtype), problem.w, y.astype(dtype), stride=2, padding=1)
    np.testing.assert_array_equal(got, problem.wgrad(x, y).astype(got.dtype))


@pytest.mark.usefixtures("on_one_emulator")
def test_a_new_array_has_channels_last_strides() -> None:
    problem = PROBLEMS["3x3"]
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    for got, expected in [
        (conv2d(x, w, padding=1), problem.fprop(x, w)),
        (conv2d_input(problem.x, w, y, padding=1), problem.dgrad(w, y)),
        (conv2d_weight(x, problem.w, y, padding=1), problem.wgrad(x, y)),
    ]:
        assert got.shape == expected.shape and got.transpose(0, 2, 3, 1).flags.c_contiguous
        np.testing.assert_array_equal(got, expected)


def test_channels_last_arrays_are_not_copied() -> None:
    x, w = channels_last(integers(2, 8, 5, 5)), channels_last(integers(8, 8, 3, 3))
    from tilewright.channels_last import channels_last as ready

    assert ready(x, "nchw", None, is_packed=True) is x
    window = x[:, :, 1:, 1:]  # pixels with gaps between the rows
    assert ready(window, "nchw", None, is_packed=False) is window
    assert ready(window, "nchw", None, is_packed=True) is not window
    problem = Convolution(window.shape, w.shape)
    np.testing.assert_array_equal(conv2d(window, w), problem.fprop(window, w))
    mirrored = x[:, :, ::-1]
    np.testing.assert_array_equal(conv2d(mirrored, w), Convolution(x.shape, w.shape).fprop(mirrored, w))
    single = integers(1, 1, 4, 4)  # one channel: NCHW is NHWC
    assert ready(single, "nchw", None, is_packed=True) is single


@pytest.mark.usefixtures("on_one_emulator")
def test_layout_nhwc() -> None:
    problem = PROBLEMS["3x3"]
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    of_x, of_w, of_y = (np.ascontiguousarray(each.transpose(0, 2, 3, 1)) for each in (x, w, y))
    options: dict[str, Any] = {"padding": 1, "layout": "nhwc"}
    bias, residual = integers(24), np.ascontiguousarray(integers(*problem.y, seed=3).transpose(0, 2, 3, 1))
    got = conv2d(of_x, of_w, epilogue="D = relu(acc + row(bias) + residual)", bias=bias, residual=residual, **options)
    assert got.flags.c_contiguous
    expected = problem.fprop(x, w).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(got, np.maximum(expected + bias + residual, 0))
    np.testing.assert_array_equal(
        conv2d_input(of_x.shape, of_w, of_y, **options), problem.dgrad(w, y).transpose(0, 2, 3, 1)
    )
    np.testing.assert_array_equal(
        conv2d_weight(of_x, of_w.shape, of_y, **options), problem.wgrad(x, y).transpose(0, 2, 3, 1)
    )


@pytest.mark.usefixtures("on_one_emulator")
def test_padding_by_name() -> None:
    x, w = integers(1, 8, 6, 7), integers(8, 8, 3, 4, seed=1)
    got = conv2d(x, w, padding="same", dilation=(2, 1))
    assert got.shape == (1, 8, 6, 7)
    wider = np.pad(x, ((0, 0), (0, 0), (2, 2), (1, 2)))  # of 3 columns of padding, the second half is larger
    np.testing.assert_array_equal(got, Convolution(wider.shape, w.shape, dilation=(2, 1)).fprop(wider, w))
    np.testing.assert_array_equal(conv2d(x, w, padding="valid"), Convolution(x.shape, w.shape).fprop(x, w))
    gradient = integers(1, 8, 6, 7, seed=2)
    got = conv2d_input(x.shape, w, gradient, padding="same", dilation=(2, 1))
    expected = Convolution(wider.shape, w.shape, dilation=(2, 1)).dgrad(w, gradient)[:, :, 2:-2, 1:-2]
    np.testing.assert_array_equal(got, expected)


RESIDUAL = "D = relu(acc + row(bias) + residual)"


def residual_of(acc: Any, bias: Any, residual: Any) -> Any:
    return np.maximum(acc + bias + residual, 0)


@pytest.mark.parametrize("epilogue", [RESIDUAL, residual_of], ids=["text", "function"])
@pytest.mark.parametrize("name", ["3x3", "strided", "groups"])
def test_bias_residual_and_relu(name: str, epilogue: Any) -> None:
    problem = PROBLEMS[name]
    x, w = integers(*problem.x), integers(*problem.w, seed=1)
    bias, residual = integers(problem.w[0], dtype=np.float32, seed=3), integers(*problem.y, seed=4)
    expected = np.maximum(problem.fprop(x, w) + bias[:, None, None] + residual, 0)
    options = numbers(problem)
    np.testing.assert_array_equal(conv2d(x, w, epilogue=epilogue, bias=bias, residual=residual, **options), expected)
    of_four_modes = {"bias": bias.reshape(1, -1, 1, 1), "residual": channels_last(residual)}
    around, out = guarded(*problem.y)
    conv2d(x, w, epilogue=epilogue, out=out, **of_four_modes, **options)
    assert_only_inside(around, out, expected)


@pytest.mark.usefixtures("on_one_emulator")
def test_other_epilogues() -> None:
    problem = PROBLEMS["3x3"]
    x, w, y = integers(*problem.x), integers(*problem.w, seed=1), integers(*problem.y, seed=2)
    fprop, dgrad, wgrad = problem.fprop(x, w), problem.dgrad(w, y), problem.wgrad(x, y)
    c = integers(*problem.y, seed=3)
    np.testing.assert_array_equal(conv2d(x, w, padding=1, c=c, alpha=2.0, beta=-1.0), 2 * fprop - c)
    np.testing.assert_array_equal(conv2d(x, w, padding=1, c=c, epilogue="relu"), np.maximum(fprop + c, 0))
    np.testing.assert_array_equal(conv2d(x, w, padding=1, epilogue="D = acc * $scale", scale=0.5), fprop * 0.5)
    # Another output, and the sum of each channel.
    aux, total = np.full_like(channels_last(c), np.nan, np.float32), np.full(24, np.nan, np.float32)
    text = "aux = acc; row(total) = sum(acc); D = relu(acc)"
    got = conv2d(x, w, padding=1, epilogue=text, aux=aux, total=total)
    np.testing.assert_array_equal(got, np.maximum(fprop, 0))
    np.testing.assert_array_equal(aux, fprop)
    np.testing.assert_array_equal(total, fprop.sum((0, 2, 3)))
    # Epilogues of gradients: relu's, a sum with an earlier gradient, a number for each filter.
    mask = integers(*problem.x, seed=4)
    got = conv2d_input(problem.x, w, y, padding=1, epilogue="D = where(mask > 0, acc, 0)", mask=mask)
    np.testing.assert_array_equal(got, np.where(mask > 0, dgrad, 0))
    scale = integers(24, seed=5)
    got = conv2d_weight(x, problem.w, y, padding=1, epilogue="D = acc * column(scale)", scale=scale)
    np.testing.assert_array_equal(got, wgrad * scale[:, None, None, None])
    earlier = integers(*problem.w, seed=6, dtype=np.float32)
    got = conv2d_weight(x, problem.w, y, padding=1, c=earlier, out_dtype="f32")
    np.testing.assert_array_equal(got, wgrad + earlier)


def test_a_gated_epilogue_pairs_channels() -> None:
    problem = PROBLEMS["3x3"]
    x, w = integers(*problem.x), integers(*problem.w, seed=1)
    got = conv2d(x, w, padding=1, epilogue="D = reglu(acc)", out_dtype="f32")
    pairs = problem.fprop(x, w)
    np.testing.assert_array_equal(got, np.maximum(pairs[:, 0::2], 0) * pairs[:, 1::2])


@pytest.mark.usefixtures("on_one_emulator")
def test_empty_images() -> None:
    assert conv2d(integers(0, 8, 5, 5), integers(8, 8, 3, 3)).shape == (0, 8, 3, 3)
    got = conv2d_weight(integers(0, 8, 5, 5), (8, 8, 3, 3), integers(0, 8, 3, 3))
    np.testing.assert_array_equal(got, np.zeros((8, 8, 3, 3)))
    got = conv2d(integers(1, 0, 5, 5), integers(8, 0, 3, 3))
    np.testing.assert_array_equal(got, np.zeros((1, 8, 3, 3)))


def test_arguments_are_found_explained_compiled_and_run() -> None:
    problem = PROBLEMS["3x3"]
    x, w = channels_last(integers(*problem.x)), channels_last(integers(*problem.w, seed=1))
    around, out = guarded(*problem.y)
    args = Conv2dArguments(x, w, out, padding=1)
    assert (args.m, args.n, args.k) == (2 * 6 * 7, 24, 9 * 16)
    assert (args.kind, args.padding, args.stride, args.groups, args.mode) == (
        "fprop",
        (1, 1),
        (1, 1),
        1,
        "cross_correlation",
    )
    assert args.operation == "conv2d" and args.x.shape == (2, 6, 7, 16)
    assert "Conv2dArguments(x=f16(2,6,7,16) on host" in repr(args)
    kernel = tilewright.find_kernels(args)[0]
    assert kernel.supports(args)
    assert kernel.name in str(tilewright.explain(args))
    kernel.run(args, kernel.compile(args))
    assert_only_inside(around, out, problem.fprop(x, w))
    out[...] = np.nan
    tilewright.prepare(args).run()
    assert_only_inside(around, out, problem.fprop(x, w))
    assert args.verify()
    out[0, 0, 0, 0] += 1
    assert not args.verify()


def test_convolution_mode_mirrors_the_filter() -> None:
    problem = PROBLEMS["strided"]
    x, w = channels_last(integers(*problem.x)), channels_last(integers(*problem.w, seed=1))
    around, out = guarded(*problem.y)
    tilewright.run(Conv2dArguments(x, w, out, stride=2, padding=1, mode="convolution"))
    assert_only_inside(around, out, problem.fprop(x, w[:, :, ::-1, ::-1]))


def test_shapes_without_memory() -> None:
    x, w, y = (ShapeOnly(shape, "f16") for shape in [(8, 56, 56, 64), (64, 3, 3, 64), (8, 56, 56, 64)])
    for kind in ("fprop", "dgrad", "wgrad"):
        args = Conv2dArguments(x, w, y, kind=kind, padding=1, layout="nhwc")
        assert len(tilewright.find_kernels(args)) > 0


X, W = (2, 16, 6, 7), (24, 16, 3, 3)


@pytest.mark.usefixtures("on_one_emulator")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": (16, 6, 7)}, r"x must have rank 4, \(n, c, h, w\), got shape \(16, 6, 7\)"),
        ({"w": (24, 16)}, r"w must have rank 4, \(k, c, r, s\), got shape \(24, 16\)"),
        ({"x": (2, 15, 6, 7)}, "w has 16 channels, but x has 15"),
        ({"groups": 2}, "w has 16 channels, but x has 16 in 2 groups, 8 in each"),
        ({"groups": 3}, "x has 16 channels, which is no multiple of groups=3"),
        ({"groups": 0}, "groups must be at least 1, got 0"),
        ({"x": (2, 25, 6, 7), "w": (24, 5, 3, 3), "groups": 5}, "w has 24 filters, which is no multiple of groups=5"),
        ({"padding": -1}, "padding must be at least 0, got -1"),
        ({"padding": (1, -2)}, "padding must be at least 0, got -2"),
        ({"padding": "full"}, 'padding must be an int, a pair, "valid" or "same", got \'full\''),
        ({"padding": "same", "stride": 2}, r'padding="same" needs a stride of 1, got \(2, 2\)'),
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"stride": (1, 2, 3)}, r"stride must be an int or a pair \(height, width\), got \(1, 2, 3\)"),
        ({"stride": 1.5}, r"stride must be an int or a pair \(height, width\), got 1.5"),
        ({"dilation": 0}, "dilation must be at least 1, got 0"),
        ({"dilation": 4}, r"the filter of 3 x 3 taps covers 9 x 9 pixels, but x has 6 x 7 with padding \(0, 0\)"),
        ({"layout": "nchW"}, 'layout must be "nchw" or "nhwc", got \'nchW\''),
        ({"out": (2, 24, 6, 7)}, r"out must have the shape \(2, 24, 4, 5\), got \(2, 24, 6, 7\)"),
        ({"residual": (2, 24, 4, 4)}, r"'residual' must be \(2,4,5,24\), or 1 in modes 0 to 2"),
        ({"bias": (23,)}, "'bias' must have 24 channels, or 1, got 23"),
        ({"bias": (24, 1, 1)}, "'bias' must have four modes, as out has"),
        ({"c": (2, 24, 4, 4)}, r"c must have the shape \(2,4,5,24\) of out"),
        ({"scale": (1,)}, "scale"),
    ],
    ids=str,
)
def test_mistakes(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"x": X, "w": W, **change}
    for name in ("x", "w", "out", "residual", "bias", "c", "scale"):
        if name in options:
            options[name] = integers(*options[name])
    if options.keys() & {"residual", "bias"}:
        options["epilogue"] = f"D = acc + {'residual' if 'residual' in options else 'row(bias)'}"
    with pytest.raises(InvalidArgument, match=message):
        conv2d(options.pop("x"), options.pop("w"), **options)


@pytest.mark.usefixtures("on_one_emulator")
def test_mistakes_with_gradients() -> None:
    y, w, x = integers(2, 24, 4, 5), integers(*W), integers(*X)
    with pytest.raises(InvalidArgument, match=r"grad_output must have the shape \(2, 24, 6, 7\) of the output, got"):
        conv2d_input(X, w, y, padding=1)
    with pytest.raises(InvalidArgument, match=r"input_size must have rank 4, \(n, c, h, w\), got shape \(6, 7\)"):
        conv2d_input((6, 7), w, y)
    with pytest.raises(InvalidArgument, match="input_size must be a shape of four integers"):
        conv2d_input(x, w, y)
    with pytest.raises(InvalidArgument, match="weight has 16 channels, but input_size has 8"):
        conv2d_input((2, 8, 6, 7), w, y)
    with pytest.raises(InvalidArgument, match="weight_size has 8 channels, but input has 16"):
        conv2d_weight(x, (24, 8, 3, 3), y)
    with pytest.raises(InvalidArgument, match=r"out must have the shape \(24, 16, 3, 3\), got"):
        conv2d_weight(x, W, y, out=integers(24, 16, 3, 4))
    with pytest.raises(InvalidArgument, match="grad_output is f16 and weight is f32: they must have the same type$"):
        conv2d_input(X, w.astype(np.float32), y)
    with pytest.raises(InvalidArgument, match="the epilogue pairs channels of the output, which only fprop supports"):
        conv2d_input((2, 16, 4, 5), w, y, padding=1, epilogue="D = swiglu(acc)")


def test_an_out_that_is_not_channels_last() -> None:
    with pytest.raises(InvalidArgument, match=r"out of shape \(2, 24, 4, 5\) must have its channels-last strides"):
        conv2d(integers(*X), integers(*W), out=np.empty((2, 24, 4, 5), np.float16))
    with pytest.raises(InvalidArgument, match="x must have contiguous channels, but their stride is 42"):
        Conv2dArguments(integers(*X), integers(*W), channels_last(integers(2, 24, 4, 5)))
    read_only = channels_last(integers(2, 24, 4, 5))
    read_only.flags.writeable = False
    with pytest.raises(InvalidArgument, match="out is read-only"):
        conv2d(integers(*X), integers(*W), out=read_only)


def test_an_epilogue_may_be_used_again() -> None:
    x, w, bias = integers(*X), integers(*W, seed=1), integers(24, seed=2)
    epilogue = EpilogueArguments(lambda acc, bias: acc + bias, bias=bias)
    expected = Convolution(X, W).fprop(x, w) + bias[:, None, None]
    for _ in range(2):
        np.testing.assert_array_equal(conv2d(x, w, epilogue=epilogue), expected)
    a, b = integers(40, 16), integers(16, 24)
    np.testing.assert_array_equal(tilewright.matmul(a, b, epilogue=epilogue), a @ b + bias)
