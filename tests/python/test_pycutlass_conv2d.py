"""Convolutions of `tilewright.pycutlass`: PyCUTLASS's tests by their names, on small problems and with
--every-convolution on all of its own; split-K; problem sizes; mistakes."""

import re

import numpy as np
import pytest
from convolution_numpy import Convolution
from pycutlass_convolutions import (
    DEFAULT,
    F16,
    F32,
    NUMPY,
    SMALL,
    SMALL_INTERLEAVED,
    SMALL_SPLIT_K,
    SPLIT_K,
    T32,
    TESTS,
    UNIT_TESTS,
    Test,
    problem,
    size_of,
)
from pycutlass_problems import array

import tilewright
from tilewright import InvalidArgument, Unsupported, pycutlass
from tilewright.pycutlass import (
    Conv2dArguments,
    Conv2dOperation,
    Conv2dProblemSize,
    ConvKind,
    IteratorAlgorithm,
    LinearCombination,
    LinearCombinationGeneric,
    MathInstruction,
    MathOperation,
    ReductionArguments,
    ReductionOperation,
    StrideSupport,
    TensorDescription,
    TileDescription,
    compiler,
    cutlass,
    relu,
)

SERIAL, PARALLEL = cutlass.conv.SplitKMode.Serial, cutlass.conv.SplitKMode.Parallel
CROSS_CORRELATION, CONVOLUTION = cutlass.conv.Mode.cross_correlation, cutlass.conv.Mode.convolution


@pytest.fixture(autouse=True)
def device(has_gpu):
    """A GPU, or the emulator of the older architecture, whose problems are smaller."""
    before = tilewright.device_name()
    tilewright.configure(device="cuda:0" if has_gpu else "emulator:sm_80")
    yield
    tilewright.configure(device=before if before.startswith("emulator") else "cuda:0")


def refused(message, kind=InvalidArgument):
    return pytest.raises(kind, match=message)


def integers(shape, seed, most=2):
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.float64)


def nhwc(array):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1))


def blocks_of_images(array):
    """NC32HW32 of NCHW."""
    n, c, h, w = array.shape
    return np.ascontiguousarray(array.reshape(n, c // 32, 32, h, w).transpose(0, 1, 3, 4, 2))


def blocks_of_filters(array):
    """C32RSK32 of KCRS."""
    k, c, r, s = array.shape
    return np.ascontiguousarray(array.reshape(k, c // 32, 32, r, s).transpose(1, 3, 4, 0, 2))


class Problem:
    """Operands of a problem, packed NHWC in the order A, B, C and D, and the product."""

    def __init__(self, test, size, most=2):
        x, w, y = (
            (extent.n(), extent.c(), extent.h(), extent.w())
            for extent in (size.activation_extent(), size.filter_extent(), size.output_extent())
        )
        numbers = (size.stride_h, size.stride_w), (size.pad_h, size.pad_w), (size.dilation_h, size.dilation_w)
        conv = Convolution(x, w, *numbers, groups=size.groups)
        conv.y = y  # CUTLASS rounds otherwise
        shapes = {"fprop": (x, w, y), "dgrad": (y, w, x), "wgrad": (y, x, w)}[test.kind]
        a, b, c = (integers(shape, seed, most) for seed, shape in enumerate(shapes))
        mirrored = size.mode is CONVOLUTION

        def flipped(filters):
            return filters[:, :, ::-1, ::-1] if mirrored else filters

        if test.kind == "fprop":
            self.product = conv.fprop(a, flipped(b))
        elif test.kind == "dgrad":
            self.product = conv.dgrad(flipped(b), a)
        else:
            self.product = flipped(conv.wgrad(b, a))
        order = [blocks_of_images if test.is_interleaved else nhwc] * 3
        if test.is_interleaved:
            order[1] = blocks_of_filters
        self.product, self.source = order[2](self.product), order[2](c)
        self.a, self.b = array(order[0](a), test.operands), array(order[1](b), test.operands)
        self.c = array(order[2](c), test.output)
        nothing = np.nan if test.output in (F16, F32, cutlass.float64) else 99
        self.d = np.full(self.product.shape, nothing, NUMPY[test.output])


def check(test, operation, size, mode=SERIAL, slices=1, alpha=1.0, beta=0.0):
    made = Problem(test, size, most=1 if test.accumulator is F16 else 2)
    arguments = Conv2dArguments(
        operation,
        size,
        made.a,
        made.b,
        made.c,
        made.d,
        mode,
        output_op=operation.epilogue_type(alpha, beta),
        split_k_slices=slices,
    )
    assert operation.run(arguments) == 0
    arguments.sync()
    expected = alpha * made.product + beta * made.source
    if test.output is cutlass.int8:
        expected = np.clip(expected, -128, 127)
    np.testing.assert_array_equal(made.d, expected.astype(made.d.dtype))
    return arguments


@pytest.fixture(scope="module")
def operations(has_gpu):
    """An operation for each test."""
    return {test.id: test.operation() for test in (*TESTS, *UNIT_TESTS)}


def named(name, tests=(*TESTS, *UNIT_TESTS)):
    return next(test for test in tests if test.id == name)


# Small tiles on CUDA cores, whose kernels are compiled quickly.
QUICK = {
    kind: Test(
        "quick", kind, kind, "optimized", "Strided", (1, 1, 1), (32, 32, 8), 2, (1, 1, 1), F32, F32, F32, (1, 1, 1)
    )
    for kind in ("fprop", "dgrad", "wgrad")
}

# The operations that every test run computes with; the others are only made, unless --every-convolution is given.
OFTEN = [
    "dgrad_f16_f32-Dgrad_Optimized_unity_stride_stage3",
    "dgrad_simt_f32-Dgrad_Analytic",
    "dgrad_tf32-Dgrad_Optimized",
    "fprop_f16_f32-Fprop_Analytic",
    "fprop_few_channels_f16-Fprop_channels_2",
    "fprop_fixed_channels_f16-Fprop_channels_4",
    "fprop_simt_f32-Fprop_Optimized",
    "strided_dgrad_f16_f32-Strided_Dgrad_Optimized_128x128_32x3",
    "wgrad_f16_f32-Wgrad_Optimized",
    "wgrad_simt_f32-Wgrad_Analytic",
    "sm80-fprop_s8",
    "sm80-fprop_s8_interleaved",
]


def problems_of(test, is_full):
    """The problems of a test: its own, and the default ones where it takes them."""
    is_unity = test.kind == "dgrad" and test.stride == "Unity"
    default = DEFAULT if is_full else SMALL
    if test.is_interleaved:  # PyCUTLASS skips the problems whose filters are no multiple of 32
        default = [each for each in DEFAULT if each[1][0] % 32 == 0] if is_full else SMALL_INTERLEAVED
    chosen = [each for each in default if not is_unity or each[3] == (1, 1)] if test.takes_default_problems else []
    if test.kind == "dgrad" and test.stride == "Strided" and not is_full:
        chosen = [each for each in chosen if each[3] != (1, 1)]
    own = [*test.problems]
    if not is_full:
        own = own[:2] if "strided" not in test.file else []
        own = [each for each in own if each[0][1] <= 16]
    if not chosen and not own:
        channels = 8 if test.operands is F16 else 4
        own = [problem((1, 4, 4, channels), (8, 3, 3), 1)]
    return chosen + own


@pytest.mark.parametrize("test", [*TESTS, *UNIT_TESTS], ids=lambda test: test.id)
def test_by_name(test, operations, request):
    is_full = request.config.getoption("--every-convolution")
    operation = operations[test.id]
    assert operation.kernel is not None
    if not is_full and test.id not in OFTEN:
        return
    for given in problems_of(test, is_full):
        check(test, operation, size_of(given), alpha=1.0, beta=2.0)
    takes_split_k = test.takes_default_problems and "strided" not in test.file
    if takes_split_k and is_full:
        for mode in (PARALLEL, SERIAL):
            for slices in (1, 2, 3, 4, 201):
                check(test, operation, size_of(SPLIT_K), mode, slices, 2.0, 2.0)


@pytest.mark.parametrize("mode", [SERIAL, PARALLEL])
@pytest.mark.parametrize(
    "name", ["fprop_simt_f32-Fprop_Optimized", "dgrad_simt_f32-Dgrad_Analytic", "wgrad_f16_f32-Wgrad_Optimized"]
)
def test_split_k(name, mode, operations):
    test = named(name)
    for slices in (2, 201) if mode is PARALLEL else (3,):
        arguments = check(test, operations[name], size_of(SMALL_SPLIT_K), mode, slices, 2.0, 2.0)
        split_k = arguments.kernel.metadata.design.split_k
        assert split_k == 1 if mode is PARALLEL else 1 < split_k <= slices


@pytest.mark.parametrize("mode", [CROSS_CORRELATION, CONVOLUTION])
def test_parts_of_k_with_padding_strides_and_dilations(mode):
    """Parts begin where rows of the filter, or of pixels, do; these are not at the first row of the activation."""
    for kind, test in QUICK.items():
        operation, stride = test.operation(), 1 if kind == "dgrad" else 2
        for images, pad in ((1, 3), (2, 0))[: 2 if mode is CROSS_CORRELATION else 1]:
            positions = (9 + 2 * pad - 7) // stride + 1, (10 - 3) // stride + 1
            numbers = (pad, 1, stride, stride, 2, 2)
            size = Conv2dProblemSize(images, 9, 8, 4, 8, 4, 2, *positions, *numbers, mode)
            check(test, operation, size, PARALLEL, 3)


def test_groups_and_bias():
    test = QUICK["fprop"]
    operation = test.operation()
    size = Conv2dProblemSize(
        cutlass.Tensor4DCoord(1, 5, 5, 8),
        cutlass.Tensor4DCoord(12, 3, 3, 4),
        cutlass.Tensor4DCoord(1, 1, 1, 1),
        cutlass.MatrixCoord(1, 1),
        cutlass.MatrixCoord(1, 1),
        CROSS_CORRELATION,
        1,
        2,
    )
    check(test, operation, size)
    made = Problem(test, size)
    bias = np.arange(12, dtype=np.float32)
    arguments = Conv2dArguments(
        operation, size, made.a, made.b, bias, made.d, output_op=operation.epilogue_type(1.0, 2.0)
    )
    assert arguments.bias
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(made.d, made.product + 2 * bias)
    with refused("SplitKMode.Parallel is for convolutions without groups, got groups=2", Unsupported):
        Conv2dArguments(operation, size, made.a, made.b, None, made.d, PARALLEL, split_k_slices=2)


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_bias_for_each_channel_in_wgrad(groups, is_given):
    test = QUICK["wgrad"]
    operation = test.operation()
    size = Conv2dProblemSize(
        cutlass.Tensor4DCoord(2, 6, 5, 8),
        cutlass.Tensor4DCoord(4, 3, 2, 8 // groups),
        cutlass.Tensor4DCoord(1, 0, 1, 0),
        cutlass.MatrixCoord(1, 1),
        cutlass.MatrixCoord(1, 1),
        CROSS_CORRELATION,
        1,
        groups,
    )
    made = Problem(test, size)
    channels = 8 // groups
    for bias in (np.arange(channels, dtype=np.float32), np.arange(6 * channels, dtype=np.float32)):
        arguments = Conv2dArguments(
            operation, size, made.a, made.b, bias, made.d, output_op=operation.epilogue_type(1.0, 2.0), bias=is_given
        )
        assert arguments.bias
        for step in range(2):
            bias += step  # each run reads it
            made.d[...] = np.nan
            operation.run(arguments)
            arguments.sync()
            np.testing.assert_array_equal(made.d, made.product + 2 * np.resize(bias, (3, 2, channels)))
    with refused("C needs 4 elements" if groups == 2 else "C needs 8 elements"):
        Conv2dArguments(
            operation, size, made.a, made.b, np.ones(3, np.float32), made.d,
            output_op=operation.epilogue_type(1.0, 2.0), bias=True,
        )  # fmt: skip


def test_a_bias_for_each_channel_in_wgrad_with_parallel_split_k():
    test = QUICK["wgrad"]
    operation = test.operation()
    size = size_of(SMALL_SPLIT_K)
    made = Problem(test, size)
    bias = np.arange(size.C, dtype=np.float32)
    arguments = Conv2dArguments(
        operation, size, made.a, made.b, bias, made.d, PARALLEL, output_op=operation.epilogue_type(1.0, 1.0),
        split_k_slices=3,
    )  # fmt: skip
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(made.d, made.product + bias)
    reduction = ReductionOperation(cutlass.MatrixCoord(4, 128), TensorDescription(F32, cutlass.TensorNHWC, 1), F32)
    extents = [arguments.gemm_size.m(), arguments.gemm_size.n()]
    reduced = ReductionArguments(
        reduction, extents, 3, arguments.ptr_D, made.d, bias, output_op=reduction.epilogue_type(2.0, -1.0), bias=True
    )
    operation.run(arguments)
    reduction.run(reduced)
    reduced.sync()
    np.testing.assert_array_equal(made.d, 2 * made.product - bias)


def test_contradictory_problem_sizes_are_refused():
    def made(channels=8, padding=(1, 1, 1, 1), groups=1):
        return Conv2dProblemSize(
            cutlass.Tensor4DCoord(1, 8, 8, 16),
            cutlass.Tensor4DCoord(8, 3, 3, channels),
            cutlass.Tensor4DCoord(*padding),
            cutlass.MatrixCoord(1, 1),
            cutlass.MatrixCoord(1, 1),
            CROSS_CORRELATION,
            1,
            groups,
        )

    with refused("filter_size has C = 24, but the C of input_size is 16"):
        made(24)
    with refused("filter_size has C = 16, but the C of input_size is 16 / 2 groups = 8"):
        made(16, groups=2)
    for padding, message in (((1, 2, 1, 1), "got 1 and 2 for pad_h"), ((0, 0, 0, 3), "got 0 and 3 for pad_w")):
        with refused(f"padding must be the same on both sides, {message}"):
            made(16, padding)
    short = made(8, (2, 0, 1, 0), 2)  # as PyCUTLASS's tests write it
    assert (short.pad_h, short.pad_w) == (2, 1)


def test_an_activation_and_a_bias_after_parallel_split_k():
    test = QUICK["fprop"]
    plain = test.operation()
    operation = Conv2dOperation(
        ConvKind.fprop,
        IteratorAlgorithm.optimized,
        80,
        plain.tile_description,
        plain.A,
        plain.B,
        plain.C,
        StrideSupport.Strided,
        LinearCombinationGeneric(relu, F32, 1, F32, F32),
    )
    compiler.add_module([operation])
    size = size_of(problem((1, 5, 5, 8), (8, 3, 3), 1))
    made = Problem(test, size)
    bias = np.arange(8, dtype=np.float32)
    for mode in (SERIAL, PARALLEL):
        made.d[...] = np.nan
        arguments = Conv2dArguments(
            operation,
            size,
            made.a,
            made.b,
            bias,
            made.d,
            mode,
            output_op=operation.epilogue_type(1.0, 1.0),
            split_k_slices=2,
        )
        operation.run(arguments)
        arguments.sync()
        np.testing.assert_array_equal(made.d, np.maximum(made.product + bias, 0))


@pytest.mark.parametrize("layout", [cutlass.TensorNHWC, cutlass.RowMajor])
def test_a_reduction_operation_after_parallel_split_k(layout):
    """PyCUTLASS's example passes the description of the convolution's C, which is a TensorNHWC."""
    test = QUICK["wgrad"]
    operation = test.operation()
    size = size_of(SMALL_SPLIT_K)
    made = Problem(test, size)
    arguments = Conv2dArguments(
        operation, size, made.a, made.b, made.c, made.d, PARALLEL, output_op=operation.epilogue_type(1.0, 0.0),
        split_k_slices=3,
    )  # fmt: skip
    reduction = ReductionOperation(
        cutlass.MatrixCoord(4, 32 * 4), TensorDescription(F32, layout, 4), F32, element_compute=F32
    )
    m, n = arguments.gemm_size.m(), arguments.gemm_size.n()
    reduced = ReductionArguments(
        reduction, [m, n], 3, arguments.ptr_D, made.d, made.c, output_op=reduction.epilogue_type(2.0, -1.0)
    )
    with refused("the operation of this workspace was not run yet"):
        reduction.run(reduced)
    operation.run(arguments)
    assert np.isnan(made.d).all(), "D is left to the reduction"
    reduction.run(reduced)
    reduced.sync()
    np.testing.assert_array_equal(made.d, 2 * made.product - made.source)
    plain = Conv2dArguments(operation, size, made.a, made.b, None, made.d)
    with refused("ptr_D needs SplitKMode.Parallel and several split_k_slices, got Serial and 1"):
        plain.ptr_D  # noqa: B018


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_filters_of_wgrad_may_be_less_aligned_than_their_description(channels, has_gpu):
    """PyCUTLASS's run_all_example.sh has one channel, and an alignment of 4 for C."""
    test = Test(
        "few channels", "few", "wgrad", "optimized", "Strided", (16, 8, 8), (128, 128, 32), 3, (2, 2, 1), F32, F32, F32,
        (1, 1, 4),
    )  # fmt: skip
    size = size_of(((1, 8, 8, channels), (3, 3, 3), (1, 1), (1, 1)))
    operation = test.operation()
    check(test, operation, size)
    check(test, operation, size, mode=PARALLEL, slices=2, alpha=2.0, beta=-1.0)


def test_the_tensor_cores_of_sm_90(operations, has_gpu):
    """With arch=90 stages, warps and instruction are chosen, as for GEMMs."""
    tilewright.configure(device="cuda:0" if has_gpu else "emulator:sm_90a")
    if pycutlass.device_cc() < 90:
        pytest.skip("the GPU is older")
    math = MathInstruction(None, F16, F16, F32, cutlass.OpClass.TensorOp, MathOperation.multiply_add)
    a, b, c = (
        TensorDescription(element, cutlass.TensorNHWC, alignment)
        for element, alignment in ((F16, 8), (F16, 8), (F32, 4))
    )
    operation = Conv2dOperation(
        ConvKind.fprop,
        IteratorAlgorithm.optimized,
        90,
        TileDescription([128, 64, 64], None, None, math),
        a,
        b,
        c,
        StrideSupport.Strided,
        LinearCombination(F32, 4, F32, F32),
    )
    assert operation.kernel.name.startswith("sm90_gemm")
    check(named("fprop_f16_f32-Fprop_Analytic"), operation, size_of(problem((1, 6, 6, 64), (16, 3, 3), 1)))


def test_names(operations):
    names = {test.id: operations[test.id].procedural_name() for test in (*TESTS, *UNIT_TESTS)}
    assert names["fprop_f16_f32-Fprop_Analytic"] == (
        "cutlass_sm80_tensorop_s16x8x16fprop_analytic_f16_128x128_64x3_nhwc_align8"
    )
    assert names["dgrad_f16_f16-Dgrad_Optimized_align4"] == (
        "cutlass_sm80_tensorop_h16x8x16dgrad_optimized_128x128_64x3_nhwc_unity_stride_align4"
    )
    assert names["wgrad_simt_f32-Wgrad_Analytic"] == "cutlass_sm80_simt_swgrad_analytic_128x128_8x4_nhwc_align4"
    operation = operations["fprop_f16_f32-Fprop_Analytic"]
    assert operation.rt_module.name() == operation.configuration_name() == operation.procedural_name()
    assert "im2col" in operation.rt_module.emit().lower()
    assert operation.operation_kind.name == "Conv2d"
    assert (len(TESTS), len(UNIT_TESTS)) == (43, 32)
    assert len({*names.values()}) > 60


def test_kernels_have_the_described_tile_where_registers_suffice(operations):
    smaller = [test.id for test in TESTS if operations[test.id].kernel.metadata.design.tile_shape != test.tile]
    assert smaller == [
        "strided_dgrad_f16_f32-Strided_Dgrad_Analytic_128x256_64x3",
        "fprop_few_channels_f16-Fprop_channels_1",  # single elements go through registers
    ]
    few = operations["fprop_few_channels_f16-Fprop_channels_1"]
    assert few.kernel.metadata.design.op_class == "tensor_op"


def test_problem_sizes():
    size = size_of(problem((2, 7, 9, 64), (8, 5, 3), (1, 2), (2, 1)))
    assert (size.N, size.H, size.W, size.C, size.K, size.R, size.S) == (2, 7, 9, 64, 8, 5, 3)
    assert (size.P, size.Q) == (3, 11)
    assert size.output_extent() == cutlass.Tensor4DCoord(2, 3, 11, 8)
    assert (size.activation_size(), size.filter_size(), size.output_size()) == (2 * 7 * 9 * 64, 8 * 15 * 64, 2 * 33 * 8)
    conv = cutlass.conv
    for kind, extents in (("fprop", (66, 8, 960)), ("dgrad", (126, 64, 120)), ("wgrad", (8, 960, 66))):
        gemm = conv.implicit_gemm_problem_size(ConvKind[kind], size)
        assert (gemm.m(), gemm.n(), gemm.k()) == extents
    assert conv.implicit_gemm_tensor_a_size(ConvKind.wgrad, size) == size.output_size()
    assert conv.implicit_gemm_tensor_b_extent(ConvKind.wgrad, size) == size.activation_extent()
    assert conv.implicit_gemm_tensor_c_extent(ConvKind.dgrad, size) == size.activation_extent()
    assert size.reset_split_k_slices(3).split_k_slices == 3 and size.split_k_slices == 1
    short = Conv2dProblemSize(1, 7, 8, 64, 7, 8, 8, 3, 3, CROSS_CORRELATION)
    assert (short.pad_h, short.pad_w, short.stride_h, short.P, short.Q, short.K) == (1, 1, 1, 7, 8, 8)
    # As in CUTLASS, the dilated filter counts as R * dilation_h rows.
    dilated = Conv2dProblemSize(
        cutlass.Tensor4DCoord(1, 9, 9, 4),
        cutlass.Tensor4DCoord(4, 3, 3, 2),
        cutlass.Tensor4DCoord(0, 0, 0, 0),
        cutlass.MatrixCoord(1, 1),
        cutlass.MatrixCoord(2, 1),
        CONVOLUTION,
        2,
        2,
    )
    assert (dilated.P, dilated.Q, dilated.split_k_slices, dilated.groups) == (4, 7, 2, 2)
    assert dilated.mode is CONVOLUTION and "convolution, 2, 2)" in repr(dilated)


def test_given_positions_may_exceed_the_formula():
    """CUTLASS's problems 36 and 37: pixels outside the activation are zeros."""
    size = Conv2dProblemSize(2, 4, 5, 8, 8, 3, 6, 3, 3, 0, 0, 1, 1, 1, 1, CROSS_CORRELATION)
    assert (size.P, size.Q) == (3, 3)  # the formula gives 2 x 0
    x, w = integers((2, 4, 5, 8), 0), integers((8, 3, 6, 8), 1)
    d = np.full((2, 3, 3, 8), np.nan, np.float32)
    operation = QUICK["fprop"].operation()
    arguments = Conv2dArguments(operation, size, x.astype(np.float32), w.astype(np.float32), None, d)
    operation.run(arguments)
    arguments.sync()
    wide = np.zeros((2, 5, 8, 8))
    wide[:, :4, :5] = x
    expected = Convolution((2, 8, 5, 8), (8, 8, 3, 6)).fprop(wide.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(d, nhwc(expected))


def test_interleaved_tensors_with_bias_activation_and_split_k():
    test = replaced(named("sm80-fprop_s8_interleaved"), tile=(64, 64, 32), stages=3, warps=(2, 2, 1))
    plain = test.operation()
    operation = Conv2dOperation(
        ConvKind.fprop,
        IteratorAlgorithm.optimized,
        80,
        plain.tile_description,
        plain.A,
        plain.B,
        plain.C,
        StrideSupport.Strided,
        LinearCombinationGeneric(relu, cutlass.int8, 8, cutlass.int32, F32),
    )
    size = size_of(SMALL_INTERLEAVED[1])
    made = Problem(test, size)
    bias = np.arange(-32, 32, dtype=np.int8)
    arguments = Conv2dArguments(
        operation, size, made.a, made.b, bias, made.d, output_op=operation.epilogue_type(1.0, 2.0)
    )
    assert arguments.bias and arguments.reorder_tensor_B(made.b, size) is made.b
    operation.run(arguments)
    arguments.sync()
    expected = made.product + 2.0 * bias.reshape(1, 2, 1, 1, 32)
    np.testing.assert_array_equal(made.d, np.clip(expected, 0, 127).astype(np.int8))
    for mode in (SERIAL, PARALLEL):
        split = check(test, plain, size, mode, 2, 1.0, 1.0)
        assert split.kernel.metadata.design.split_k == 2
    with refused("convolutions of TensorNC32HW32 write D in one launch", Unsupported):
        split.ptr_D  # noqa: B018
    with refused("A is TensorNC32HW32: it needs a multiple of 32 channels, got 48"):
        Conv2dArguments(operation, size_of(problem((1, 4, 4, 48), (32, 3, 3))), made.a, made.b, None, made.d)


def replaced(test, **changes):
    return Test(**{**test.__dict__, **changes})


def test_operations_are_refused():
    test = named("fprop_f16_f32-Fprop_Analytic")
    operation = test.operation()
    nhwc_tensor = TensorDescription(F16, cutlass.TensorNHWC, 8)
    with refused("IteratorAlgorithm.few_channels is for fprop, got wgrad"):
        replaced(test, kind="wgrad", algorithm="few_channels").operation()
    with refused("IteratorAlgorithm.fixed_channels is for fprop, got dgrad"):
        replaced(test, kind="dgrad", algorithm="fixed_channels").operation()
    with refused("StridedDgradIdentitySwizzle1 is for dgrad with StrideSupport.Strided, got fprop"):
        replaced(test, swizzle=cutlass.StridedDgradIdentitySwizzle1).operation()
    with refused("conv_kind must be an Operator, got 'fprop'"):
        Conv2dOperation("fprop", IteratorAlgorithm.analytic, 80, None, None, None, None, None, None)
    functor = LinearCombination(F32, 4, F32, F32)
    with refused("A is RowMajor: a convolution takes TensorNHWC"):
        Conv2dOperation(
            ConvKind.fprop,
            IteratorAlgorithm.analytic,
            80,
            operation.tile_description,
            TensorDescription(F16, cutlass.RowMajor, 8),
            nhwc_tensor,
            TensorDescription(F32, cutlass.TensorNHWC, 4),
            StrideSupport.Strided,
            functor,
        )
    with refused("the epilogue's output is float32, but C and D are float16"):
        Conv2dOperation(
            ConvKind.fprop,
            IteratorAlgorithm.analytic,
            80,
            operation.tile_description,
            nhwc_tensor,
            nhwc_tensor,
            nhwc_tensor,
            StrideSupport.Strided,
            functor,
        )
    with refused("no kernel has this design: sm80_gemm: "):
        replaced(test, tile=(100, 100, 64)).operation()
    with refused("TensorNHWC is for convolutions"):
        nhwc_tensor.attributes  # noqa: B018
    with refused("TensorNC32HW32 is for convolutions"):
        TensorDescription(cutlass.int8, cutlass.TensorNC32HW32, 16).attributes  # noqa: B018
    interleaved = named("sm80-fprop_s8_interleaved")
    with refused("TensorNC32HW32 is for fprop, got wgrad"):
        replaced(interleaved, kind="wgrad").operation()
    with refused("A is float16 and TensorNC32HW32"):
        replaced(
            interleaved, operands=F16, accumulator=F32, instruction=(16, 8, 16), math=MathOperation.multiply_add
        ).operation()


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "fprop_fixed_channels_f16-Fprop_channels_4",
            ((1, 8, 8, 8), (16, 3, 3)),
            "fixed_channels needs C = 4, .* got 8",
        ),
        (
            "fprop_few_channels_f16-Fprop_channels_2",
            ((1, 8, 8, 3), (16, 3, 3)),
            "C must be a multiple of 2, the alignment of A, got 3",
        ),
        (
            "fprop_f16_f16-Fprop_Optimized",
            ((1, 8, 8, 12), (16, 3, 3)),
            "C must be a multiple of 8, the alignment of A, got 12",
        ),
        (
            "fprop_f16_f16-Fprop_Optimized",
            ((1, 8, 8, 8), (12, 3, 3)),
            "K must be a multiple of 8, the alignment of C, got 12",
        ),
        (
            "dgrad_f16_f16-Dgrad_Optimized",
            ((1, 8, 8, 8), (12, 3, 3)),
            "K must be a multiple of 8, the alignment of A, got 12",
        ),
        (
            "wgrad_f16_f16-Wgrad_Optimized",
            ((1, 8, 8, 12), (16, 3, 3)),
            "C must be a multiple of 8, the alignment of B, got 12",
        ),
        (
            "fprop_f16_f16-Fprop_Optimized",
            ((1, 40, 40, 8), (16, 33, 3)),
            "optimized is for filters of at most 32 taps along an axis, got 33 x 3",
        ),
        (
            "dgrad_f16_f16-Dgrad_Optimized",
            ((1, 9, 9, 8), (16, 3, 3), 0, 2),
            "StrideSupport.Unity needs strides of 1 in dgrad, got 2 x 2",
        ),
    ],
)
def test_problems_are_refused(name, given, message, operations):
    operation = operations[name]
    size = size_of(problem(*given))
    with refused(message):
        Conv2dArguments(operation, size, None, None, None, None)


def test_arguments_are_refused(operations):
    name = "fprop_simt_f32-Fprop_Optimized"
    operation = operations[name]
    size = size_of(problem((1, 5, 5, 8), (8, 3, 3), 1))
    made = Problem(named(name), size)
    given = [operation, size, made.a, made.b, None, made.d]
    with refused("A is f64, but the operation takes f32"):
        Conv2dArguments(operation, size, made.a.astype(np.float64), *given[3:])
    with refused(r"B needs 576 elements \(2304 bytes\), got 575"):
        Conv2dArguments(operation, size, made.a, made.b.reshape(-1)[1:], *given[4:])
    with refused("C is None, but beta is 1.0"):
        Conv2dArguments(*given, output_op=operation.epilogue_type(1.0, 1.0))
    with refused("split_k_slices of a Conv2dProblemSize must be at least 1, got 0"):
        Conv2dArguments(*given, split_k_slices=0)
    with refused("problem_size must be a cutlass.conv.Conv2dProblemSize, got None"):
        Conv2dArguments(operation, None, *given[2:])
    with refused("the arguments of another operation"):
        named(name).operation().run(Conv2dArguments(*given))
    with refused("D is read-only"):
        read_only = made.d.copy()
        read_only.flags.writeable = False
        Conv2dArguments(*given[:5], read_only)
    for values, message in (
        ((1, 2), "mode must be a cutlass.conv.Mode, got 2"),
        ((1, 2, CROSS_CORRELATION), "takes three or 15 extents, got 2"),
        ((1, 7, 8, 64, 7, 8, 8, 0, 3, CROSS_CORRELATION), "R of a Conv2dProblemSize must be at least 1, got 0"),
        ((-1, 7, 8, 64, 7, 8, 8, 3, 3, CROSS_CORRELATION), "N of a Conv2dProblemSize must be at least 0, got -1"),
        ((1, 7, 8, 64, 7, 8, 8, "3", 3, CROSS_CORRELATION), "R of a Conv2dProblemSize must be an integer, got '3'"),
    ):
        with refused(re.escape(message)):
            Conv2dProblemSize(*values)
    with refused("C = 64 and K = 8 must be multiples of groups = 3"):
        Conv2dProblemSize(1, 7, 8, 64, 7, 8, 8, 3, 3, CROSS_CORRELATION, groups=3)


def test_the_matrix_of_tests_is_that_of_pycutlass():
    counts = {}
    for test in TESTS:
        counts[test.file] = counts.get(test.file, 0) + 1
    assert T32 == (128, 128, 32)
    assert counts == {
        "dgrad_f16_f16": 4,
        "dgrad_f16_f32": 4,
        "dgrad_simt_f32": 2,
        "dgrad_tf32": 2,
        "fprop_few_channels_f16": 2,
        "fprop_fixed_channels_f16": 3,
        "fprop_f16_f16": 5,
        "fprop_f16_f32": 1,
        "fprop_simt_f32": 2,
        "fprop_tf32": 2,
        "strided_dgrad_f16_f32": 5,
        "wgrad_f16_f16": 2,
        "wgrad_f16_f32": 5,
        "wgrad_simt_f32": 2,
        "wgrad_tf32": 2,
    }
