"""`tilewright.pycutlass`: PyCUTLASS's README, its types, layouts, epilogues and modes, and what is refused.

Data are integers, so that every order of addition gives the same bits.
"""

import importlib
import itertools
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import ROOT
from tilewright import device_name, pycutlass
from tilewright.errors import InvalidArgument, Unsupported
from tilewright.pycutlass import (
    EpilogueVisitTree,
    FastLinearCombinationClamp,
    GemmArguments,
    GemmOperationUniversal,
    LinearCombination,
    LinearCombinationClamp,
    LinearCombinationGeneric,
    MathInstruction,
    MathOperation,
    ReductionArguments,
    ReductionOperation,
    TensorDescription,
    TileDescription,
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
from tilewright.tracing import TraceError

ROW, COLUMN = cutlass.RowMajor, cutlass.ColumnMajor
SIMT, TENSOR_OP = cutlass.OpClass.Simt, cutlass.OpClass.TensorOp
GEMM, PARALLEL = cutlass.gemm.Mode.Gemm, cutlass.gemm.Mode.GemmSplitKParallel
BATCHED, ARRAY = cutlass.gemm.Mode.Batched, cutlass.gemm.Mode.Array
F16, BF16, F32, F64 = cutlass.float16, cutlass.bfloat16, cutlass.float32, cutlass.float64
S8, S32 = cutlass.int8, cutlass.int32
LAYOUTS = [*itertools.product((ROW, COLUMN), repeat=3)]
M, N, K = 40, 24, 32

NUMPY = {F16: np.float16, F32: np.float32, F64: np.float64, S8: np.int8, S32: np.int32, BF16: np.uint16}


class BFloat16Array:
    """NumPy has no bfloat16: an array of its codes that says what they are, as ml_dtypes' arrays do."""

    dtype = "bfloat16"

    def __init__(self, values):
        self.codes = (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        self.__array_interface__ = self.codes.__array_interface__

    def values(self):
        return (self.codes.astype(np.uint32) << 16).view(np.float32)


def array(values, element):
    return BFloat16Array(values) if element is BF16 else np.ascontiguousarray(values, NUMPY[element])


def integers(*shape, seed=1, most=4):
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.float64)


class Configuration:
    """What a kernel is made for, as PyCUTLASS's tests write it."""

    def __init__(self, shape, element, accumulator, output, tile, stages, warps, **more):
        self.shape, self.element, self.accumulator, self.output = shape, element, accumulator, output
        self.tile, self.stages, self.warps = tile, stages, warps
        self.math = more.get("math", MathOperation.multiply_add)
        self.op_class = SIMT if shape == [1, 1, 1] else TENSOR_OP
        self.instruction_element = more.get("instruction_element", element)
        self.alignment = more.get("alignment", 1 if self.op_class is SIMT else 128 // element.bits)
        self.compute = more.get("compute", F64 if accumulator is F64 else F32)
        self.arch = more.get("arch", 80)
        self.cluster = more.get("cluster", [1, 1, 1])
        self.layouts = more.get("layouts", [(COLUMN, ROW, ROW), (ROW, COLUMN, COLUMN)])

    def operation(self, layouts, functor=None, swizzle=cutlass.IdentitySwizzle1, tile=None):
        """`functor`: an epilogue, or what makes one of a tile."""
        math = MathInstruction(
            self.shape, self.instruction_element, self.instruction_element, self.accumulator, self.op_class, self.math
        )
        tile = TileDescription(tile or self.tile, self.stages, self.warps, math, self.cluster)
        a, b, c = layouts
        alignment = 1 if self.op_class is SIMT else 4
        if functor is None:
            functor = LinearCombination(self.output, alignment, self.accumulator, self.compute)
        elif isinstance(functor, type):
            functor = functor(None, tile, self.accumulator, alignment, self.compute, self.output)
            functor.initialize()
        return GemmOperationUniversal(
            arch=self.arch,
            tile_description=tile,
            A=TensorDescription(self.element, a, self.alignment),
            B=TensorDescription(self.element, b, self.alignment),
            C=TensorDescription(self.output, c, alignment),
            epilogue_functor=functor,
            swizzling_functor=swizzle,
        )


HALF, FAST_BF16 = MathOperation.multiply_add_fast_f16, MathOperation.multiply_add_fast_bf16
FAST_F32, SATURATE = MathOperation.multiply_add_fast_f32, MathOperation.multiply_add_saturate
CONFIGURATIONS = {
    "simt_f32": Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], 2, [1, 1, 1], layouts=LAYOUTS),
    "simt_f64": Configuration([1, 1, 1], F64, F64, F64, [32, 32, 8], 3, [2, 1, 1]),
    "simt_f16": Configuration([1, 1, 1], F16, F32, F16, [32, 32, 8], 2, [1, 1, 1]),
    "simt_s8": Configuration([1, 1, 1], S8, S32, S32, [64, 32, 8], 2, [2, 2, 1], compute=S32),
    "f16": Configuration([16, 8, 16], F16, F32, F32, [32, 32, 32], 3, [1, 1, 1], layouts=LAYOUTS),
    "f16_in_f16": Configuration([16, 8, 16], F16, F16, F16, [32, 32, 32], 3, [1, 1, 1], compute=F16),
    "f16_ten_stages": Configuration([16, 8, 16], F16, F32, F16, [64, 64, 32], 10, [2, 2, 1]),
    "bf16": Configuration([16, 8, 16], BF16, F32, F32, [32, 32, 32], 3, [1, 1, 1]),
    "bf16_to_bf16": Configuration([16, 8, 16], BF16, F32, BF16, [32, 32, 32], 3, [1, 1, 1]),
    "tf32": Configuration([16, 8, 8], F32, F32, F32, [32, 32, 32], 3, [1, 1, 1]),
    "tf32_named": Configuration(
        [16, 8, 8], F32, F32, F32, [32, 32, 32], 3, [1, 1, 1], instruction_element=cutlass.tfloat32
    ),
    "fast_f16": Configuration(
        [16, 8, 8], F32, F32, F32, [32, 32, 16], 3, [1, 1, 1], math=HALF, instruction_element=F16
    ),
    "fast_bf16": Configuration(
        [16, 8, 8], F32, F32, F32, [32, 32, 16], 3, [1, 1, 1], math=FAST_BF16, instruction_element=BF16
    ),
    "fast_f32": Configuration([16, 8, 8], F32, F32, F32, [32, 32, 16], 3, [1, 1, 1], math=FAST_F32),
    "f64": Configuration([8, 8, 4], F64, F64, F64, [32, 32, 16], 4, [2, 2, 1], alignment=1),
    "s8": Configuration(
        [16, 8, 32], S8, S32, S32, [32, 32, 64], 3, [1, 1, 1], layouts=[(ROW, COLUMN, ROW), (ROW, COLUMN, COLUMN)]
    ),
    "s8_saturate": Configuration(
        [16, 8, 32], S8, S32, S32, [32, 32, 64], 3, [1, 1, 1],
        math=SATURATE, compute=S32, layouts=[(ROW, COLUMN, COLUMN)],
    ),
    "hopper_f16": Configuration(None, F16, F32, F16, [64, 32, 32], None, None, arch=90, layouts=LAYOUTS[::2]),
    "hopper_f16_columns": Configuration(None, F16, F32, F32, [32, 64, 32], 3, None, arch=90, layouts=LAYOUTS[1::2]),
    "hopper_tf32": Configuration(None, F32, F32, F32, [64, 32, 32], None, None, arch=90, layouts=[(ROW, COLUMN, ROW)]),
    "hopper_s8": Configuration(
        None, S8, S32, S32, [64, 32, 64], None, None, arch=90, compute=S32, layouts=[(ROW, COLUMN, ROW)]
    ),
    "hopper_cluster": Configuration(
        None, F16, F32, F16, [64, 64, 32], None, None, arch=90, cluster=[2, 1, 1], layouts=[(ROW, COLUMN, ROW)]
    ),
}  # fmt: skip
CASES = [(name, layouts) for name, each in CONFIGURATIONS.items() for layouts in each.layouts]


def case_id(case):
    name, layouts = case
    return f"{name}-{''.join('t' if layout is ROW else 'n' for layout in layouts)}"


@pytest.fixture(scope="module")
def operations():
    """One for each case, compiled together."""
    if pycutlass.device_cc() < 90:
        pytest.skip("tensor cores of sm_90 are among them")
    made = {case_id((name, layouts)): CONFIGURATIONS[name].operation(layouts) for name, layouts in CASES}
    pycutlass.compiler.add_module([*made.values()])
    return made


def stored(values, layout, element=F32):
    """A matrix, or a batch, as it lies in memory."""
    return array(values if layout is ROW else np.swapaxes(values, -1, -2), element)


def empty(operation, *shape):
    return stored(np.full(shape, 99), operation.C.layout, operation.C.element)


def matrix(memory, operation):
    """What `stored` was given."""
    values = memory.values() if isinstance(memory, BFloat16Array) else memory
    return values if operation.C.layout is ROW else np.swapaxes(values, -1, -2)


def problem(operation, batch=None, m=M, n=N, k=K, most=4):
    """A, B and C, and the same as they lie in memory."""
    lead = () if batch is None else (batch,)
    shapes = [(m, k), (k, n), (m, n)]
    values = [integers(*lead, *shape, seed=seed, most=most) for seed, shape in enumerate(shapes)]
    descriptions = (operation.A, operation.B, operation.C)
    return values, [stored(x, each.layout, each.element) for x, each in zip(values, descriptions, strict=True)]


def run(operation, memory, d, *scalars, size=(M, N, K), **more):
    arguments = GemmArguments(
        operation=operation,
        problem_size=cutlass.gemm.GemmCoord(*size),
        A=memory[0],
        B=memory[1],
        C=memory[2],
        D=d,
        output_op=operation.epilogue_type(*scalars),
        **more,
    )
    assert operation.run(arguments) == 0
    arguments.sync()
    return arguments


def simt(functor=None, layouts=(ROW, ROW, ROW), **more):
    return CONFIGURATIONS["simt_f32"].operation(layouts, functor, **more)


# What users of PyCUTLASS have.


def test_the_readmes_example_runs():
    finished = subprocess.run(
        [sys.executable, ROOT / "examples/09_pycutlass_readme.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "cutlass_simt_sgemm_128x128_8x4_tt_align1: 512x256 elements as expected\n"


def test_the_guide_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/pycutlass.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    subprocess.run([sys.executable, tmp_path / "guide.py"], timeout=120, check=True)


def test_the_guide_has_all_names():
    guide = (ROOT / "docs/pycutlass.md").read_text()
    values = {"ActivationFunctor", "ApiVersion", "ArtifactManager", "api_version", "align_size", "cutlass"}
    kinds = {"GemmKind", "OperationKind", "SchedulerMode", "StrideSupport", "GroupedGemmArguments", "compiler"}
    missing = [name for name in pycutlass.__all__ if not re.search(rf"`(\w+\.)*{name}\b", guide)]
    assert set(missing) <= values | kinds


NAMES_OF_CUTLASS = """
RowMajor ColumnMajor RowMajorInterleaved32 ColumnMajorInterleaved32 TensorNHWC TensorNC32HW32 TensorC32RSK32
float16 bfloat16 float32 float64 tfloat32 int8 int32 OpClass complex_transform MatrixCoord Tensor4DCoord dim3 gemm conv
IdentitySwizzle1 IdentitySwizzle2 IdentitySwizzle4 IdentitySwizzle8 HorizontalSwizzle BatchedIdentitySwizzle
StridedDgradIdentitySwizzle1 StridedDgradIdentitySwizzle4 StridedDgradHorizontalSwizzle
"""


def test_all_names_are_there():
    assert all(hasattr(pycutlass, name) for name in pycutlass.__all__)
    assert all(hasattr(cutlass, name) for name in NAMES_OF_CUTLASS.split())
    assert importlib.import_module("tilewright.pycutlass.cutlass") is cutlass
    assert [*cutlass.conv.Operator.__members__] == ["fprop", "dgrad", "wgrad"]
    assert pycutlass.device_cc() == pycutlass.DEVICE_CC
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = pycutlass.no_such_name


def test_tilewright_does_not_import_it():
    program = "import sys, tilewright; tilewright.matmul; print('tilewright.pycutlass' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


# Types, layouts, instructions.


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_every_type_layout_and_instruction(operations, case):
    operation = operations[case_id(case)]
    (a, b, c), memory = problem(operation, most=2)  # bfloat16 holds integers up to 256
    d = empty(operation, M, N)
    run(operation, memory, d, 2.0, -3.0)
    assert np.array_equal(matrix(d, operation), 2 * a @ b - 3 * c)


def test_the_design_is_the_one_that_was_written():
    configuration = Configuration([16, 8, 16], F16, F32, F32, [64, 128, 32], 4, [2, 2, 1])
    operation = configuration.operation((COLUMN, ROW, ROW), swizzle=cutlass.IdentitySwizzle4)
    design = operation.kernel.metadata.design
    assert (design.tile_shape, design.stages, design.warp_count) == ((64, 128, 32), 4, (2, 2, 1))
    assert (design.instruction_shape, design.raster_width) == ((16, 8, 16), 4)
    assert operation.procedural_name() == "cutlass_tensorop_s16816gemm_f16_64x128_32x4_nt_align8"
    assert 'extern "C"' in operation.rt_module.emit()
    assert operation.tile_description.num_threads == 128


@pytest.mark.parametrize(
    "swizzle",
    [
        cutlass.IdentitySwizzle1,
        cutlass.IdentitySwizzle2,
        cutlass.IdentitySwizzle4,
        cutlass.IdentitySwizzle8(),
        cutlass.HorizontalSwizzle,
        cutlass.BatchedIdentitySwizzle,
    ],
)
def test_every_swizzle(swizzle):
    operation = simt(swizzle=swizzle)
    (a, b, c), memory = problem(operation, m=100, n=110, k=8)
    d = empty(operation, 100, 110)
    run(operation, memory, d, 1.0, 1.0, size=(100, 110, 8))
    assert np.array_equal(d, a @ b + c)


@pytest.mark.parametrize(
    "size", [(1, 1, 1), (1, N, K), (M, 1, K), (M, N, 1), (0, N, K), (M, 0, K), (M, N, 0), (33, 35, 37)]
)
@pytest.mark.parametrize("layouts", [(ROW, ROW, ROW), (COLUMN, COLUMN, COLUMN)])
def test_any_extents(size, layouts):
    operation = simt(layouts=layouts)
    m, n, k = size
    (a, b, c), memory = problem(operation, m=m, n=n, k=k)
    d = empty(operation, m, n)
    run(operation, memory, d, 1.0, 2.0, size=size)
    assert np.array_equal(matrix(d, operation), a @ b + 2 * c)


# Epilogues.


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


def test_halves_are_clamped():
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


# Modes.


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
def test_slices_of_k(mode, slices):
    operation = simt()
    (a, b, c), memory = problem(operation)
    d = empty(operation, M, N)
    arguments = run(operation, memory, d, 2.0, 1.0, gemm_mode=mode, **slices)
    assert arguments.split_k_slices == 3
    assert np.array_equal(d, 2 * a @ b + c)


@pytest.mark.parametrize("layout", [ROW, COLUMN])
def test_a_reduction_finishes_slices_of_k(layout):
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
    with pytest.raises(InvalidArgument, match="comes first"):
        reduction.run(finish)
    operation.run(arguments)
    assert (d == 99).all()
    assert reduction.run(finish) == 0
    finish.sync()
    assert np.array_equal(matrix(d, operation), np.maximum(2 * a @ b - c, 0))


# Visitors.


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
@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("visitor, vectors, outputs", VISITORS, ids=[each[0].__name__ for each in VISITORS])
def test_a_visitor_computes_what_it_computes_of_numpy_arrays(name, batch, visitor, vectors, outputs):
    operation = CONFIGURATIONS[name].operation((ROW, ROW, ROW), visitor)
    (a, b, c), memory = problem(operation, batch)
    lead = () if batch is None else (batch,)
    inputs = {key: integers(*lead, *shape).astype(np.float32) for key, shape in vectors.items()}
    made = {key: np.full((*lead, *shape), 99, np.float32) for key, shape in outputs.items()}
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
        assert np.array_equal(made[key].ravel(), values.ravel()), key


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


# Arrays.


def test_arrays_are_memory_of_any_shape():
    operation = simt(layouts=(ROW, COLUMN, ROW))
    (a, b, c), _ = problem(operation)
    expected = a @ b + c
    a, b, c = (values.astype(np.float32) for values in (a, b, c))
    for memory in (
        [a.ravel(), b.T.ravel(), c.ravel()],
        [a.reshape(K, M), b.T.reshape(2, -1), c.reshape(-1, 4)],
        [np.asfortranarray(a), b.T, np.asfortranarray(c)],  # NumPy's are read in the order of their indices
        [np.append(a, 7).astype(np.float32), np.ascontiguousarray(b.T), c],  # longer than it need be
    ):
        d = np.empty(M * N, np.float32)
        run(operation, memory, d, 1.0, 1.0)
        assert np.array_equal(d.reshape(M, N), expected)


def test_arrays_are_read_when_the_operation_runs():
    operation = simt()
    (a, b, c), memory = problem(operation)
    strided = np.zeros((M, 2 * K), np.float32)[:, ::2]
    d = empty(operation, M, N)
    arguments = run(operation, [strided, *memory[1:]], d, 1.0, 1.0)
    assert np.array_equal(d, c)
    strided[...] = a
    operation.run(arguments)
    arguments.sync()
    assert np.array_equal(d, a @ b + c)


class PointerTensor:
    """As much of PyTorch's tensor of the host as is looked at."""

    is_cuda = False

    def __init__(self, values):
        self.values = values
        self.dtype, self.shape = values.dtype, values.shape

    def data_ptr(self):
        return self.values.ctypes.data

    def numel(self):
        return self.values.size

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)


def test_tensors_are_used_where_they_lie(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=PointerTensor))
    operation = simt(layouts=(ROW, COLUMN, COLUMN))
    (a, b, c), memory = problem(operation)
    transposed = memory[1].T  # (k, n) and column-major, as B is described
    d = np.empty((N, M), np.float32).T
    run(operation, [PointerTensor(each) for each in (memory[0], transposed, memory[2])], PointerTensor(d), 1.0, 1.0)
    assert np.array_equal(d, a @ b + c)
    with pytest.raises(InvalidArgument, match=r"A is of shape \(40, 32\) and strides \(1, 40\)"):
        run(operation, [PointerTensor(np.asfortranarray(memory[0])), *memory[1:]], d, 1.0, 0.0)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    operation = simt(layouts=(ROW, COLUMN, ROW))
    (a, b, c), memory = problem(operation)
    d = torch.empty((M, N), device=device)
    run(operation, [torch.tensor(each, device=device) for each in memory], d, 1.0, 1.0)
    assert np.array_equal(d.cpu().numpy(), a @ b + c)


def test_the_pool_is_as_it_was():
    pool = pycutlass.get_memory_pool(2**20, 2**30)
    before = pool.get_allocated_size()
    operation = simt()
    _, memory = problem(operation)
    run(operation, memory, empty(operation, M, N), 1.0, 1.0)
    assert pool.get_allocated_size() == before == pycutlass.get_allocated_size()
    assert pool.pool_size() >= 2**20
    assert pycutlass.align_size(1000) == 1024


def test_a_pool_may_be_too_small():
    with refused("the pool holds at least 2048 bytes and never more than 1024"):
        pycutlass.get_memory_pool(2048, 1024)
    if device_name().startswith("emulator"):
        pytest.skip("the emulator's memory has no bound")
    pycutlass.get_memory_pool(0, 1024)
    try:
        operation = simt()
        _, memory = problem(operation)
        with pytest.raises(MemoryError):
            run(operation, memory, empty(operation, M, N), 1.0, 1.0)
    finally:
        pycutlass.get_memory_pool(0, 0)


def test_operations_are_compiled_once(tmp_path):
    program = """
import numpy, tilewright
from tilewright import device_name, pycutlass
from tilewright.pycutlass import *
math = MathInstruction([1, 1, 1], cutlass.float32, cutlass.float32, cutlass.float32)
each = TensorDescription(cutlass.float32, cutlass.RowMajor)
tiles = [TileDescription(shape, 2, [1, 1, 1], math) for shape in ([32, 32, 8], [32, 64, 8], [64, 32, 8])]
epilogue = LinearCombination(cutlass.float32, 1)
operations = [GemmOperationUniversal(80, tile, each, each, each, epilogue) for tile in tiles]
pycutlass.compiler.nvrtc()
pycutlass.compiler.add_module(operations, pycutlass.CompilationOptions(["-std=c++17"], 80))
pycutlass.compiler.add_module(operations)
print(tilewright.cache_counters()["compiles"])
"""
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    outputs = [subprocess.check_output([sys.executable, "-c", program], text=True, env=environment) for _ in range(2)]
    assert outputs == ["3\n", "0\n"]


# What is refused.


def refused(match, error=InvalidArgument):
    return pytest.raises(error, match=match)


def test_descriptions_are_refused():
    math = MathInstruction([1, 1, 1], F32, F32, F32)
    with refused(r"instruction_shape is three integers"):
        MathInstruction([16, 8], F16, F16, F32, TENSOR_OP)
    with refused("element_a is one of"):
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
    with refused("no kernel has operands of layout ColumnMajorInterleaved32", Unsupported):
        TensorDescription(S8, cutlass.ColumnMajorInterleaved32, 16)
    with refused("no kernel has elements of s4", Unsupported):
        TensorDescription(cutlass.dtype.s4, ROW)
    with refused("complex", Unsupported):
        TensorDescription(F32, ROW, 1, cutlass.complex_transform.conj)
    with refused("store float32"):
        TensorDescription(cutlass.tfloat32, ROW)
    with refused("epilogue_vector_length must be at least 1, got 0"):
        LinearCombination(F32, 0)
    assert TensorDescription(F32, ROW, 64).alignment == 4


def test_operations_are_refused_before_anything_is_compiled():
    with refused("stages must be at least 2"):
        Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], 1, [1, 1, 1]).operation((ROW, ROW, ROW))
    with refused("shared memory, more than the"):
        Configuration([1, 1, 1], F64, F64, F64, [256, 256, 64], 4, [2, 4, 1]).operation((ROW, ROW, ROW))
    with refused("no instruction 16x8x4"):
        Configuration([16, 8, 4], F16, F32, F32, [32, 32, 32], 3, [1, 1, 1]).operation((ROW, ROW, ROW))
    with refused("the epilogue's output is float16, and C and D are float32"):
        simt(LinearCombination(F16, 1, F32, F32))
    with refused("the epilogue takes sums of float64, and the math instruction accumulates in float32"):
        simt(LinearCombination(F32, 1, F64, F32))
    with refused("A is float32, and the math instruction multiplies float16"):
        Configuration([16, 8, 8], F32, F32, F32, [32, 32, 32], 3, [1, 1, 1], instruction_element=F16).operation(
            (ROW, ROW, ROW)
        )
    with refused("StridedDgradIdentitySwizzle1 is for convolutions"):
        simt(swizzle=cutlass.StridedDgradIdentitySwizzle1)
    with refused(f"arch=100, and the device is of {pycutlass.device_cc()}"):
        Configuration([1, 1, 1], F32, F32, F32, [32, 32, 8], 2, [1, 1, 1], arch=100).operation((ROW, ROW, ROW))
    with refused("stages, warp_count may be None on tensor cores of arch=90 only"):
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
    with refused("B is of f64, and the operation takes f32"):
        run(operation, [a, b.astype(np.float64), c], d, 1.0, 0.0)
    with refused("A is of >f4: bytes of elements must be in the machine's order"):
        run(operation, [a.astype(">f4"), b, c], d, 1.0, 0.0)
    with refused("A is a NumPy, PyTorch or CuPy array, or a CUdeviceptr, got builtins.str"):
        run(operation, ["A", b, c], d, 1.0, 0.0)
    with refused(r"B is of shape \(32, 24\) and strides \(1, 32\)"):  # PyCUTLASS would read it row by row
        run(operation, [a, b.T, c], d, 1.0, 0.0)
    with refused(r"D is of shape \(40, 24\) and strides \(1, 40\)"):
        run(operation, [a, b, c], np.empty((N, M), np.float32).T, 1.0, 0.0)
    with refused("D is read-only"):
        run(operation, [a, b, c], np.broadcast_to(np.float32(0), (1,)).repeat(M * N).view(ReadOnly), 1.0, 0.0)
    with refused("overlaps"):
        run(operation, [a, b, c], a, 1.0, 0.0)
    with refused("C is None, and beta is 1.0"):
        run(operation, [a, b, None], d, 1.0, 1.0)
    with refused("alpha is a number, got 'one'"):
        operation.epilogue_type("one", 0.0)
    with refused("identity takes 0 arguments besides alpha and beta, got 1"):
        operation.epilogue_type(1.0, 0.0, 0.5)
    with refused("problem_size is a cutlass.gemm.GemmCoord"):
        GemmArguments(operation, [M, N, K], a, b, c, d)
    with refused("m of a GemmCoord must be at least 0, got -1"):
        cutlass.gemm.GemmCoord(-1, 1, 1)
    with refused("k of a GemmCoord is an integer"):
        cutlass.gemm.GemmCoord(1, 1, 1.5)
    with refused("gemm_mode is Gemm"):
        run(operation, [a, b, c], d, 1.0, 0.0, gemm_mode=cutlass.gemm.Mode.Invalid)
    with refused("split_k_slices must be at least 1, got 0"):
        run(operation, [a, b, c], d, 1.0, 0.0, split_k_slices=0)
    with refused("a batch of 2 is for modes Batched and Array, got Gemm"):
        run(operation, [a, b, c], d, 1.0, 0.0, batch=2)
    with refused("2 slices of K are for modes Gemm"):
        run(operation, [a, b, c], d, 1.0, 0.0, split_k_slices=2, gemm_mode=BATCHED)
    with refused("lists of arrays are for mode Array, got Batched"):
        run(operation, [[a], b, c], d, 1.0, 0.0, gemm_mode=BATCHED)
    with refused("A is a list of 1 arrays, and the batch is 2"):
        run(operation, [[a], b, c], d, 1.0, 0.0, gemm_mode=ARRAY, batch=2)
    with refused("output_op is what operation.epilogue_type"):
        GemmArguments(operation, cutlass.gemm.GemmCoord(M, N, K), a, b, c, d, output_op=(1.0, 0.0))
    with pytest.raises(TypeError, match="no_such_argument"):
        run(operation, [a, b, c], d, 1.0, 0.0, no_such_argument=1)


class ReadOnly(np.ndarray):
    """An array that says that it cannot be written."""

    @property
    def __array_interface__(self):
        given = np.asarray(self).__array_interface__
        return {**given, "data": (given["data"][0], True)}


def test_alignments_are_refused():
    configuration = CONFIGURATIONS["f16"]
    operation = configuration.operation((ROW, ROW, ROW))
    _, memory = problem(operation, k=28)
    with refused("A is aligned to 4 elements, the kernel needs 8"):
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
    with refused("ptr_D is a workspace of mode GemmSplitKParallel, got Gemm"):
        _ = GemmArguments(operation, size, *memory, d).ptr_D
    workspace = GemmArguments(operation, size, *memory, d, gemm_mode=PARALLEL, split_k_slices=4).ptr_D
    with refused("3 partitions, and the GEMM has 4 slices"):
        ReductionArguments(reduction, [M, N], 3, workspace, d, memory[2])
    with refused(r"problem_size is \[24, 40\], and the GEMM's \[40, 24\]"):
        ReductionArguments(reduction, [N, M], 4, workspace, d, memory[2])
    with refused("workspace is ptr_D .* got int"):
        ReductionArguments(reduction, [M, N], 4, 0, d, memory[2])


class Softmax(EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        return np.exp(accum) / np.exp(accum).sum()


class Unannotated(EpilogueVisitTree):
    def __call__(self, accum, c):
        return accum + c


def test_visitors_are_refused():
    with refused("a reduction", TraceError):
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
    with refused("nothing of the name other"):
        bound(other=vector)
    with refused("vector is of 1x24, 24 elements of 4 bytes, got 23"):
        bound(vector=vector[1:])
    with refused("'alpha' is a scalar, got list"):
        bound(alpha=[1.0])
    with refused(r"the visitor's problem_size is \[24, 40\], the problem's \[40, 24\]"):
        bound(problem_size=[N, M])
    with refused("T is read-only"):
        bound(T=np.zeros((M, N), np.float32).view(ReadOnly))
    with refused("output_op is what operation.epilogue_type"):
        GemmArguments(operation, size, a, b, None, z)
    with refused("D is a NumPy, PyTorch or CuPy array"):
        bound(Z=None)
    with refused("visitor=True takes an EpilogueVisitTree, got LinearCombination"):
        plain = simt()
        GemmOperationUniversal(
            80, plain.tile_description, plain.A, plain.B, plain.C, plain.epilogue_functor, visitor=True
        )


@pytest.mark.parametrize(
    "name",
    [
        "GemmOperationGrouped",
        "GemmGroupedArguments",
        "GroupedGemmArguments",
        "Conv2dOperation",
        "Conv2dArguments",
        "Conv2dProblemSize",
        "SymmetricTensorDescription",
        "TriangularTensorDescription",
        "LayerNorm",
    ],
)
def test_what_there_is_not_says_so(name):
    with refused("Tilewright has no|is not supported", Unsupported):
        getattr(pycutlass, name)(arch=80)
