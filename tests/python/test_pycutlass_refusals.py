"""The arguments that `tilewright.pycutlass` refuses, and the numbers in its messages."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from pycutlass_problems import (
    ARRAY,
    BATCHED,
    COLUMN,
    CONFIGURATIONS,
    F16,
    F32,
    F64,
    PARALLEL,
    ROW,
    SATURATE,
    SIMT,
    TENSOR_OP,
    Configuration,
    K,
    M,
    N,
    empty,
    problem,
    refused,
    run,
    simt,
)
from test_pycutlass_epilogues import RowBroadcast

from tilewright import pycutlass
from tilewright.errors import Unsupported
from tilewright.pycutlass import (
    EpilogueVisitTree,
    GemmArguments,
    GemmOperationUniversal,
    LinearCombination,
    MathInstruction,
    MathOperation,
    ReductionArguments,
    ReductionOperation,
    TensorDescription,
    TileDescription,
    cutlass,
    reduction_op,
)
from tilewright.tracing import TraceError


def test_descriptions_are_refused():
    math = MathInstruction([1, 1, 1], F32, F32, F32)
    with refused(r"instruction_shape must be three integers"):
        MathInstruction([16, 8], F16, F16, F32, TENSOR_OP)
    with refused("element_a must be one of"):
        MathInstruction([1, 1, 1], np.float32, F32, F32)
    with refused("no kernel multiplies by SparseTensorOp", Unsupported):
        MathInstruction([16, 8, 32], F16, F16, F32, cutlass.OpClass.SparseTensorOp)
    with refused("multiply_add_complex", Unsupported):
        MathInstruction([1, 1, 1], F32, F32, F32, SIMT, MathOperation.multiply_add_complex)
    with refused("accumulates in int32, got float32"):
        MathInstruction([16, 8, 16], F16, F16, F32, TENSOR_OP, SATURATE)
    with refused(r"at least 1 along m, n and k, got \[0, 32, 8\]"):
        TileDescription([0, 32, 8], 2, [1, 1, 1], math)
    with refused("stages must be at least 1, got 0"):
        TileDescription([32, 32, 8], 0, [1, 1, 1], math)
    with refused("power of two, got 3"):
        TensorDescription(F32, ROW, 3)
    with refused("no kernel has elements of s4", Unsupported):
        TensorDescription(cutlass.dtype.s4, ROW)
    with refused("complex", Unsupported):
        TensorDescription(F32, ROW, 1, cutlass.complex_transform.conj)
    with refused("epilogue_vector_length must be at least 1, got 0"):
        LinearCombination(F32, 0)
    assert TensorDescription(F32, ROW, 64).alignment == 4


def test_operations_are_refused_before_anything_is_compiled():
    with refused("stages must be at least 2"):
        Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], 1, [1, 1, 1]).operation((ROW, ROW, ROW))
    with refused("shared memory, more than the"):
        Configuration([1, 1, 1], F64, F64, F64, [256, 256, 64], 4, [2, 4, 1]).operation((ROW, ROW, ROW))
    with refused("no instruction_shape 16x8x4"):
        Configuration([16, 8, 4], F16, F32, F32, [32, 32, 32], 3, [1, 1, 1]).operation((ROW, ROW, ROW))
    with refused("the epilogue's output is float16, but C and D are float32"):
        simt(LinearCombination(F16, 1, F32, F32))
    with refused("the epilogue's accumulator is float64, but the math instruction accumulates in float32"):
        simt(LinearCombination(F32, 1, F64, F32))
    with refused("A is float32, but the math instruction multiplies float16"):
        Configuration([16, 8, 8], F32, F32, F32, [32, 32, 32], 3, [1, 1, 1], instruction_element=F16).operation(
            (ROW, ROW, ROW)
        )
    with refused("StridedDgradIdentitySwizzle1 is for convolutions"):
        simt(swizzle=cutlass.StridedDgradIdentitySwizzle1)
    with refused(f"arch=100, but the device has compute capability {pycutlass.device_cc()}"):
        Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], 2, [1, 1, 1], arch=100).operation((ROW, ROW, ROW))
    with refused(
        "stages, warp_count may be None on tensor cores of arch=90 only, where instruction_shape is None, got arch=80, "
        r"Simt and instruction_shape=\(1, 1, 1\)"
    ):
        Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], None, None).operation((ROW, ROW, ROW))
    with refused("the arguments of another operation"):
        operation = simt()
        _, memory = problem(operation)
        simt().run(run(operation, memory, empty(operation, M, N), 1.0, 0.0))


def test_arguments_are_refused_before_anything_is_compiled():
    operation = simt(layouts=(ROW, COLUMN, ROW))
    _, (a, b, c) = problem(operation)
    d = empty(operation, M, N)
    with refused(r"A needs 1280 elements \(5120 bytes\), got 1279"):
        run(operation, [a.ravel()[1:], b, c], d, 1.0, 0.0)
    with refused("C needs 960 elements"):
        run(operation, [a, b, c.ravel()[:50]], d, 1.0, 1.0)
    with refused("B is f64, but the operation takes f32"):
        run(operation, [a, b.astype(np.float64), c], d, 1.0, 0.0)
    with refused("A is >f4: big-endian arrays are not supported"):
        run(operation, [a.astype(">f4"), b, c], d, 1.0, 0.0)
    with refused("A must be a NumPy, PyTorch or CuPy array, or a CUdeviceptr, got builtins.str"):
        run(operation, ["A", b, c], d, 1.0, 0.0)
    with refused("C must be a NumPy, PyTorch or CuPy array, or a CUdeviceptr, got numpy.float32"):
        run(operation, [a, b, np.float32(1)], d, 1.0, 1.0)
    with refused(r"B has shape \(32, 24\) and strides \(1, 32\)"):  # PyCUTLASS would read it row by row
        run(operation, [a, b.T, c], d, 1.0, 0.0)
    with refused(r"D has shape \(40, 24\) and strides \(1, 40\)"):
        run(operation, [a, b, c], np.empty((N, M), np.float32).T, 1.0, 0.0)
    with refused("D is read-only"):
        run(operation, [a, b, c], np.broadcast_to(np.float32(0), (1,)).repeat(M * N).view(ReadOnly), 1.0, 0.0)
    with refused("overlaps"):
        run(operation, [a, b, c], a, 1.0, 0.0)
    with refused("C is None, but beta is 1.0"):
        run(operation, [a, b, None], d, 1.0, 1.0)
    with refused("alpha must be a number, got 'one'"):
        operation.epilogue_type("one", 0.0)
    with refused("identity takes 0 arguments besides alpha and beta, got 1"):
        operation.epilogue_type(1.0, 0.0, 0.5)
    with refused("problem_size must be a cutlass.gemm.GemmCoord"):
        GemmArguments(operation, [M, N, K], a, b, c, d)
    with refused("m of a GemmCoord must be at least 0, got -1"):
        cutlass.gemm.GemmCoord(-1, 1, 1)
    with refused("k of a GemmCoord must be an integer"):
        cutlass.gemm.GemmCoord(1, 1, 1.5)
    with refused("gemm_mode must be Gemm"):
        run(operation, [a, b, c], d, 1.0, 0.0, gemm_mode=cutlass.gemm.Mode.Invalid)
    with refused("split_k_slices must be at least 1, got 0"):
        run(operation, [a, b, c], d, 1.0, 0.0, split_k_slices=0)
    with refused("a batch of 2 is for modes Batched and Array, got Gemm"):
        run(operation, [a, b, c], d, 1.0, 0.0, batch=2)
    with refused("split_k_slices must be 1 in modes Batched and Array, got 2"):
        run(operation, [a, b, c], d, 1.0, 0.0, split_k_slices=2, gemm_mode=BATCHED)
    with refused("lists of arrays are for mode Array, got Batched"):
        run(operation, [[a], b, c], d, 1.0, 0.0, gemm_mode=BATCHED)
    with refused("A is a list of 1 arrays, but the batch is 2"):
        run(operation, [[a], b, c], d, 1.0, 0.0, gemm_mode=ARRAY, batch=2)
    with refused("output_op is what operation.epilogue_type"):
        GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), a, b, c, d, output_op=(1.0, 0.0))
    with pytest.raises(TypeError, match="no_such_argument"):
        run(operation, [a, b, c], d, 1.0, 0.0, no_such_argument=1)


class ReadOnly(np.ndarray):
    """An array whose interface says that it is read-only."""

    @property
    def __array_interface__(self):
        given = np.asarray(self).__array_interface__
        return {**given, "data": (given["data"][0], True)}


def test_alignments_are_refused():
    configuration = CONFIGURATIONS["f16"]
    operation = configuration.operation((ROW, ROW, ROW))
    _, memory = problem(operation, k=28)
    with refused("A is aligned to 4 elements, but the kernel needs 8"):
        run(operation, memory, empty(operation, M, N), 1.0, 0.0, size=(M, N, 28))


def test_sums_that_would_saturate_are_refused():
    operation = CONFIGURATIONS["s8_saturate"].operation((ROW, COLUMN, ROW))
    with refused("k = 131072 .* k must be at most 131071", Unsupported):
        GemmArguments(operation, cutlass.gemm.GemmCoord(1, 1, 131072), None, None, None, None)


def test_integer_epilogues_take_integer_scalars():
    operation = CONFIGURATIONS["s8_saturate"].operation((ROW, COLUMN, ROW))
    _, memory = problem(operation)
    with refused("alpha must be a 32-bit integer .* got 0.5"):
        run(operation, memory, empty(operation, M, N), 0.5, 0.0)


def test_reductions_are_refused():
    operation = simt()
    reduction = ReductionOperation(cutlass.MatrixCoord(4, 128), operation.C, F32)
    _, memory = problem(operation)
    d = empty(operation, M, N)
    size = cutlass.gemm.GemmCoord(M, N, K)
    with refused("ptr_D needs mode GemmSplitKParallel, got Gemm"):
        _ = GemmArguments(operation, size, *memory, d).ptr_D
    workspace = GemmArguments(operation, size, *memory, d, gemm_mode=PARALLEL, split_k_slices=4).ptr_D
    with refused("partitions is 3, but split_k_slices of the GEMM is 4"):
        ReductionArguments(reduction, [M, N], 3, workspace, d, memory[2])
    with refused(r"problem_size is \[24, 40\], but that of the GEMM is \[40, 24\]"):
        ReductionArguments(reduction, [N, M], 4, workspace, d, memory[2])
    with refused("workspace must be ptr_D .* got int"):
        ReductionArguments(reduction, [M, N], 4, 0, d, memory[2])
    with refused(f"workspace needs {4 * M * N} elements .* got {3 * M * N}"):
        ReductionArguments(reduction, [M, N], 4, np.empty((3, M, N), np.float32), d, memory[2])
    with refused("workspace is f16, but the operation takes f32"):
        ReductionArguments(reduction, [M, N], 4, np.empty((4, M, N), np.float16), d, memory[2])
    doubles = ReductionOperation(cutlass.MatrixCoord(4, 128), operation.C, F32, element_workspace=F64)
    with refused("element_workspace is float64, but the partial sums of the GEMM are f32"):
        ReductionArguments(doubles, [M, N], 4, workspace, d, memory[2])
    with refused("the epilogue's output is float16, but C and D are float32"):
        ReductionOperation(cutlass.MatrixCoord(4, 128), operation.C, F32, epilogue_functor=LinearCombination(F16, 1))


class Softmax(EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        return np.exp(accum) / np.exp(accum).sum()


class Unannotated(EpilogueVisitTree):
    def __call__(self, accum, c):
        return accum + c


def test_visitors_are_refused():
    with refused("the result of a reduction", TraceError):
        simt(Softmax)
    with refused("'c' of Unannotated is annotated 'None'"):
        simt(Unannotated)
    with refused("has no method __call__"):
        simt(type("Empty", (EpilogueVisitTree,), {}))
    with refused("'row' or 'column' and 'Add', got 'row' and 'Max'"):
        reduction_op(np.zeros((1, 2, 2)), "row", "Max", 1)
    operation = simt(RowBroadcast)
    _, (a, b, c) = problem(operation)
    size = cutlass.gemm.GemmCoord(M, N, K)
    z, vector = np.empty((M, N), np.float32), np.zeros(N, np.float32)
    given = {"Z": z, "T": z.copy(), "vector": vector, "c": c, "alpha": 1.0, "beta": 1.0, "problem_size": [M, N]}

    def bound(**changed):
        arguments = {name: value for name, value in {**given, **changed}.items() if value is not None}
        return GemmArguments(operation, size, a, b, None, None, output_op=operation.epilogue_type(**arguments))

    with refused("the visitor needs vector"):
        bound(vector=None)
    with refused("the visitor returns T"):
        bound(T=None)
    with refused("no parameter or output named other"):
        bound(other=vector)
    with refused("vector needs 1x24 = 24 elements of 4 bytes, got 23"):
        bound(vector=vector[1:])
    with refused("'alpha' must be a number, got list"):
        bound(alpha=[1.0])
    with refused(r"the visitor's problem_size is \[24, 40\], but the problem is \[40, 24\]"):
        bound(problem_size=[N, M])
    with refused("T is read-only"):
        bound(T=np.zeros((M, N), np.float32).view(ReadOnly))
    with refused("output_op is what operation.epilogue_type"):
        GemmArguments(operation, size, a, b, None, z)
    with refused("D must be a NumPy, PyTorch or CuPy array"):
        bound(Z=None)
    with refused("visitor=True needs an EpilogueVisitTree, got LinearCombination"):
        plain = simt()
        GemmOperationUniversal(
            80, plain.tile_description, plain.A, plain.B, plain.C, plain.epilogue_functor, visitor=True
        )


@pytest.mark.parametrize(
    "name",
    [
        "SymmetricTensorDescription",
        "TriangularTensorDescription",
        "LayerNorm",
    ],
)
def test_missing_features_raise_unsupported(name):
    with refused("Tilewright has no|is not supported", Unsupported):
        getattr(pycutlass, name)(arch=80)


def test_a_design_is_refused_by_the_family_that_is_meant():
    f16 = (F16, F32, F32)
    for given, reason in (
        (([16, 8, 16], *f16, [64, 64, 24], 3, [2, 2, 1]), "sm80_gemm: threadblock_shape along k, 24, is not divisible by"),
        (([16, 8, 16], *f16, [64, 64, 32], 3, [3, 2, 1]), "sm80_gemm: .* is not divisible by warp_count along m, 3"),
        (([16, 8, 15], *f16, [64, 64, 32], 3, [2, 2, 1]), "sm80_gemm: no instruction_shape 16x8x15 of f16"),
        (([1, 1, 1], F32, F32, F32, [32, 32, 8], 1, [1, 1, 1]), "simt_gemm: stages must be at least 2"),
    ):
        with refused(f"no kernel has this design: {reason}") as caught:
            Configuration(*given).operation((ROW, ROW, ROW))
        text = str(caught.value)
        shape, tile, stages, warps = given[0], given[4], given[5], given[6]
        assert text.endswith(
            f"(arch=80, threadblock_shape={tile}, stages={stages}, warp_count={warps}, instruction_shape={shape})"
        )
        for family in ("sm90_gemm", "skinny_gemm", "cuda_program", "mlir", "stem_conv"):
            assert family not in text and family in {**caught.value.codes, "stem_conv": ""}
        assert caught.value.reasons.keys() == caught.value.codes.keys()


def test_misspelt_members_and_keywords_are_suggested():
    for read, message in (
        (lambda: cutlass.gemm.Mode.GemmSplitKparallel, "Mode has no member 'GemmSplitKparallel'; did you mean 'GemmSplitK"),
        (lambda: cutlass.conv.Operator.forward, "Operator has no member 'forward': it has fprop, dgrad, wgrad"),
        (lambda: MathOperation.multiply_ad, "did you mean 'multiply_add'?"),
        (lambda: cutlass.OpClass.TensorOP, "did you mean 'TensorOp'?"),
    ):
        with pytest.raises(AttributeError, match=message):
            read()
    assert not hasattr(MathOperation, "_missing_name") and MathOperation("multiply_add") is MathOperation.multiply_add
    assert copy.deepcopy(MathOperation.multiply_add) is pickle.loads(pickle.dumps(MathOperation.multiply_add))
    math = MathInstruction([1, 1, 1], F32, F32, F32)
    for make, message in (
        (lambda: TileDescription([32, 32, 8], 2, warp_counts=[1, 1, 1], math_instruction=math), "did you mean 'warp_count'?"),
        (lambda: TensorDescription(F32, ROW, align=1), "unexpected keyword argument 'align'; did you mean 'alignment'"),
        (lambda: GemmOperationUniversal(swizling_functor=None), "did you mean 'swizzling_functor'?"),
        (lambda: GemmArguments(split_k_slice=2), "did you mean 'split_k_slices'?"),
        (lambda: LinearCombination(F32, 1, color=3), "'color': it takes element_output, epilogue_vector_length, "),
        (lambda: cutlass.gemm.GemmCoord(M=1), "'M': it takes m, n, k|did you mean"),
    ):
        with pytest.raises(TypeError, match=message):
            make()
    assert list(inspect.signature(TileDescription).parameters)[0] == "threadblock_shape"


def test_targets_without_the_instruction_are_refused():
    tile = Configuration([16, 8, 16], F16, F32, F32, [64, 64, 32], 3, [2, 2, 1]).operation((ROW, ROW, ROW))
    with refused(r"arch=75 has no instruction_shape \[16, 8, 16\] of float16 on tensor cores"):
        GemmOperationUniversal(75, tile.tile_description, tile.A, tile.B, tile.C, LinearCombination(F32, 4, F32, F32))
    older = Configuration([16, 8, 8], F16, F32, F32, [64, 64, 32], 3, [2, 2, 1]).operation((ROW, ROW, ROW))
    GemmOperationUniversal(75, older.tile_description, older.A, older.B, older.C, LinearCombination(F32, 4, F32, F32))
    plain = simt()
    GemmOperationUniversal(70, plain.tile_description, plain.A, plain.B, plain.C, plain.epilogue_functor)


def test_two_numbers_of_slices_are_refused():
    operation = simt()
    (a, b, c), memory = problem(operation)
    size = cutlass.gemm.GemmCoord(M, N, K)
    with refused("split_k_slices and split_k_splices are two names of one number, got 2 and 1"):
        GemmArguments(operation, size, *memory, empty(operation, M, N), split_k_slices=2, split_k_splices=1)
    GemmArguments(operation, size, *memory, empty(operation, M, N), split_k_slices=2, split_k_splices=2)


def test_columns_for_rows_are_refused():
    class Both(EpilogueVisitTree):
        def __call__(self, accum: "tensor", of_row: "row", of_column: "column"):  # noqa: F821
            D = accum + of_row + of_column
            return D

    tile = simt().tile_description
    visitor = Both(None, tile, F32, 1, F32, F32)
    plain = simt()
    operation = GemmOperationUniversal(80, tile, plain.A, plain.B, plain.C, visitor, visitor=True)
    (a, b, c), memory = problem(operation)
    row, column = np.ones((1, N), np.float32), np.ones((M, 1), np.float32)

    def bound(of_row, of_column, **more):
        output_op = operation.epilogue_type(D=d, of_row=of_row, of_column=of_column, problem_size=[M, N], **more)
        return GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), *memory, d, output_op=output_op)

    d = empty(operation, M, N)
    with refused(rf"'of_row' is annotated 'row', but the array has the shape \({M}, 1\) of a 'column'"):
        bound(column, column)
    with refused(rf"'of_column' is annotated 'column', but the array has the shape \(1, {N}\) of a 'row'"):
        bound(row, row)
    with refused("the visitor has no parameter or output named of_rows; did you mean 'of_row'?"):
        bound(row, column, of_rows=row)
    bound(row, column)
    bound(row[0], column[:, 0])
