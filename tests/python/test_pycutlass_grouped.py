"""GemmOperationGrouped: the grouped tests of PyCUTLASS by their names and sizes, and the arguments that are refused.

Data are integers, so that results are exact. The names are those of PyCUTLASS's test/gemm/gemm_grouped_sm80.py and
test/unit/test_sm80.py; both have the same sizes: the first problem is 48 x 16 x 8, and each extent of the others is
8 * i + 24 for a random i below 64 (for 8-bit integers 48 x 16 x 32, and 16 * i + 48).
"""

import random

import numpy as np
import pytest
from pycutlass_problems import (
    BF16,
    COLUMN,
    CONFIGURATIONS,
    F16,
    F32,
    F64,
    FAST_BF16,
    FAST_F32,
    HALF,
    ROW,
    S8,
    S32,
    SATURATE,
    SIMT,
    TENSOR_OP,
    integers,
    matrix,
    refused,
    simt,
    stored,
)

import tilewright
from tilewright import pycutlass
from tilewright.errors import Unsupported
from tilewright.pycutlass import (
    EpilogueVisitTree,
    GemmGroupedArguments,
    GemmOperationGrouped,
    LinearCombination,
    MathInstruction,
    MathOperation,
    SchedulerMode,
    TensorDescription,
    TileDescription,
    cutlass,
)

DEVICE, HOST = SchedulerMode.Device, SchedulerMode.Host
ADD = MathOperation.multiply_add
BATCHED = cutlass.BatchedIdentitySwizzle


def operation(shape, kinds, math, tile, operands, mode=DEVICE, swizzle=cutlass.IdentitySwizzle1, compute=None):
    """`kinds` are the types of operands and accumulator; `operands` has element, layout and alignment of A, B and C."""
    element, accumulator = kinds
    instruction = MathInstruction(
        shape, element, element, accumulator, SIMT if shape == [1, 1, 1] else TENSOR_OP, math
    )
    description = TileDescription(*tile, instruction)
    a, b, c = (TensorDescription(*each) for each in operands)
    epilogue = LinearCombination(c.element, c.alignment, accumulator, compute or accumulator)
    return GemmOperationGrouped(80, description, a, b, c, epilogue, swizzle, precompute_mode=mode)


# name: (instruction, types, math, tile, operands, compute type, problems, modes)
CASES = {
    "SM80_GemmGrouped_f16n_f16t_f32n_tensor_op_f32_128x128x32": (
        [16, 8, 16], (F16, F32), ADD, ([128, 128, 32], 3, [2, 2, 1]),
        ((F16, COLUMN, 8), (F16, COLUMN, 8), (F32, COLUMN, 4)), F32, 24, (DEVICE, HOST),
    ),
    "SM80_GemmGrouped_f64t_f64t_f64n_tensor_op_f64_64x64x16": (
        [8, 8, 4], (F64, F64), ADD, ([64, 64, 16], 4, [2, 2, 1]),
        ((F64, ROW, 1), (F64, ROW, 1), (F64, COLUMN, 1)), F64, 24, (DEVICE, HOST),
    ),
    "SM80_GemmGrouped_f32t_f32t_f32t_simt_f32_128x64x8": (
        [1, 1, 1], (F32, F32), ADD, ([128, 64, 8], 4, [2, 2, 1]),
        ((F32, ROW, 1), (F32, ROW, 1), (F32, ROW, 1)), F32, 27, (DEVICE, HOST),
    ),
    "SM80_GemmGrouped_f16n_f16t_f32n_tensor_op_f32_128x128x32_cache": (
        [16, 8, 16], (F16, F32), ADD, ([128, 128, 32], 3, [2, 2, 1]),
        ((F16, COLUMN, 8), (F16, COLUMN, 8), (F32, COLUMN, 4)), F32, 5, (DEVICE, HOST),
    ),
    "16816_f16_f32_256x128x32": (
        [16, 8, 16], (F16, F32), ADD, ([256, 128, 32], 3, [4, 2, 1]),
        ((F16, ROW, 8), (F16, ROW, 8), (F32, ROW, 4)), F32, 24, (HOST,),
    ),
    "16816_f16_f16_64x256x32": (
        [16, 8, 16], (F16, F16), ADD, ([64, 256, 32], 4, [1, 4, 1]),
        ((F16, COLUMN, 4), (F16, ROW, 8), (F16, ROW, 8)), F16, 24, (HOST,),
    ),
    "16816_bf16_f32_128x64x64": (
        [16, 8, 16], (BF16, F32), ADD, ([128, 64, 64], 3, [2, 2, 1]),
        ((BF16, ROW, 8), (BF16, COLUMN, 4), (F32, ROW, 4)), F32, 24, (HOST,),
    ),
    "1688_tf32_f32_128x256x16": (
        [16, 8, 8], (cutlass.tfloat32, F32), ADD, ([128, 256, 16], 3, [4, 2, 1]),
        ((F32, ROW, 4), (F32, ROW, 4), (F32, COLUMN, 4)), F32, 24, (DEVICE,),
    ),
    "1688_fast_f16_64x256x16": (
        [16, 8, 8], (F16, F32), HALF, ([64, 256, 16], 4, [1, 4, 1]),
        ((F32, ROW, 4), (F32, COLUMN, 2), (F32, COLUMN, 4)), F32, 24, (DEVICE,),
    ),
    "1688_fast_bf16_128x64x32": (
        [16, 8, 8], (BF16, F32), FAST_BF16, ([128, 64, 32], 3, [2, 2, 1]),
        ((F32, COLUMN, 2), (F32, ROW, 4), (F32, COLUMN, 4)), F32, 24, (DEVICE,),
    ),
    "1688_fast_f32_256x64x32": (
        [16, 8, 8], (F32, F32), FAST_F32, ([256, 64, 32], 3, [4, 2, 1]),
        ((F32, COLUMN, 2), (F32, COLUMN, 2), (F32, ROW, 4)), F32, 24, (DEVICE,),
    ),
    "884_f64_64x256x16": (
        [8, 8, 4], (F64, F64), ADD, ([64, 256, 16], 3, [2, 4, 1]),
        ((F64, COLUMN, 1), (F64, COLUMN, 1), (F64, COLUMN, 1)), F64, 24, (DEVICE,),
    ),
    "16832_s8_128x256x64": (
        [16, 8, 32], (S8, S32), SATURATE, ([128, 256, 64], 3, [2, 4, 1]),
        ((S8, ROW, 16), (S8, COLUMN, 16), (S8, COLUMN, 16)), F32, 24, (DEVICE,),
    ),
    "simt_f32_128x256x8": (
        [1, 1, 1], (F32, F32), ADD, ([128, 256, 8], 4, [2, 4, 1]),
        ((F32, ROW, 1), (F32, ROW, 1), (F32, ROW, 1)), F32, 24, (HOST,),
    ),
    "simt_f64_64x128x8": (
        [1, 1, 1], (F64, F64), ADD, ([64, 128, 8], 5, [2, 2, 1]),
        ((F64, ROW, 1), (F64, ROW, 1), (F64, COLUMN, 1)), F64, 24, (DEVICE,),
    ),
}  # fmt: skip


def sizes_of(count, is_integer=False, most=64):
    """The extents of PyCUTLASS's testbed."""
    generator = random.Random(2080)
    step, least, first = (16, 48, (48, 16, 32)) if is_integer else (8, 24, (48, 16, 8))
    others = [tuple(step * generator.randrange(most) + least for _ in "mnk") for _ in range(count - 1)]
    return [first, *others]


def run(grouped, sizes, alpha, beta, most=2, launches=1):
    """Runs the operation on random integers. Returns the results and the expected ones."""
    lists, expected = {"A": [], "B": [], "C": [], "D": []}, []
    for index, (m, n, k) in enumerate(sizes):
        a, b, c = (
            integers(*shape, seed=3 * index + place, most=most) for place, shape in enumerate(((m, k), (k, n), (m, n)))
        )
        for role, values, description in (("A", a, grouped.A), ("B", b, grouped.B), ("C", c, grouped.C)):
            lists[role].append(stored(values, description.layout, description.element))
        lists["D"].append(stored(np.full((m, n), 99), grouped.C.layout, grouped.C.element))
        expected.append(alpha * (a @ b) + beta * c)
    extents = [cutlass.gemm.GemmCoord(*size) for size in sizes]
    arguments = GemmGroupedArguments(grouped, extents, **lists, output_op=grouped.epilogue_type(alpha, beta))
    assert arguments.launch_count == launches
    assert grouped.run(arguments) == 0
    arguments.sync()
    return [matrix(d, grouped) for d in lists["D"]], expected


RUNS = [(name, mode) for name, case in CASES.items() for mode in case[-1]]


@pytest.mark.parametrize(("name", "mode"), RUNS, ids=[f"{name}-{mode.name}" for name, mode in RUNS])
def test_pycutlass(name, mode):
    shape, kinds, math, tile, operands, compute, problems, _ = CASES[name]
    swizzle = BATCHED if name.startswith("SM80") else cutlass.IdentitySwizzle1
    grouped = operation(shape, kinds, math, tile, operands, mode, swizzle, compute)
    is_integer = kinds[0] is S8
    got, expected = run(grouped, sizes_of(problems, is_integer), 1.0, 1.0, most=1)
    limits = (-128, 127) if is_integer else (-np.inf, np.inf)
    for index, (d, wanted) in enumerate(zip(got, expected, strict=True)):
        assert np.array_equal(d, np.clip(wanted, *limits)), f"problem {index}"



def simt_grouped(**more):
    plain = simt(layouts=(ROW, COLUMN, ROW))
    operands = plain.A, plain.B, plain.C
    mode = {"precompute_mode": DEVICE, **more}
    return GemmOperationGrouped(80, plain.tile_description, *operands, plain.epilogue_functor, **mode)


def test_scalars_are_those_of_all_problems():
    got, expected = run(simt_grouped(), sizes_of(5, most=4), 2.0, -3.0)
    for d, wanted in zip(got, expected, strict=True):
        assert np.array_equal(d, wanted)


def test_arguments_may_be_run_again():
    grouped = simt_grouped()
    a, b, d = np.ones((8, 16), np.float32), np.ones((24, 16), np.float32), np.zeros((8, 24), np.float32)
    arguments = GemmGroupedArguments(grouped, [cutlass.gemm.GemmCoord(8, 24, 16)], [a], [b], None, [d])
    for value in (1, 2):
        a[...] = value
        grouped.run(arguments)
        arguments.sync()
        assert (d == 16 * value).all()
    assert arguments.problem_count == 1 and grouped.precompute_mode is DEVICE


def test_arrays_are_read_in_the_order_of_their_indices_when_the_operation_runs():
    grouped = simt_grouped()
    a = [np.zeros((m, 32), np.float32)[:, ::2] for m in (8, 3)]
    b, d = [np.ones((n, 16), np.float32) for n in (24, 5)], [np.zeros(shape, np.float32) for shape in ((8, 24), (3, 5))]
    sizes = [cutlass.gemm.GemmCoord(8, 24, 16), cutlass.gemm.GemmCoord(3, 5, 16)]
    arguments = GemmGroupedArguments(grouped, sizes, a, b, None, d)
    a[0][...], a[1][...] = 2, 3
    grouped.run(arguments)
    arguments.sync()
    assert (d[0] == 32).all() and (d[1] == 48).all()


def test_vectors_of_c_are_a_launch_for_each_problem():
    grouped = simt_grouped()
    a, b = [np.ones((m, 16), np.float32) for m in (8, 3)], [np.ones((24, 16), np.float32)] * 2
    c, d = [np.arange(24, dtype=np.float32)] * 2, [np.zeros((m, 24), np.float32) for m in (8, 3)]
    sizes = [cutlass.gemm.GemmCoord(m, 24, 16) for m in (8, 3)]
    arguments = GemmGroupedArguments(grouped, sizes, a, b, c, d, output_op=grouped.epilogue_type(1.0, 1.0))
    assert arguments.launch_count == 2
    grouped.run(arguments)
    arguments.sync()
    assert all((each == 16 + c[0]).all() for each in d)


@pytest.mark.parametrize(("alignment", "launches"), [(8, 1), (4, 3)])
def test_hopper_designs(alignment, launches):
    """Independent groups of sm_90's kernels need operands that are aligned to 16 bytes."""
    if pycutlass.device_cc() < 90:
        pytest.skip("tensor cores of sm_90")
    plain = CONFIGURATIONS["hopper_f16"].operation((ROW, COLUMN, ROW))
    a, b = TensorDescription(F16, ROW, alignment), TensorDescription(F16, COLUMN, alignment)
    grouped = GemmOperationGrouped(
        90, plain.tile_description, a, b, plain.C, plain.epilogue_functor, precompute_mode=HOST
    )
    got, expected = run(grouped, sizes_of(3, most=4), 1.0, 1.0, launches=launches)
    for d, wanted in zip(got, expected, strict=True):
        assert np.array_equal(d, wanted)


def test_problems_may_be_empty():
    got, expected = run(simt_grouped(), [(0, 8, 8), (8, 8, 8), (8, 8, 0), (8, 0, 8)], 1.0, 2.0)
    for d, wanted in zip(got, expected, strict=True):
        assert np.array_equal(d, wanted)
    empty = GemmGroupedArguments(grouped := simt_grouped(), [], [], [], [], [])
    assert empty.launch_count == 0 and grouped.run(empty) == 0


def test_add_module_compiles_the_kernel_that_runs():
    grouped = simt_grouped()
    pycutlass.compiler.add_module([grouped, simt_grouped(precompute_mode=HOST)])
    before = tilewright.cache_counters()
    run(grouped, [(8, 8, 8), (16, 8, 24)], 1.0, 1.0)
    after = tilewright.cache_counters()
    assert (after["compiles"], after["disk_hits"]) == (before["compiles"], before["disk_hits"])


class Visitor(EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        return accum + accum


def test_what_is_refused():
    with refused("precompute_mode must be SchedulerMode.Device or SchedulerMode.Host, got None"):
        simt_grouped(precompute_mode=None)
    plain = simt()
    functor = Visitor(None, plain.tile_description, F32, 1, F32, F32)
    functor.initialize()
    with refused("takes no EpilogueVisitTree", Unsupported):
        GemmOperationGrouped(80, plain.tile_description, plain.A, plain.B, plain.C, functor, precompute_mode=DEVICE)
    grouped = simt_grouped()
    size = cutlass.gemm.GemmCoord(8, 24, 16)
    a, b, d = np.ones((8, 16), np.float32), np.ones((24, 16), np.float32), np.zeros((8, 24), np.float32)
    good = {"problem_sizes": [size, size], "A": [a, a], "B": [b, b], "C": None, "D": [d, d.copy()]}

    def bound(**changed):
        return GemmGroupedArguments(grouped, **{**good, **changed})

    with refused("B is a list of 1 arrays, but there are 2 problem sizes"):
        bound(B=[b])
    with refused("A must be a list of arrays, got ndarray"):
        bound(A=a)
    with refused("problem 1: A needs 128 elements"):
        bound(A=[a, a.ravel()[1:]])
    with refused("problem 1: B is f64, but the operation takes f32"):
        bound(B=[b, b.astype(np.float64)])
    with refused("problem 0: problem_size must be a cutlass.gemm.GemmCoord"):
        bound(problem_sizes=[(8, 24, 16), size])
    with refused("problem 0: C is None, but beta is 1.0"):
        bound(output_op=grouped.epilogue_type(1.0, 1.0))
    with refused("operation must be a GemmOperationGrouped, got GemmOperationUniversal"):
        GemmGroupedArguments(plain, **good)
    with refused("the arguments of another operation"):
        simt_grouped().run(bound())
