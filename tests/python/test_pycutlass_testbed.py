"""pycutlass.test: operations on random operands against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import pycutlass
from tilewright.errors import InvalidArgument
from tilewright.pycutlass import MathInstruction, MathOperation, TensorDescription, TileDescription, cutlass, testbed

F16, F32, S8, S32 = cutlass.float16, cutlass.float32, cutlass.int8, cutlass.int32
TENSOR_OP, SIMT = cutlass.OpClass.TensorOp, cutlass.OpClass.Simt
INTERLEAVED = (cutlass.ColumnMajorInterleaved32, cutlass.RowMajorInterleaved32, cutlass.ColumnMajorInterleaved32)


def parts(
    element: Any, accumulator: Any, output: Any, instruction: list[int], alignments: tuple[int, int, int], layouts: Any
) -> tuple[Any, ...]:
    """The tile and the descriptions of a small operation."""
    opcode = SIMT if instruction == [1, 1, 1] else TENSOR_OP
    math = MathInstruction(instruction, element, element, accumulator, opcode, MathOperation.multiply_add)
    tile = TileDescription([64, 32, 64 * 8 // element.bits if opcode is TENSOR_OP else 8], 2, [2, 1, 1], math)
    operands = (
        TensorDescription(of, layout, alignment)
        for of, layout, alignment in zip((element, element, output), layouts, alignments, strict=True)
    )
    return tile, *operands


def gemm(*of: Any, functor: Any = None, grouped: bool = False) -> Any:
    tile, a, b, c = parts(*of)
    functor = functor or pycutlass.LinearCombination(
        c.element, c.alignment, tile.math_instruction.element_accumulator, F32
    )
    if grouped:
        mode = pycutlass.SchedulerMode.Device
        return pycutlass.GemmOperationGrouped(80, tile, a, b, c, functor, precompute_mode=mode)
    return pycutlass.GemmOperationUniversal(80, tile, a, b, c, functor)


OPERATIONS = {
    "tensor cores": (F16, F32, F16, [16, 8, 16], (8, 8, 8), testbed.LayoutCombination.TNT),
    "CUDA cores": (F32, F32, F32, [1, 1, 1], (1, 1, 1), testbed.LayoutCombination.NTN),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_gemms_are_right(name: str) -> None:
    assert testbed.test_all_gemm(gemm(*OPERATIONS[name]))
    assert testbed.test_all_gemm(gemm(*OPERATIONS[name]), "multistage")


def test_interleaved_gemms_are_right() -> None:
    functor = pycutlass.FastLinearCombinationClamp(S8, 8)
    operation = gemm(S8, S32, S8, [16, 8, 32], (16, 16, 8), INTERLEAVED, functor=functor)
    assert testbed.test_all_gemm(operation, "interleaved")


def test_groups_are_right() -> None:
    operation = gemm(F16, F32, F32, [16, 8, 16], (8, 8, 4), testbed.LayoutCombination.TTT, grouped=True)
    assert testbed.TestbedGrouped(operation).run(5, 2.0, -1.0)


def convolution(kind: str, stride: str = "Strided") -> Any:
    tile, a, b, c = parts(F16, F32, F32, [16, 8, 16], (8, 8, 4), [cutlass.TensorNHWC] * 3)
    return pycutlass.Conv2dOperation(
        cutlass.conv.Operator[kind],
        cutlass.conv.IteratorAlgorithm.optimized,
        80,
        tile,
        a,
        b,
        c,
        pycutlass.StrideSupport[stride],
        pycutlass.LinearCombination(F32, 4, F32, F32),
    )


@pytest.mark.parametrize("kind, stride", [("fprop", "Strided"), ("dgrad", "Strided"), ("wgrad", "Strided")])
def test_convolutions_are_right(kind: str, stride: str) -> None:
    assert testbed.test_all_conv2d(convolution(kind, stride))


@pytest.mark.parametrize("launcher", ["gemm", "groups", "convolution"])
def test_wrong_results_are_found(launcher: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    operation = (
        convolution("fprop")
        if launcher == "convolution"
        else gemm(*OPERATIONS["tensor cores"], grouped=launcher == "groups")
    )
    monkeypatch.setattr(operation, "run", lambda arguments: 0)
    if launcher == "groups":
        assert not testbed.TestbedGrouped(operation).run(2)
        return
    run: Any = testbed.test_all_conv2d if launcher == "convolution" else testbed.test_all_gemm
    with monkeypatch.context() as patch:
        for arguments in (pycutlass.Conv2dArguments, pycutlass.GemmArguments):
            patch.setattr(arguments, "sync", lambda self: None)
        if launcher == "convolution":
            assert not testbed.Conv2dLauncher(operation).run(testbed._conv_sizes(operation, False)[0])
        else:
            assert not testbed.GemmUniversalLauncher(operation).run(
                cutlass.gemm.Mode.Gemm, cutlass.gemm.GemmCoord(8, 8, 8)
            )
            with pytest.raises(InvalidArgument, match="testcase must be universal, multistage or interleaved, got 'x'"):
                run(operation, "x")
    assert capsys.readouterr().out.startswith("wrong: ")


def test_a_run_is_timed() -> None:
    operation = gemm(*OPERATIONS["CUDA cores"])
    launcher = testbed.GemmUniversalLauncher(operation, profiling=True, warmup_iterations=0, iterations=2)
    assert launcher.run(cutlass.gemm.Mode.Gemm, cutlass.gemm.GemmCoord(16, 16, 8)) > 0


def test_names_say_what_an_operation_is_made_of() -> None:
    layouts = testbed.LayoutCombination.TNT
    name = testbed.get_name(layouts, [8, 8, 4], F32, F32, F32, [2, 1, 1], [128, 64, 64], None, F16, F16, 90, TENSOR_OP)
    assert name == "test_SM90_Device_Gemm_f16t_f16n_f32t_tensorop_f32_128x64x64_2x1x1_auto_align8-8-4"


def sizes(*channels: int, stride: int = 1) -> list[Any]:
    return [
        cutlass.conv.Conv2dProblemSize(
            cutlass.Tensor4DCoord(1, 4, 4, each),
            cutlass.Tensor4DCoord(8, 1, 1, each),
            cutlass.Tensor4DCoord(0, 0, 0, 0),
            cutlass.MatrixCoord(stride, stride),
            cutlass.MatrixCoord(1, 1),
            cutlass.conv.Mode.cross_correlation,
            1,
            1,
        )
        for each in channels
    ]


@pytest.mark.parametrize(
    ("kind", "algorithm", "stride", "given", "run"),
    [
        ("fprop", "fixed_channels", "Strided", sizes(8, 16, 24), [8]),
        ("fprop", "few_channels", "Strided", sizes(8, 12, 16), [8, 16]),
        ("dgrad", "optimized", "Unity", [*sizes(8), *sizes(16, stride=2)], [8]),
        ("dgrad", "optimized", "Strided", [*sizes(8), *sizes(16, stride=2)], [16]),
        ("wgrad", "optimized", "Strided", [*sizes(8), *sizes(16, stride=2)], [8, 16]),
    ],
)
def test_problems_of_the_caller_are_chosen_as_in_pycutlass(
    kind: str, algorithm: str, stride: str, given: Any, run: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(testbed.Conv2dLauncher, "run", lambda self, size, *_: ran.append(size) or True)
    operation = convolution(kind, stride)
    operation.iterator_algorithm = cutlass.conv.IteratorAlgorithm[algorithm]
    assert testbed.test_all_conv2d(operation, given)
    assert [each.C for each in given if each in ran] == run
    ran.clear()
    assert testbed.test_all_conv2d(operation, sizes(32, 48, 64), interleaved=True)
    assert [each.C for each in ran[-2:]] != [48, 64] and all(each.C % 32 == 0 for each in ran)


def test_launchers_count_and_compute_on_the_host() -> None:
    operation = gemm(*OPERATIONS["tensor cores"])
    launcher, size = testbed.GemmUniversalLauncher(operation), cutlass.gemm.GemmCoord(16, 8, 24)
    assert launcher.bytes(size, beta=1.0) - launcher.bytes(size) == 2 * 16 * 8
    assert launcher.bytes(size, 3) == 3 * 2 * (16 * 24 + 24 * 8 + 16 * 8) and launcher.flops(size, 3) == 3 * 2 * 16 * 8 * 24
    random = np.random.default_rng(1)
    a, b, c = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((2, 16, 24), (2, 24, 8), (2, 16, 8)))
    d = launcher.host_reference(size, 2, a, b.swapaxes(1, 2).copy(), c, 2.0, -1.0)
    np.testing.assert_array_equal(d.reshape(2, 16, 8), 2 * a @ b - c)
    dgrad, (problem,) = testbed.Conv2dLauncher(convolution("dgrad")), sizes(16, stride=2)
    gemm_size = cutlass.conv.implicit_gemm_problem_size(cutlass.conv.Operator.dgrad, problem)
    products = gemm_size.m() * gemm_size.n() * gemm_size.k()
    assert dgrad.flops(problem) == 2 * products // 4 + 2 * gemm_size.m() * gemm_size.n()
    assert dgrad.bytes(problem, 1.0, 1.0) - dgrad.bytes(problem) == 4 * 16 * 16
    y, w = random.integers(-3, 4, (1, 2, 2, 8)).astype(np.float16), random.integers(-3, 4, (8, 1, 1, 16)).astype(np.float16)
    expected = np.zeros((1, 4, 4, 16), np.float32)
    expected[:, ::2, ::2] = y.astype(np.float32) @ w.reshape(8, 16).astype(np.float32)
    x = dgrad.host_reference(problem, y, w, np.ones((1, 4, 4, 16), np.float32), 1.0, 2.0)
    np.testing.assert_array_equal(x.reshape(expected.shape), expected + 2)
