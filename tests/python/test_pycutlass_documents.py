"""Operations and arguments as PyCUTLASS's documentation writes them, where its classes take something else.

These are arguments by position, an `output_op` with a comma after it, and cells of the tables of math instructions and
layouts."""

import numpy as np
import pytest
from pycutlass_problems import (
    BF16,
    CONFIGURATIONS,
    F16,
    F32,
    FAST_BF16,
    FAST_F32,
    HALF,
    LAYOUTS,
    ROW,
    S8,
    S32,
    TENSOR_OP,
    Configuration,
    K,
    M,
    N,
    empty,
    integers,
    matrix,
    problem,
    refused,
    run,
    simt,
)

import tilewright
from tilewright.pycutlass import (
    Conv2dArguments,
    Conv2dOperation,
    GemmArguments,
    GemmGroupedArguments,
    GemmOperationGrouped,
    GemmOperationUniversal,
    LinearCombination,
    LinearCombinationGeneric,
    MathInstruction,
    SchedulerMode,
    StrideSupport,
    TensorDescription,
    TileDescription,
    cutlass,
    relu,
)

TF32 = cutlass.tfloat32
SERIAL, IN_PARTS = cutlass.conv.SplitKMode.Serial, cutlass.conv.SplitKMode.Parallel


@pytest.fixture(params=["sm_80", "sm_90a"])
def emulator(request):
    before = tilewright.device_name()
    tilewright.configure(device=f"emulator:{request.param}")
    yield request.param
    tilewright.configure(device=before if before.startswith("emulator") else "cuda:0")


def check(operation, m=M, n=N, k=K, **more):
    (a, b, c), memory = problem(operation, m=m, n=n, k=k)
    d = empty(operation, m, n)
    run(operation, memory, d, 2, 1, size=(m, n, k), **more)
    np.testing.assert_array_equal(matrix(d, operation), 2 * a @ b + c)


def parts():
    """The tile and the descriptions of a GEMM of float32 without tensor cores, and its epilogue."""
    operation = simt()
    return (operation.tile_description, operation.A, operation.B, operation.C), operation.epilogue_functor


def test_swizzle_and_visitor_may_follow_by_position():
    descriptions, functor = parts()
    operation = GemmOperationUniversal(80, *descriptions, functor, cutlass.IdentitySwizzle2, False)
    assert not operation.visitor
    with refused("visitor=True needs an EpilogueVisitTree"):
        GemmOperationUniversal(80, *descriptions, functor, cutlass.IdentitySwizzle2, True)


def test_the_mode_of_a_grouped_operation_may_follow_by_position():
    descriptions, functor = parts()
    operation = GemmOperationGrouped(80, *descriptions, functor, cutlass.BatchedIdentitySwizzle, SchedulerMode.Device)
    assert operation.precompute_mode is SchedulerMode.Device
    _, (a, b, c) = problem(operation)
    output_op = (operation.epilogue_type(1, 1),)
    size = cutlass.gemm.GemmCoord(M, N, K)
    d = empty(operation, M, N)
    arguments = GemmGroupedArguments(operation, [size], [a], [b], [c], [d], output_op=output_op)
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(d, a @ b + c)


def test_an_output_op_may_have_a_comma_after_it():
    operation = simt()
    _, (a, b, c) = problem(operation)
    d = empty(operation, M, N)
    output_op = (operation.epilogue_type(*([3, -1] + [])),)
    arguments = GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), a, b, c, d, output_op=output_op)
    operation.run(arguments)
    arguments.sync()
    np.testing.assert_array_equal(d, 3 * a @ b - c)
    for wrong in ((), (output_op[0], output_op[0])):
        with refused("output_op is what operation.epilogue_type"):
            GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), a, b, c, d, output_op=wrong)


def test_what_follows_d_of_a_convolution_by_position():
    tile = TileDescription([32, 32, 8], 2, [1, 1, 1], simt().tile_description.math_instruction)
    tensor = TensorDescription(F32, cutlass.TensorNHWC, 1)
    functor = LinearCombination(F32, 1, F32, F32)
    kind, iterator = cutlass.conv.Operator.fprop, cutlass.conv.IteratorAlgorithm.analytic
    operation = Conv2dOperation(
        kind, iterator, 80, tile, tensor, tensor, tensor, StrideSupport.Strided, functor, cutlass.IdentitySwizzle1
    )
    size = cutlass.conv.Conv2dProblemSize(
        cutlass.Tensor4DCoord(1, 4, 4, 8),
        cutlass.Tensor4DCoord(8, 1, 1, 8),
        cutlass.Tensor4DCoord(0, 0, 0, 0),
        cutlass.MatrixCoord(1, 1),
        cutlass.MatrixCoord(1, 1),
        cutlass.conv.Mode.cross_correlation,
        1,
        1,
    )
    a, b, c = (integers(count).astype(np.float32) for count in (16 * 8, 8 * 8, 16 * 8))
    expected = 2 * (a.reshape(16, 8) @ b.reshape(8, 8).T) + c.reshape(16, 8)
    output_op = operation.epilogue_type(2, 1)
    for positional, named in (
        ((output_op,), {}),
        ((output_op, SERIAL, 1), {}),
        ((SERIAL,), {"output_op": output_op, "split_k_slices": 1}),
        ((), {"output_op": (output_op,), "split_k_mode": SERIAL}),
    ):
        d = np.full(16 * 8, np.nan, np.float32)
        arguments = Conv2dArguments(operation, size, a, b, c, d, *positional, **named)
        operation.run(arguments)
        arguments.sync()
        np.testing.assert_array_equal(d.reshape(16, 8), expected)
    assert Conv2dArguments(operation, size, a, b, c, d, output_op, IN_PARTS, 3).split_k_slices == 3
    with refused("output_op is given twice, by position after D and by name"):
        Conv2dArguments(operation, size, a, b, c, d, output_op, output_op=output_op)
    with refused("after D there may be split_k_mode, got 2 arguments"):
        Conv2dArguments(operation, size, a, b, c, d, SERIAL, 2)
    with refused("after D there may be output_op, split_k_mode, split_k_slices, got 4 arguments"):
        Conv2dArguments(operation, size, a, b, c, d, output_op, SERIAL, 1, 1)


@pytest.mark.parametrize("element", [F16, BF16, TF32])
def test_every_operation_of_16x8x8_instructions(element):
    """The kernels of f16 and bf16 are those of multiply_add, because products of their elements need no rounding."""

    def kernel(math):
        return Configuration([16, 8, 8], element, F32, F32, [32, 32, 32], 3, [1, 1, 1], math=math).operation(LAYOUTS[2])

    plain = kernel(CONFIGURATIONS["f16"].math)
    check(plain)
    for math in (HALF, FAST_BF16, FAST_F32):
        operation = kernel(math)
        if element is TF32:
            assert operation.A.element is F32
            check(operation)
        else:
            assert operation.kernel.name == plain.kernel.name


def test_dp4a():
    operation = Configuration([1, 1, 4], S8, S32, S32, [64, 32, 16], 2, [2, 2, 1], compute=S32)
    operation.op_class, operation.alignment = cutlass.OpClass.Simt, 1
    check(operation.operation(LAYOUTS[2]))
    floats = Configuration([1, 1, 4], F32, F32, F32, [64, 64, 32], 2, [2, 2, 1])
    floats.op_class = cutlass.OpClass.Simt
    with refused("the instruction of CUDA cores is 1x1x1, got 1x1x4"):
        floats.operation(LAYOUTS[2])


@pytest.mark.parametrize("index", [0, 5])
def test_tensor_cores_take_integers_of_any_layout(index, emulator):
    """Operands that are not K-major are copied, or multiplied by CUDA cores if the device has no wgmma."""
    layouts = LAYOUTS[index]
    operation = Configuration(
        [16, 8, 32], S8, S32, S32, [64, 64, 64], 3, [2, 2, 1], compute=S32, alignment=4
    ).operation(layouts)
    design = operation.kernel.metadata.design
    assert (design.op_class, design.repacks_operands) == (
        ("tensor_op", True) if emulator == "sm_90a" else ("simt", False)
    )
    check(operation, 72, 80, 96)


def test_hopper_designs_take_integers_of_any_layout():
    operation = Configuration(
        None, S8, S32, S32, [64, 64, 64], None, None, arch=90, compute=S32, cluster=[1, 1, 1]
    ).operation((ROW, ROW, ROW))
    assert operation.kernel.metadata.design.repacks_operands
    check(operation, 72, 80, 96)


def test_the_name_of_an_activation_is_refused():
    with refused(r"as relu or relu\(cutlass.float32\), not its name: got 'relu'"):
        LinearCombinationGeneric("relu", F32, 1, F32, F32)
    LinearCombinationGeneric(relu, F32, 1, F32, F32)


def test_families_that_refuse_for_one_reason_are_named_together():
    square = np.zeros((32, 32), np.float32)
    arguments = tilewright.GemmArguments(square, square, np.empty_like(square), math="multiply_add_fast_f16")
    design = tilewright.BLASDesignMetadata(
        (32, 32, 32), stages=3, warp_count=(3, 1, 1), instruction_shape=(16, 8, 8), op_class="tensor_op"
    )
    with refused("cuda_program, mlir: ") as caught:
        tilewright.make_kernel(arguments, design)
    assert caught.value.reasons["cuda_program"] == caught.value.reasons["mlir"]
