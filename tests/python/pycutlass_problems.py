"""Operations of every kind that PyCUTLASS has, and problems for them.

Data are integers, so that every order of addition gives the same bits.
"""

import itertools

import numpy as np
import pytest

from tilewright.errors import InvalidArgument
from tilewright.pycutlass import (
    GemmArguments,
    GemmOperationUniversal,
    LinearCombination,
    MathInstruction,
    MathOperation,
    TensorDescription,
    TileDescription,
    cutlass,
)

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
    """An array of bfloat16 bit patterns whose dtype is named bfloat16, as in ml_dtypes, because NumPy has no such type."""

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
    """The types, tile and alignments of an operation, as PyCUTLASS's tests write them."""

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
        """`functor` is an epilogue, or a function that makes one from a tile."""
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


def stored(values, layout, element=F32):
    """A matrix or a batch with its elements in the order of the layout."""
    return array(values if layout is ROW else np.swapaxes(values, -1, -2), element)


def empty(operation, *shape):
    return stored(np.full(shape, 99), operation.C.layout, operation.C.element)


def matrix(memory, operation):
    """The inverse of `stored`."""
    values = memory.values() if isinstance(memory, BFloat16Array) else memory
    return values if operation.C.layout is ROW else np.swapaxes(values, -1, -2)


def problem(operation, batch=None, m=M, n=N, k=K, most=4):
    """A, B and C, and the same as returned by `stored`."""
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


def refused(match, error=InvalidArgument):
    return pytest.raises(error, match=match)
