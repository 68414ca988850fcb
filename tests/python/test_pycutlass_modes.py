"""PyCUTLASS's modes: batches, arrays of matrices, split-K."""

import numpy as np
import pytest
from pycutlass_problems import (
    ARRAY,
    BATCHED,
    COLUMN,
    CONFIGURATIONS,
    F32,
    GEMM,
    PARALLEL,
    ROW,
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

from tilewright import pycutlass
from tilewright.errors import InvalidArgument
from tilewright.pycutlass import (
    GemmArguments,
    LinearCombinationGeneric,
    ReductionArguments,
    ReductionOperation,
    cutlass,
    relu,
)


@pytest.mark.parametrize("name", ["simt_f32", "f16"])
@pytest.mark.parametrize("mode", [BATCHED, ARRAY])
@pytest.mark.parametrize("layouts", [(ROW, ROW, ROW), (COLUMN, ROW, COLUMN)])
def test_a_batch(name, mode, layouts):
    operation = CONFIGURATIONS[name].operation(layouts, swizzle=cutlass.BatchedIdentitySwizzle)
    (a, b, c), memory = problem(operation, batch=3)
    d = empty(operation, 3, M, N)
    run(operation, memory, d, 1.0, -1.0, gemm_mode=mode, batch=3)
    assert np.array_equal(matrix(d, operation), a @ b - c)


def test_an_array_of_lists():
    operation = simt()
    (a, b, c), memory = problem(operation, batch=3)
    d = [empty(operation, M, N) for _ in range(3)]
    run(operation, [[*memory[0]], memory[1], [*memory[2]]], d, 1.0, -1.0, gemm_mode=ARRAY)
    assert np.array_equal(np.stack(d), a @ b - c)


@pytest.mark.parametrize("mode", [GEMM, PARALLEL])
@pytest.mark.parametrize("slices", [{"split_k_slices": 3}, {"split_k_splices": 3}])
def test_split_k_argument(mode, slices):
    operation = simt()
    (a, b, c), memory = problem(operation)
    d = empty(operation, M, N)
    arguments = run(operation, memory, d, 2.0, 1.0, gemm_mode=mode, **slices)
    assert arguments.split_k_slices == 3
    assert np.array_equal(d, 2 * a @ b + c)


def designs_of(arguments):
    return [kernel.metadata.design for kernel in arguments._kernels]


@pytest.mark.parametrize("name", ["simt_f32", "simt_f64", "simt_s8", "f16", "bf16_to_bf16", "tf32", "s8"])
@pytest.mark.parametrize("slices", [2, 5])
def test_mode_gemm_splits_k_among_ctas(name, slices):
    operation = CONFIGURATIONS[name].operation(CONFIGURATIONS[name].layouts[0])
    (a, b, c), memory = problem(operation, k=160, most=2)
    d = empty(operation, M, N)
    arguments = run(operation, memory, d, 1.0, 1.0, size=(M, N, 160), split_k_slices=slices)
    assert [design.split_k for design in designs_of(arguments)] == [slices]
    assert operation.kernel.metadata.design.split_k == 1
    assert np.array_equal(matrix(d, operation), a @ b + c)


def test_other_modes_do_not_split_k_among_ctas():
    operation = simt()
    _, memory = problem(operation)
    arguments = run(operation, memory, empty(operation, M, N), 1.0, 0.0, gemm_mode=PARALLEL, split_k_slices=2)
    assert [design.split_k for design in designs_of(arguments)] == [1]


def test_a_design_that_cannot_split_k_is_refused():
    operation = CONFIGURATIONS["f16_in_f16"].operation(CONFIGURATIONS["f16_in_f16"].layouts[0])
    _, memory = problem(operation, most=2)
    d = empty(operation, M, N)
    with refused("with split_k_slices = 2: .*split-K accumulates in f32, f64 or s32, not in f16"):
        run(operation, memory, d, 1.0, 0.0, split_k_slices=2)
    simt_operation = simt()
    _, memory = problem(simt_operation)
    with refused("with split_k_slices = 1000000: .*split_k must be from 1 to [0-9]+"):
        run(simt_operation, memory, empty(simt_operation, M, N), 1.0, 0.0, split_k_slices=1000000)


def split(operation, memory, d, slices, size=(M, N, K)):
    """Runs the GEMM in mode GemmSplitKParallel; returns its workspace."""
    arguments = GemmArguments(
        operation, cutlass.gemm.GemmCoord(*size), *memory, d, gemm_mode=PARALLEL, split_k_slices=slices
    )
    workspace = arguments.ptr_D
    operation.run(arguments)
    arguments.sync()
    return workspace


def reduction_of(operation, functor=None, **more):
    return ReductionOperation(
        shape=cutlass.MatrixCoord(4, 32 * operation.C.alignment),
        C=operation.C,
        element_accumulator=operation.accumulator_type(),
        element_compute=operation.epilogue_functor.element_epilogue,
        epilogue_functor=functor or operation.epilogue_functor,
        count=operation.C.alignment,
        **more,
    )


def reduce(reduction, workspace, slices, d, c, *scalars, **more):
    arguments = ReductionArguments(
        reduction, [M, N], slices, workspace, d, c, output_op=reduction.epilogue_type(*scalars), **more
    )
    assert reduction.run(arguments) == 0
    arguments.sync()


def partial_sums(workspace, operation):
    """The partial sums in host memory, of the shape (count, M, N)."""
    kind = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "s32": np.int32}[workspace.parts.dtype.name]
    flat = workspace.parts.memory.owner.view(kind)[: workspace.count * M * N]
    is_row_major = operation.C.layout is ROW
    return np.swapaxes(flat.reshape(-1, N, M), 1, 2) if not is_row_major else flat.reshape(-1, M, N)


@pytest.mark.parametrize("name", ["simt_f32", "simt_f64", "simt_s8", "f16", "f16_in_f16", "bf16_to_bf16", "tf32", "s8"])
def test_the_gemm_writes_partial_sums_and_the_reduction_adds_them(name):
    operation = CONFIGURATIONS[name].operation(CONFIGURATIONS[name].layouts[0])
    (a, b, c), memory = problem(operation, most=2)
    d = empty(operation, M, N)
    workspace = split(operation, memory, d, 2)
    assert workspace.count in (1, 2)
    parts = partial_sums(workspace, operation)
    k = K // workspace.count
    for part in range(workspace.count):
        assert np.array_equal(parts[part], a[:, part * k : (part + 1) * k] @ b[part * k : (part + 1) * k])
    assert np.array_equal(matrix(d, operation), np.full((M, N), 99)), "D is left to the reduction"
    reduce(reduction_of(operation), workspace, 2, d, memory[2], 1.0, -1.0)
    assert np.array_equal(matrix(d, operation), a @ b - c)


def test_a_workspace_is_reduced_with_different_epilogues():
    operation = simt()
    (a, b, c), memory = problem(operation)
    d, e, f = (empty(operation, M, N) for _ in range(3))
    workspace = split(operation, memory, d, 3)
    reduce(reduction_of(operation), workspace, 3, d, memory[2], 1.0, 0.0)
    relu_of = LinearCombinationGeneric(relu, F32, 1, F32, F32)
    reduce(reduction_of(operation, relu_of), workspace, 3, e, memory[2], 2.0, 1.0)
    reduce(reduction_of(operation), workspace, 3, f, memory[2][0], 1.0, 1.0, bias=True)
    assert np.array_equal(d, a @ b)
    assert np.array_equal(e, np.maximum(2 * (a @ b) + c, 0))
    assert np.array_equal(f, a @ b + c[0])
    memory[0][...] = 0  # the reductions do not multiply
    reduce(reduction_of(operation), workspace, 3, e, None, 1.0, 0.0)
    assert np.array_equal(e, a @ b)


def test_a_workspace_of_the_caller():
    operation = simt()
    parts = integers(4, M, N).astype(np.float32)
    d = empty(operation, M, N)
    reduce(reduction_of(operation), parts, 4, d, None, 1.0, 0.0)
    assert np.array_equal(d, parts.sum(0))


@pytest.mark.parametrize(
    ("partitions", "problem_size", "message"),
    [
        (0, [8, 8], "partitions must be at least 1, got 0"),
        (-1, [8, 8], "partitions must be at least 1, got -1"),
        (1, [8, 8, 8], r"problem_size must be two integers, \[m, n\], got \[8, 8, 8\]"),
        (1, [8], r"problem_size must be two integers, \[m, n\], got \[8\]"),
        (1, 8, r"problem_size must be two integers, \[m, n\], got 8"),
        (1, [8, -8], r"problem_size must be at least 0 along m and n, got \[8, -8\]"),
        (2, [8, 8], r"workspace needs 128 elements \(512 bytes\), got 64"),
    ],
)
def test_reductions_that_cannot_be(partitions, problem_size, message):
    reduction = reduction_of(simt())
    with refused(message):
        ReductionArguments(reduction, problem_size, partitions, np.ones(64, np.float32), np.empty(64, np.float32), None)


def test_a_ragged_k_may_have_fewer_parts():
    operation = CONFIGURATIONS["f16"].operation((ROW, COLUMN, ROW))
    (a, b, c), memory = problem(operation, k=24)
    d = empty(operation, M, N)
    workspace = split(operation, memory, d, 4, size=(M, N, 24))
    assert workspace.count == 3, "parts of 8, so that they stay aligned to 16 bytes"
    reduce(reduction_of(operation), workspace, 4, d, memory[2], 1.0, 1.0)
    assert np.array_equal(d, a @ b + c)


@pytest.mark.parametrize("layout", [ROW, COLUMN])
def test_a_reduction_operation_computes_d(layout):
    operation = simt(layouts=(ROW, COLUMN, layout))
    reduction = ReductionOperation(
        shape=cutlass.MatrixCoord(4, 32 * 4),
        C=operation.C,
        element_accumulator=F32,
        element_compute=F32,
        epilogue_functor=LinearCombinationGeneric(relu, F32, 1, F32, F32),
        count=4,
    )
    pycutlass.compiler.add_module([operation, reduction])
    (a, b, c), memory = problem(operation)
    d = empty(operation, M, N)
    arguments = GemmArguments(
        operation, cutlass.gemm.GemmCoord(M, N, K), *memory, d, gemm_mode=PARALLEL, split_k_slices=4
    )
    finish = ReductionArguments(
        reduction, [M, N], 4, arguments.ptr_D, d, memory[2], output_op=reduction.epilogue_type(2.0, -1.0)
    )
    with pytest.raises(InvalidArgument, match="was not run yet"):
        reduction.run(finish)
    operation.run(arguments)
    assert (d == 99).all()
    assert reduction.run(finish) == 0
    finish.sync()
    assert np.array_equal(matrix(d, operation), np.maximum(2 * a @ b - c, 0))
