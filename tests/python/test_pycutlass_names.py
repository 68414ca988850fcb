"""The names of PyCUTLASS beside its operations: pycutlass.utils, ReferenceModule, and activations as instances."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest
from convolution_numpy import Convolution

import tilewright
from tilewright import InvalidArgument, Unsupported, pycutlass
from tilewright.pycutlass import *
from tilewright.pycutlass import cutlass, library, utils
from tilewright.pycutlass.conv2d_operation import Conv2dOperation as Conv2dOperationOfItsModule
from tilewright.pycutlass.utils import ReferenceModule, numpy_to_cutlass, to_cutlass, torch_to_cutlass
from tilewright.pycutlass.utils.device import device_cc as device_cc_of_its_module
from tilewright.pycutlass.utils.reference_model import Conv2dReferenceModule

MATH = MathInstruction([1, 1, 1], *[cutlass.float32] * 3, cutlass.OpClass.Simt, MathOperation.multiply_add)
TILE = TileDescription([32, 32, 8], 2, [2, 2, 1], MATH)


def stored(matrix: Any, layout: Any) -> Any:
    return (matrix if layout is cutlass.RowMajor else matrix.swapaxes(-1, -2)).reshape(-1).copy()


@pytest.mark.parametrize("layouts", list(itertools.product([cutlass.RowMajor, cutlass.ColumnMajor], repeat=3)))
@pytest.mark.parametrize("bias", [False, True])
def test_operations_agree_with_the_reference(layouts: tuple[Any, ...], bias: bool) -> None:
    random = np.random.default_rng(5)
    m, n, k = 24, 20, 12
    a, b, c = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    A, B, C = (TensorDescription(cutlass.float32, layout, 1) for layout in layouts)
    functor = LinearCombinationGeneric(relu(cutlass.float32), cutlass.float32, 1, cutlass.float32, cutlass.float32)
    operation = GemmOperationUniversal(80, TILE, A, B, C, functor)
    flat_a, flat_b = stored(a, layouts[0]), stored(b, layouts[1])
    of_bias = c[:1] if layouts[2] is cutlass.RowMajor else c[:, :1]  # along the lines of D
    source = of_bias.reshape(-1).copy() if bias else stored(c, layouts[2])
    d = np.full(m * n, np.nan, np.float32)
    arguments = GemmArguments(
        operation,
        cutlass.gemm.GemmCoord(m, n, k),
        flat_a,
        flat_b,
        source,
        d,
        output_op=operation.epilogue_type(2.0, -1.0),
    )
    operation.run(arguments)
    arguments.sync()
    size = cutlass.gemm.GemmCoord(m, n, k)
    reference = ReferenceModule(A, B, C).run(flat_a, flat_b, source, size, 2.0, -1.0, bias=bias)
    expected = np.maximum(2 * a @ b - (of_bias if bias else c), 0)
    np.testing.assert_array_equal(np.maximum(reference, 0), stored(expected, layouts[2]))
    np.testing.assert_array_equal(d, np.maximum(reference, 0))


def test_the_reference_takes_batches_and_integers() -> None:
    random = np.random.default_rng(6)
    a, b = random.integers(-128, 128, (3, 5, 7)).astype(np.int8), random.integers(-128, 128, (3, 7, 6)).astype(np.int8)
    byte = TensorDescription(cutlass.int8, cutlass.RowMajor, 1)
    word = TensorDescription(cutlass.int32, cutlass.RowMajor, 1)
    c = np.zeros((3, 5, 6), np.int32)
    d = ReferenceModule(byte, byte, word).run(a, b, c, cutlass.gemm.GemmCoord(5, 6, 7), batch=3)
    assert d.dtype == np.int32
    np.testing.assert_array_equal(d.reshape(3, 5, 6), a.astype(np.int32) @ b.astype(np.int32))


def test_the_reference_names_what_is_wrong() -> None:
    wide = TensorDescription(cutlass.float32, cutlass.RowMajor, 1)
    with pytest.raises(InvalidArgument, match="B must have 12 elements, got 13"):
        ReferenceModule(wide, wide, wide).run(np.zeros(8), np.zeros(13), np.zeros(6), cutlass.gemm.GemmCoord(2, 3, 4))
    tiled = TensorDescription(cutlass.int8, cutlass.ColumnMajorInterleaved32, 16)
    with pytest.raises(InvalidArgument, match="got ColumnMajorInterleaved32 for A"):
        ReferenceModule(tiled, wide, wide).run(np.zeros(8), np.zeros(12), np.zeros(6), cutlass.gemm.GemmCoord(2, 3, 4))


def test_types_are_converted() -> None:
    assert to_cutlass(np.float16) is cutlass.float16 and to_cutlass(cutlass.int8) is cutlass.int8
    assert numpy_to_cutlass(np.dtype("int32")) is cutlass.int32
    assert numpy_to_cutlass(np.complex64) is None and torch_to_cutlass("nonsense") is None
    with pytest.raises(InvalidArgument, match="unknown element type .*complex64"):
        to_cutlass(np.complex64)
    assert utils.device_cc() == device_cc()


def test_leaky_relu_as_an_instance_has_its_parameter() -> None:
    functor = LinearCombinationGeneric(
        leaky_relu(cutlass.float32), cutlass.float32, 1, cutlass.float32, cutlass.float32
    )
    assert functor.epilogue_type(1.0, 0.0, 0.5).scalars == {"leaky_alpha": 0.5}


def test_modules_of_utils() -> None:
    assert device_cc_of_its_module is device_cc and Conv2dOperationOfItsModule is Conv2dOperation
    assert utils.Conv2dReferenceModule is Conv2dReferenceModule and utils.reference_model.ReferenceModule is ReferenceModule


def test_tables_of_the_library() -> None:
    assert library.DataTypeNames[cutlass.float16] == "f16" and library.DataTypeNames[cutlass.dtype.cf64] == "cf64"
    assert (library.DataTypeSize[cutlass.dtype.s4], library.DataTypeSizeBytes[cutlass.float64]) == (4, 8)
    assert library.OpcodeClassNames[cutlass.OpClass.TensorOp] == "tensorop"
    names = [library.ShortLayoutTypeNames[each] for each in (cutlass.RowMajor, cutlass.ColumnMajor, cutlass.TensorNHWC)]
    assert names == ["t", "n", "nhwc"]
    assert {*library.__all__} <= {*vars(library)}


def test_extents_by_index() -> None:
    assert [cutlass.gemm.GemmCoord(3, 4, 5).at(index) for index in range(3)] == [3, 4, 5]
    assert [cutlass.Tensor4DCoord(1, 2, 3, 4).at(index) for index in range(4)] == [1, 2, 3, 4]
    assert [cutlass.MatrixCoord(7, 8).at(index) for index in range(2)] == [7, 8]


@pytest.mark.parametrize(
    ("kind", "bias"), [("fprop", False), ("fprop", True), ("dgrad", False), ("dgrad", True), ("wgrad", False)]
)
def test_convolutions_agree_with_the_reference(kind: str, bias: bool) -> None:
    random = np.random.default_rng(8)
    size = cutlass.conv.Conv2dProblemSize(
        cutlass.Tensor4DCoord(2, 7, 6, 4),
        cutlass.Tensor4DCoord(8, 3, 2, 4),
        cutlass.Tensor4DCoord(1, 1, 0, 0),
        cutlass.MatrixCoord(2, 1),
        cutlass.MatrixCoord(1, 1),
        cutlass.conv.Mode.cross_correlation,
        1,
        1,
    )
    operator = getattr(cutlass.conv.Operator, kind)
    operand = TensorDescription(cutlass.float32, cutlass.TensorNHWC, 4)
    operation = Conv2dOperation(
        operator,
        cutlass.conv.IteratorAlgorithm.optimized,
        80,
        TILE,
        operand,
        operand,
        operand,
        StrideSupport.Strided,
        LinearCombination(cutlass.float32, 4, cutlass.float32, cutlass.float32),
    )
    a, b, c = (
        random.integers(-4, 5, getattr(cutlass.conv, f"implicit_gemm_tensor_{name}_size")(operator, size)).astype("f4")
        for name in "abc"
    )
    channels = cutlass.conv.implicit_gemm_tensor_c_extent(operator, size).at(3)
    source, d = (c[:channels].copy() if bias else c), np.full_like(c, np.nan)
    arguments = Conv2dArguments(operation, size, a, b, source, d, operation.epilogue_type(2.0, -1.0))
    assert arguments.problem_size is size
    operation.run(arguments)
    arguments.sync()
    reference = Conv2dReferenceModule(operand, operand, operand, operator).run(a, b, source, size, 2.0, -1.0, bias)
    np.testing.assert_array_equal(d, reference)
    padded = Convolution((2, 4, 7, 6), (8, 4, 3, 2), (2, 1), (1, 0))
    nchw = {"x": (2, 7, 6, 4), "w": (8, 3, 2, 4), "y": (2, *padded.y[2:], 8)}
    names = {"fprop": "xw", "dgrad": "yw", "wgrad": "yx"}[kind]
    given = {name: each.reshape(nchw[name]).transpose(0, 3, 1, 2) for name, each in zip(names, (a, b), strict=True)}
    product = getattr(padded, kind)(*(given[name] for name in "xwy" if name in given)).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(d, (2 * product - (source if bias else c.reshape(product.shape))).reshape(-1))


@pytest.mark.parametrize("arch", [80, 90])
def test_a_warp_tile_that_needs_too_many_registers_has_more_warps(arch: int) -> None:
    if arch > device_cc():
        pytest.skip("the device is older")
    half = MathInstruction(
        [16, 8, 16], *[cutlass.float16] * 2, cutlass.float32, cutlass.OpClass.TensorOp, MathOperation.multiply_add
    )
    tile = TileDescription([128, 128, 32], 2, [2, 2, 1], half)
    unaligned = TensorDescription(cutlass.float16, cutlass.RowMajor, 1)  # goes through registers
    functor = LinearCombination(cutlass.float16, 1, cutlass.float32, cutlass.float32)
    operation = GemmOperationUniversal(arch, tile, unaligned, unaligned, unaligned, functor)
    assert operation.kernel.metadata.design.warp_count in ((4, 2, 1), (2, 4, 1))
    a, b = (np.random.default_rng(9).integers(-3, 4, shape).astype(np.float16) for shape in ((33, 17), (17, 29)))
    d = np.full((33, 29), np.nan, np.float16)
    size = cutlass.gemm.GemmCoord(33, 29, 17)
    arguments = GemmArguments(operation, size, a, b, d, d, output_op=operation.epilogue_type(1.0, 0.0))
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(d, (a.astype(np.float32) @ b).astype(np.float16))


@pytest.mark.parametrize(
    ("tile", "warps", "kernel_tile", "kernel_warps"),
    [
        ([128, 128, 64], [2, 2, 1], (128, 128, 64), (4, 2, 1)),
        ([256, 128, 64], [4, 2, 1], (128, 128, 64), (4, 2, 1)),
        ([128, 256, 64], [2, 4, 1], (128, 128, 64), (2, 4, 1)),
    ],
)
def test_serial_split_k_has_more_warps_or_a_smaller_tile(
    tile: list[int], warps: list[int], kernel_tile: tuple[int, ...], kernel_warps: tuple[int, ...]
) -> None:
    half = MathInstruction(
        [16, 8, 16], *[cutlass.float16] * 2, cutlass.float32, cutlass.OpClass.TensorOp, MathOperation.multiply_add
    )
    operand = TensorDescription(cutlass.float16, cutlass.RowMajor, 8)
    result = TensorDescription(cutlass.float32, cutlass.RowMajor, 4)
    functor = LinearCombination(cutlass.float32, 4, cutlass.float32, cutlass.float32)
    description = TileDescription(tile, 3, warps, half)
    operation = GemmOperationUniversal(80, description, operand, operand, result, functor)
    assert operation.kernel.metadata.design.tile_shape == (*tile,)
    m, n, k = 24, 40, 256
    a, b = (np.random.default_rng(7).integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    d = np.full((m, n), np.nan, np.float32)
    size, epilogue = cutlass.gemm.GemmCoord(m, n, k), operation.epilogue_type(1.0, 0.0)
    arguments = GemmArguments(operation, size, a, b, d, d, output_op=epilogue, split_k_slices=2)
    design = arguments._kernels[0].metadata.design
    assert (design.tile_shape, design.warp_count, design.split_k) == (kernel_tile, kernel_warps, 2)
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b)


@pytest.mark.parametrize(("code", "tried"), [("resources", [(2, 2, 1), (4, 2, 1)]), ("design", [(2, 2, 1)])])
def test_only_a_lack_of_resources_leads_to_more_warps(code: str, tried: list[tuple[int, ...]]) -> None:
    half = MathInstruction(
        [16, 8, 16], *[cutlass.float16] * 2, cutlass.float32, cutlass.OpClass.TensorOp, MathOperation.multiply_add
    )
    tensor = TensorDescription(cutlass.float16, cutlass.RowMajor, 8)
    functor = LinearCombination(cutlass.float16, 8, cutlass.float32, cutlass.float32)
    operation = GemmOperationUniversal(
        80, TileDescription([128, 128, 32], 2, [2, 2, 1], half), tensor, tensor, tensor, functor
    )
    warps = []

    def refuse(design: tilewright.BLASDesignMetadata) -> tilewright.Kernel:
        warps.append(design.warp_count)
        raise tilewright.RefusedDesign(f"number {len(warps)}", {"sm80_gemm": code, "sm90_gemm": "design"})

    with pytest.raises(tilewright.RefusedDesign, match="number 1"):
        operation._of_first_design(refuse, 1)
    assert warps == tried


def test_stride_supports_have_the_names_of_both_of_pycutlass_s_enumerations() -> None:
    assert cutlass.conv.StrideSupport.strided is StrideSupport.Strided
    assert cutlass.conv.StrideSupport.unity is StrideSupport.Unity


def star_import(module: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(f"from {module} import *", names)
    return names


def test_star_imports_give_what_programs_use() -> None:
    names = star_import("tilewright.pycutlass")
    assert names["pycutlass"] is pycutlass and names["np"] is np and names["cutlass"] is cutlass
    assert names["DataTypeSize"][cutlass.float16] == 16 and names["DataTypeTag"][cutlass.float16] == "cutlass::half_t"
    assert names["DataTypeTag"][cutlass.int8] == "int8_t" and names["DataTypeTag"][cutlass.uint8] == "uint8_t"
    assert names["SubstituteTemplate"]("${a}_${b}${c}", {"a": "1${b}", "b": "2"}) == "12_2${c}"
    assert names["SubstituteTemplate"]("${a}", {"a": "x${a}"}).startswith("x")
    assert ("torch" in names) == (importlib.util.find_spec("torch") is not None)
    of_tests = star_import("tilewright.pycutlass.test")
    wanted = "MathInstruction TensorDescription TileDescription Conv2dOperation LinearCombination pycutlass np cutlass"
    assert {*wanted.split()} <= {*of_tests} and of_tests["test_all_gemm"] is pycutlass.testbed.test_all_gemm
    of_epilogues = star_import("tilewright.pycutlass.epilogue")
    activations = "relu leaky_relu tanh sigmoid silu hardswish gelu identity reduction_op EpilogueVisitTree"
    for name in [*activations.split(), "LinearCombination", "FastLinearCombinationClamp"]:
        assert of_epilogues[name] is getattr(pycutlass, name)


def test_the_cache_of_pycutlass() -> None:
    pycutlass.compiler.load_from_cache()
    with pytest.raises(Unsupported, match="Tilewright's cache has the kernels that it compiles itself"):
        pycutlass.compiler.insert_operation("key", "cubin", "hostfile", "name", [])


def test_element_types_make_numbers() -> None:
    assert (cutlass.float16(1.5), cutlass.float16(0.1), cutlass.float32(0.1)) == (1.5, np.float16(0.1), np.float32(0.1))
    assert (cutlass.bfloat16(1.0), cutlass.bfloat16(1 / 3), cutlass.bfloat16(-1 / 3)) == (1.0, 0.333984375, -0.333984375)
    assert cutlass.tfloat32(1 / 3) == 0.333251953125 and cutlass.float64(0.1) == 0.1
    assert str(cutlass.bfloat16(float("inf"))) == "inf" and str(cutlass.float16(1e9)) == "inf"
    assert cutlass.int8(-128) == -128 and cutlass.uint8(255) == 255 and cutlass.int32(3.7) == 3
    assert type(cutlass.float16(2).value()) is float and type(cutlass.int8(2).value()) is int
    for make, value, message in (
        (cutlass.int8, 128, "cutlass.int8 has no 128"),
        (cutlass.uint8, -1, "cutlass.u8 has no -1"),
        (cutlass.float16, "1.5", r"cutlass.float16\(\) takes a number, got '1.5'"),
        (cutlass.int32, None, r"cutlass.int32\(\) takes a number, got None"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            make(value)
    with pytest.raises(Unsupported, match="there are no numbers of cutlass.cf32"):
        cutlass.dtype.cf32(1.0)


def test_packed_layouts_have_strides() -> None:
    extent = cutlass.MatrixCoord(3, 4)
    assert cutlass.RowMajor.packed(extent).stride() == 4 and cutlass.ColumnMajor.packed(extent).stride() == 3
    assert cutlass.RowMajor.packed(extent).capacity() == 12
    wide = cutlass.MatrixCoord(64, 96)
    assert cutlass.ColumnMajorInterleaved32.packed(wide).stride() == 32 * 64
    assert cutlass.RowMajorInterleaved32.packed(wide).stride() == 32 * 96
    assert cutlass.TensorNHWC.packed(cutlass.Tensor4DCoord(2, 3, 5, 7)).stride() == (7, 35, 105)
    with pytest.raises(InvalidArgument, match=r"RowMajor.packed\(\) takes a cutlass.MatrixCoord, got \(3, 4\)"):
        cutlass.RowMajor.packed((3, 4))
