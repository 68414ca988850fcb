"""PyCUTLASS's epilogue functors and visitors."""

import numpy as np
import pytest
from pycutlass_problems import (
    BATCHED,
    COLUMN,
    CONFIGURATIONS,
    F16,
    F32,
    ROW,
    S8,
    S32,
    Configuration,
    K,
    M,
    N,
    array,
    empty,
    integers,
    matrix,
    problem,
    run,
    simt,
)

from tilewright import pycutlass
from tilewright.pycutlass import (
    EpilogueVisitTree,
    FastLinearCombinationClamp,
    GemmArguments,
    LinearCombination,
    LinearCombinationClamp,
    LinearCombinationGeneric,
    cutlass,
    gelu,
    hardswish,
    identity,
    leaky_relu,
    reduction_op,
    relu,
    sigmoid,
    silu,
    tanh,
)


@pytest.mark.parametrize(
    "functor, low, high",
    [
        (LinearCombination(S8, 4, S32, F32), -128, 127),
        (LinearCombinationClamp(S8, 4, S32, F32), -128, 127),
        (FastLinearCombinationClamp(S8, 4), -128, 127),
        (LinearCombinationClamp(S8, 4, S32, S32), -128, 127),
    ],
)
def test_integers_saturate(functor, low, high):
    configuration = Configuration([16, 8, 32], S8, S32, S8, [32, 32, 64], 3, [1, 1, 1])
    operation = configuration.operation((ROW, COLUMN, ROW), functor)
    (a, b, c), memory = problem(operation)
    d = empty(operation, M, N)
    run(operation, memory, d, 3.0, 1.0)
    exact = 3 * a @ b + c
    assert exact.min() < low and exact.max() > high
    assert np.array_equal(d, np.clip(exact, low, high))


def test_f16_is_clamped():
    operation = CONFIGURATIONS["simt_f16"].operation((COLUMN, ROW, ROW), LinearCombinationClamp(F16, 1, F32, F32))
    (a, b, _), memory = problem(operation)
    d = empty(operation, M, N)
    run(operation, memory, d, 4096.0, 0.0)
    assert np.array_equal(d, np.clip(4096 * a @ b, -65504, 65504).astype(np.float16))
    assert np.isfinite(d).all()


@pytest.mark.parametrize("activation", [identity, relu, leaky_relu, tanh, sigmoid, silu, hardswish, gelu])
def test_every_activation(activation):
    operation = simt(LinearCombinationGeneric(activation, F32, 1, F32, F32))
    (a, b, c), memory = problem(operation)
    d = empty(operation, M, N)
    more = [0.25] if activation is leaky_relu else []
    run(operation, memory, d, 0.125, 0.5, *more)
    expected = activation.numpy((0.125 * a @ b + 0.5 * c).astype(np.float32), *more)
    exact = activation in (identity, relu, leaky_relu)
    assert np.array_equal(d, expected) if exact else np.allclose(d, expected, rtol=1e-5, atol=1e-6)


def test_leaky_relu_has_a_slope_of_its_own():
    operation = simt(LinearCombinationGeneric(leaky_relu, F32, 1, F32, F32))
    assert operation.epilogue_type(1, 0).scalars == {"leaky_alpha": 0.2}


@pytest.mark.parametrize("name", ["simt_f32", "f16"])
@pytest.mark.parametrize("layout", [ROW, COLUMN])
def test_a_vector_is_a_bias(name, layout):
    operation = CONFIGURATIONS[name].operation((ROW, ROW, layout), LinearCombinationGeneric(relu, F32, 4, F32, F32))
    (a, b, _), memory = problem(operation)
    bias = integers(N if layout is ROW else M)
    d = empty(operation, M, N)
    arguments = run(operation, [*memory[:2], array(bias, F32)], d, 1.0, 2.0)
    assert arguments.bias
    assert np.array_equal(matrix(d, operation), np.maximum(a @ b + 2 * (bias if layout is ROW else bias[:, None]), 0))


def test_each_matrix_of_a_batch_may_have_its_bias():
    operation = simt()
    (a, b, _), memory = problem(operation, batch=2)
    bias, d = integers(2, N), empty(operation, 2, M, N)
    run(operation, [*memory[:2], array(bias, F32)], d, 1.0, 1.0, gemm_mode=BATCHED, batch=2, bias=True)
    assert np.array_equal(d, a @ b + bias[:, None])


def test_c_is_not_read_where_beta_is_0():
    operation = simt()
    (a, b, _), memory = problem(operation)
    d = empty(operation, M, N)
    for c in (None, np.full((M, N), np.nan, np.float32)):
        run(operation, [*memory[:2], c], d, 1.0, 0.0)
        assert np.array_equal(d, a @ b)


def test_c_may_be_d():
    operation = simt()
    (a, b, c), memory = problem(operation)
    run(operation, memory, memory[2], 1.0, 2.0)
    assert np.array_equal(memory[2], a @ b + 2 * c)


class RowReduction(EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor", alpha: "scalar", beta: "scalar"):  # noqa: F821
        D = alpha * accum + beta * c
        reduction = reduction_op(D, "row", "Add", 16)
        return D, reduction


class ColumnReduction(EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor", alpha: "scalar", beta: "scalar"):  # noqa: F821
        D = alpha * accum + beta * c
        reduction = pycutlass.reduction_op(D, "column", "Add", 32)
        return D, reduction


class RowBroadcast(EpilogueVisitTree):
    def __call__(self, accum: "tensor", vector: "row", c: "tensor", alpha: "scalar", beta: "scalar"):  # noqa: F821
        T = accum + vector
        Z = relu.numpy(alpha * T + beta * c)
        return Z, T


class ColumnBroadcast(EpilogueVisitTree):
    def __call__(self, accum: "tensor", vector: "column", c: "tensor", alpha: "scalar", beta: "scalar"):  # noqa: F821
        T = accum + vector
        Z = leaky_relu.numpy(alpha * T, 0.5) + beta * c
        return Z, T


VISITORS = [
    (RowReduction, {}, {"D": (M, N), "reduction": (-(-N // 16) * M,)}),
    (ColumnReduction, {}, {"D": (M, N), "reduction": (-(-M // 32) * N,)}),
    (RowBroadcast, {"vector": (1, N)}, {"Z": (M, N), "T": (M, N)}),
    (ColumnBroadcast, {"vector": (M, 1)}, {"Z": (M, N), "T": (M, N)}),
]


@pytest.mark.parametrize("name", ["simt_f32", "f16"])
@pytest.mark.parametrize("layout", [ROW, COLUMN], ids=["row", "column"])
@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("visitor, vectors, outputs", VISITORS, ids=[each[0].__name__ for each in VISITORS])
def test_a_visitor_gives_the_results_of_its_call_on_numpy_arrays(name, batch, layout, visitor, vectors, outputs):
    """Tensors have the layout of C, as D has."""
    operation = CONFIGURATIONS[name].operation((ROW, ROW, layout), visitor)
    (a, b, c), memory = problem(operation, batch)
    lead = () if batch is None else (batch,)
    inputs = {key: integers(*lead, *shape).astype(np.float32) for key, shape in vectors.items()}
    tensors = [key for key, shape in outputs.items() if shape == (M, N)]
    made = {key: np.full((*lead, *shape), 99, np.float32).ravel() for key, shape in outputs.items()}
    output_op = operation.epilogue_type(**made, **inputs, c=memory[2], alpha=2.0, beta=-1.0, problem_size=[M, N])
    more = {} if batch is None else {"gemm_mode": BATCHED, "batch": batch}
    arguments = GemmArguments(
        operation, cutlass.gemm.GemmCoord(M, N, K), *memory[:2], None, None, output_op=output_op, **more
    )
    operation.run(arguments)
    output_op.sync()
    arguments.sync()
    expected = operation.epilogue_functor(a @ b, *inputs.values(), c, 2.0, -1.0)
    for key, values in zip(outputs, expected, strict=True):
        is_transposed = key in tensors and layout is COLUMN
        assert np.array_equal(made[key], (values.swapaxes(-1, -2) if is_transposed else values).ravel()), key


@pytest.mark.parametrize("activation", [relu, tanh, sigmoid, silu, hardswish, gelu])
def test_activations_in_visitors(activation):
    class Activated(EpilogueVisitTree):
        def __call__(self, accum: "tensor", scale: "scalar", slope=2.0):  # noqa: F821
            D = activation.numpy(accum * scale) * slope
            return D

    operation = simt(Activated)
    (a, b, _), memory = problem(operation)
    d = empty(operation, M, N)
    output_op = operation.epilogue_type(scale=0.125)
    arguments = GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), *memory, d, output_op=output_op)
    operation.run(arguments)
    assert np.allclose(d, activation.numpy(0.125 * a @ b) * 2, rtol=1e-5, atol=1e-6)
