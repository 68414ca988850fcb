"""Interleaved layouts: operations with RowMajorInterleaved32 and ColumnMajorInterleaved32, and GemmArguments with
`interleaved`."""

import numpy as np
import pytest
from pycutlass_problems import (
    ARRAY,
    BATCHED,
    COLUMN,
    F16,
    F32,
    PARALLEL,
    ROW,
    S8,
    S32,
    SATURATE,
    SIMT,
    TENSOR_OP,
    refused,
)

import tilewright
from tilewright.errors import InvalidArgument, Unsupported
from tilewright.pycutlass import (
    FastLinearCombinationClamp,
    GemmArguments,
    GemmOperationUniversal,
    LinearCombination,
    MathInstruction,
    MathOperation,
    ReductionOperation,
    TensorDescription,
    TileDescription,
    cutlass,
)

BY_ROWS, BY_COLUMNS = cutlass.RowMajorInterleaved32, cutlass.ColumnMajorInterleaved32


def interleaved(values, layout):
    """The matrix, or batch, in the memory order of the layout, written as CUTLASS defines it."""
    *batch, rows, columns = values.shape
    if layout is BY_ROWS:
        return interleaved(np.swapaxes(values, -1, -2), BY_COLUMNS)
    assert layout is BY_COLUMNS
    memory = np.empty(rows * columns * int(np.prod(batch, dtype=int)), values.dtype).reshape(*batch, -1)
    for r in range(rows):
        for c in range(columns):
            memory[..., c // 32 * rows * 32 + r * 32 + c % 32] = values[..., r, c]
    return memory


def matrix(memory, rows, columns):
    """The inverse of interleaved(..., BY_COLUMNS)."""
    values = np.empty((*memory.shape[:-1], rows, columns), memory.dtype)
    for r in range(rows):
        for c in range(columns):
            values[..., r, c] = memory[..., c // 32 * rows * 32 + r * 32 + c % 32]
    return values


def operation(
    tile=(64, 64, 64), stages=6, shape=(16, 8, 32), warps=(2, 2, 1), output=S8, functor=None, layouts=None, element=S8,
    math=SATURATE,
):  # fmt: skip
    """The operation of PyCUTLASS's unit test gemm_s8_sm80.py with interleaved layouts."""
    a, b, c = layouts or (BY_COLUMNS, BY_ROWS, BY_COLUMNS)
    op_class = SIMT if shape == (1, 1, 1) else TENSOR_OP
    alignment = 1 if op_class is SIMT else 16
    instruction = MathInstruction(list(shape), element, element, S32, op_class, math)
    return GemmOperationUniversal(
        80,
        TileDescription([*tile], stages, [*warps], instruction),
        TensorDescription(element, a, alignment),
        TensorDescription(element, b, alignment),
        TensorDescription(output, c, 1 if op_class is SIMT else 8),
        functor or FastLinearCombinationClamp(output, 8),
    )


def problem(m, n, k, *batch, most=3):
    random = np.random.default_rng(5)
    return [random.integers(-most, most + 1, (*batch, *shape)).astype(np.int8) for shape in ((m, k), (k, n), (m, n))]


def run(op, a, b, c, d, size, *scalars, **more):
    arguments = GemmArguments(
        op, cutlass.gemm.GemmCoord(*size), a, b, c, d, output_op=op.epilogue_type(*scalars), **more
    )
    assert op.run(arguments) == 0
    arguments.sync()
    return arguments


def clamped(values):
    return np.clip(values, -128, 127).astype(np.int8)


@pytest.mark.parametrize("size", [(32, 32, 64), (448, 448, 64), (64, 96, 704), (33, 160, 320)])
def test_the_unit_test_of_pycutlass(size):
    m, n, k = size
    a, b, c = problem(m, n, k, most=1)
    d = np.full(m * n, 99, np.int8)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), interleaved(c, BY_COLUMNS)]
    op = operation()
    arguments = run(op, *memory, d, size, 1.0, 0.0)
    np.testing.assert_array_equal(matrix(d, m, n), clamped(a.astype(int) @ b))
    assert arguments.reorder_tensor_B(memory[1], arguments.problem_size) is memory[1]
    design = op.kernel.metadata.design
    assert (design.tile_shape, design.stages, design.instruction_shape) == ((64, 64, 64), 6, (16, 8, 32))
    assert op.procedural_name() == "cutlass_sm80_tensorop_s8_i16x8x32gemm_s8_1x1x1_64x64_64x6_n32t32_align16"


@pytest.mark.parametrize(
    "op",
    [
        operation(),
        operation((32, 64, 32), 3, warps=(1, 2, 1)),
        operation((32, 32, 32), 2, (1, 1, 1), (1, 1, 1), math=MathOperation.multiply_add),
    ],
    ids=["sm80", "sm80_small", "simt"],
)
def test_c_is_interleaved_too(op):
    m, n, k = 70, 96, 160
    a, b, c = problem(m, n, k)
    d = np.full(m * n, 99, np.int8)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), interleaved(c, BY_COLUMNS)]
    run(op, *memory, d, (m, n, k), 2.0, -3.0)
    np.testing.assert_array_equal(matrix(d, m, n), clamped(2 * (a.astype(int) @ b) - 3 * c.astype(int)))


def test_other_layouts_may_be_mixed_with_interleaved_ones():
    m, n, k = 40, 64, 96
    a, b, c = problem(m, n, k)
    for layouts in ((BY_COLUMNS, COLUMN, ROW), (ROW, BY_ROWS, COLUMN), (ROW, COLUMN, BY_COLUMNS)):
        op = operation(output=S32, functor=LinearCombination(S32, 4, S32, S32), layouts=layouts)
        memory = [
            interleaved(x, layout) if layout.is_interleaved else np.ascontiguousarray(x if layout is ROW else x.T)
            for x, layout in zip((a, b, c.astype(np.int32)), layouts, strict=True)
        ]
        d = np.full(m * n, 99, np.int32)
        run(op, *memory, d, (m, n, k), 1.0, 2.0)
        layout = layouts[2]
        got = matrix(d, m, n) if layout is BY_COLUMNS else d.reshape(m, n) if layout is ROW else d.reshape(n, m).T
        np.testing.assert_array_equal(got, a.astype(int) @ b + 2 * c.astype(int), str(layouts))


@pytest.mark.parametrize("mode", [BATCHED, ARRAY])
def test_batches(mode):
    m, n, k, batch = 33, 64, 64, 3
    a, b, c = problem(m, n, k, batch)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), interleaved(c, BY_COLUMNS)]
    d = np.full((batch, m * n), 99, np.int8)
    run(operation(), *memory, d, (m, n, k), 1.0, 1.0, gemm_mode=mode, batch=batch)
    np.testing.assert_array_equal(matrix(d, m, n), clamped(a.astype(int) @ b + c))


def test_a_vector_of_n_elements_is_a_bias():
    m, n, k = 40, 64, 96
    a, b, _ = problem(m, n, k)
    bias = np.arange(-32, 32, dtype=np.int8)
    d = np.full(m * n, 99, np.int8)
    run(operation(), interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), bias, d, (m, n, k), 1.0, 1.0)
    np.testing.assert_array_equal(matrix(d, m, n), clamped(a.astype(int) @ b + bias))


def test_refusals():
    a, b, c = (np.zeros(64 * 64, np.int8) for _ in range(3))
    for m, n, k, message in (
        (64, 64, 48, "A is ColumnMajorInterleaved32: it needs a multiple of 32 columns, got 48"),
        (64, 40, 64, "D is ColumnMajorInterleaved32: it needs a multiple of 32 columns, got 40"),
        (65, 64, 64, "A needs 4160 elements"),
    ):
        with refused(message):
            run(operation(), a, b, c, np.zeros(64 * 64, np.int8), (m, n, k), 1.0, 0.0)
    with refused("A is RowMajorInterleaved32: as in CUTLASS, it must be ColumnMajorInterleaved32", Unsupported):
        operation(layouts=(BY_ROWS, BY_ROWS, BY_COLUMNS))
    with refused("C is RowMajorInterleaved32: as in CUTLASS, it must be ColumnMajorInterleaved32", Unsupported):
        operation(layouts=(BY_COLUMNS, BY_ROWS, BY_ROWS))
    with refused("tile k must be a multiple of 32 for interleaved operands, got 48"):
        operation((64, 64, 48), 4, (16, 8, 16))
    with refused("A is column_interleaved_32: interleaved layouts are for s8 and u8 operands, got f16"):
        GemmOperationUniversal(
            80,
            TileDescription([64, 64, 32], 3, [2, 2, 1], MathInstruction([16, 8, 16], F16, F16, F32, TENSOR_OP)),
            TensorDescription(F16, BY_COLUMNS, 8),
            TensorDescription(F16, COLUMN, 8),
            TensorDescription(F32, ROW, 4),
            LinearCombination(F32, 4),
        )


def test_gemm_arguments_take_blocks():
    m, n, k, batch = 34, 64, 96, 2
    a, b, c = problem(m, n, k, batch)
    blocks = [
        interleaved(x, layout).reshape(batch, -1, other, 32)
        for x, layout, other in ((a, BY_COLUMNS, m), (b, BY_ROWS, n), (c.astype(np.int32), BY_COLUMNS, m))
    ]
    out = np.full((batch, n // 32, m, 32), 99, np.int32)
    arguments = tilewright.GemmArguments(blocks[0], blocks[1], out, C=blocks[2], beta=1.0, interleaved="ABCD")
    assert arguments.A.shape == (batch, m, k) and arguments.B.shape == (batch, k, n)
    kernels = tilewright.find_kernels(arguments)
    assert {kernel.metadata.family for kernel in kernels} == {"simt_gemm", "sm80_gemm"}
    assert kernels[0].metadata.operands.A.layout == "column_interleaved_32"
    assert tilewright.find_kernels(arguments, batch_invariant=True, deterministic=True)
    kernels[0].run(arguments)
    np.testing.assert_array_equal(matrix(out.reshape(batch, -1), m, n), a.astype(int) @ b + c)
    plain = np.full((batch, m, n), 99, np.int32)
    arguments = tilewright.GemmArguments(a, blocks[1], plain, interleaved="B")
    tilewright.find_kernels(arguments)[0].run(arguments)
    np.testing.assert_array_equal(plain, a.astype(int) @ b)


def test_gemm_arguments_refuse_other_blocks():
    a, b, out = np.zeros((2, 8, 32), np.int8), np.zeros((2, 16, 32), np.int8), np.zeros((8, 16), np.int32)
    for changed, message in (
        ({"A": np.zeros((8, 64), np.int8)}, "A is interleaved: it must have shape"),
        ({"A": np.zeros((2, 8, 16), np.int8)}, r"got shape \(2,8,16\)"),
        ({"B": np.zeros((2, 16, 64), np.int8)[:, :, ::2]}, r"strides \(1024,64,2\)"),
        ({"interleaved": "AX"}, "letters of given operands"),
        ({"interleaved": "C"}, "letters of given operands"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            tilewright.GemmArguments(**{"A": a, "B": b, "out": out, "interleaved": "AB", **changed})


def test_attributes_have_interleaved_layouts():
    for layout, stride in (("row_interleaved_32", (0, 1, 32)), ("column_interleaved_32", (0, 32, 1))):
        attributes = tilewright.TensorAttributes("int8", layout, 16)
        assert (attributes.layout, attributes.stride) == (layout, stride)
    with pytest.raises(InvalidArgument, match="column_interleaved_32"):
        tilewright.TensorAttributes("int8", "interleaved")


def test_parallel_split_k():
    m, n, k = 64, 64, 256
    a, b, c = problem(m, n, k)
    d = np.full(m * n, 99, np.int8)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), interleaved(c, BY_COLUMNS)]
    run(operation(), *memory, d, (m, n, k), 1.0, 0.0, gemm_mode=PARALLEL, split_k_slices=2)
    np.testing.assert_array_equal(matrix(d, m, n), clamped(a.astype(int) @ b))


def test_interleaved_layouts_have_no_partial_sums():
    m, n, k = 64, 64, 256
    a, b, _ = problem(m, n, k)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), None]
    d = np.empty(m * n, np.int8)
    arguments = run(operation(), *memory, d, (m, n, k), 1.0, 0.0, gemm_mode=PARALLEL, split_k_slices=2)
    with pytest.raises(Unsupported, match="ptr_D needs RowMajor or ColumnMajor operands"):
        arguments.ptr_D  # noqa: B018
    with pytest.raises(Unsupported, match="C is ColumnMajorInterleaved32: a ReductionOperation needs"):
        ReductionOperation(cutlass.MatrixCoord(4, 64), operation().C, cutlass.int32)


def test_mode_gemm_splits_k_of_interleaved_layouts():
    m, n, k = 64, 64, 256
    a, b, c = problem(m, n, k)
    memory = [interleaved(a, BY_COLUMNS), interleaved(b, BY_ROWS), interleaved(c, BY_COLUMNS)]
    d = np.full(m * n, 99, np.int8)
    arguments = run(operation(), *memory, d, (m, n, k), 1.0, 0.0, split_k_slices=2)
    assert arguments._kernels[0].metadata.design.split_k == 2
    np.testing.assert_array_equal(matrix(d, m, n), clamped(a.astype(int) @ b))
