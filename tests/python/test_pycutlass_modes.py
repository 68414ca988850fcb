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
    matrix,
    problem,
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
