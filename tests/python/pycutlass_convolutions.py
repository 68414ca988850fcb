"""The convolutions of PyCUTLASS's tests, by their names, and their problems.

A row has the name of the file, what follows Conv2d_ in the name of the test, kind, algorithm, stride support,
instruction, tile, stages, warps, types of A and B, of the accumulator and of C, alignments of A, B and C, and the
problems that the test adds to the default ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.pycutlass import (
    Conv2dOperation,
    Conv2dProblemSize,
    ConvKind,
    IteratorAlgorithm,
    LinearCombination,
    MathInstruction,
    MathOperation,
    StrideSupport,
    TensorDescription,
    TileDescription,
    cutlass,
)

F16, BF16, F32, F64 = cutlass.float16, cutlass.bfloat16, cutlass.float32, cutlass.float64
S8, S32, TF32 = cutlass.int8, cutlass.int32, cutlass.tfloat32
NUMPY: dict[Any, Any] = {F16: np.float16, F32: np.float32, F64: np.float64, S8: np.int8, S32: np.int32}
FAST_F16, FAST_BF16 = MathOperation.multiply_add_fast_f16, MathOperation.multiply_add_fast_bf16
FAST_F32, SATURATE = MathOperation.multiply_add_fast_f32, MathOperation.multiply_add_saturate

# (N, H, W, C), (K, R, S), padding, stride: the default problems whose channels are a multiple of 64.
Problem = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int]]


def problem(images: tuple[int, ...], filters: tuple[int, ...], pad: Any = 0, stride: Any = 1) -> Problem:
    return (
        images,
        filters,
        pad if isinstance(pad, tuple) else (pad, pad),
        stride if isinstance(stride, tuple) else (stride,) * 2,
    )


DEFAULT = [
    problem((1, 1, 1, 64), (8, 1, 1), 1),
    problem((1, 1, 8, 64), (8, 1, 3), 1),
    problem((1, 7, 8, 64), (8, 3, 3), 1),
    problem((1, 7, 9, 64), (8, 4, 4), 1),
    problem((2, 7, 9, 64), (8, 5, 5), 1),
    problem((3, 7, 9, 64), (8, 6, 5), 1),
    problem((3, 7, 9, 64), (8, 6, 6), 1),
    problem((3, 7, 9, 64), (8, 7, 7), 1),
    problem((1, 11, 7, 64), (8, 1, 1), 0, 2),
    problem((1, 11, 7, 64), (8, 3, 3), 1, 2),
    problem((1, 13, 11, 64), (8, 1, 1), 1, 2),
    problem((1, 17, 19, 64), (16, 2, 2), 1, 2),
    problem((1, 23, 5, 64), (16, 3, 3), 1, 2),
    problem((1, 23, 21, 128), (224, 3, 3), 1),
    problem((1, 16, 24, 128), (96, 3, 3), 1),
    problem((1, 55, 51, 256), (512, 1, 1), 0, 2),
    problem((1, 27, 23, 256), (512, 3, 3), 0, 3),
    problem((1, 27, 31, 256), (512, 3, 3), (5, 7), (3, 4)),
    problem((1, 27, 35, 256), (512, 7, 5), (11, 7), (3, 5)),
    problem((1, 27, 27, 256), (512, 3, 3), 1, (1, 2)),
    problem((1, 27, 27, 256), (512, 3, 3), 1, (2, 1)),
    problem((3, 28, 28, 256), (256, 2, 2), 0, 2),
]
SPLIT_K = problem((1, 17, 11, 288), (160, 3, 3), 1)
SMALL = [DEFAULT[1], DEFAULT[9]]  # one of stride 1, one of stride 2
SMALL_INTERLEAVED = [problem((1, 1, 8, 64), (32, 1, 3), 1), problem((2, 5, 7, 64), (64, 3, 3), 1, 2)]
SMALL_SPLIT_K = problem((1, 5, 4, 72), (24, 3, 3), 1)

ALIGN4 = [problem((1, 4, 4, 12), (8, 3, 3), 0, 3)]
ALIGN2 = [*ALIGN4, problem((1, 4, 4, 14), (8, 3, 3), 0, 3), problem((1, 23, 56, 98), (128, 3, 3), (4, 5), 3)]
FPROP_ALIGN4 = [*ALIGN4, problem((1, 4, 4, 28), (8, 3, 3), 0, 3), problem((1, 23, 56, 100), (128, 3, 3), (4, 5), 3)]
STRIDED_ALIGN4 = [problem((1, 56, 56, 12), (8, 1, 1), 0, 2), problem((1, 55, 55, 12), (8, 1, 1), 0, 2)]
ONE_CHANNEL = [problem((1, 8, 8, 1), (1, 3, 3), 1)]


def of_channels(channels: int, small: bool) -> list[Problem]:
    large = [
        ((32, 7, 7), 1),
        ((64, 7, 7), 2),
        ((64, 5, 5), 1),
        ((64, 5, 5), 2),
    ]
    first = [problem((1, 8, 8, channels), (16, 3, 3), 1, 2)]
    if small:
        first += [problem((1, 16, 16, channels), (16, 3, 3), 1, 2), problem((1, 16, 16, channels), (16, 7, 7), 1)]
    return first + [problem((1, 224, 224, channels), filters, 1, stride) for filters, stride in large]


@dataclass(frozen=True)
class Test:
    __test__ = False

    file: str
    name: str
    kind: str
    algorithm: str
    stride: str
    instruction: tuple[int, int, int]
    tile: tuple[int, int, int]
    stages: int
    warps: tuple[int, int, int]
    operands: Any
    accumulator: Any
    output: Any
    alignments: tuple[int, int, int]
    problems: tuple[Problem, ...] = ()
    math: MathOperation = MathOperation.multiply_add
    instruction_element: Any = None
    swizzle: Any = None
    is_interleaved: bool = False

    @property
    def id(self) -> str:
        return f"{self.file}-{self.name}"

    @property
    def takes_default_problems(self) -> bool:
        return self.algorithm in ("analytic", "optimized") and "align" not in self.name

    def operation(self) -> Conv2dOperation:
        is_simt = self.instruction == (1, 1, 1)
        element = self.instruction_element or self.operands
        math = MathInstruction(
            [*self.instruction],
            element,
            element,
            self.accumulator,
            cutlass.OpClass.Simt if is_simt else cutlass.OpClass.TensorOp,
            self.math,
        )
        blocked = (cutlass.TensorNC32HW32, cutlass.TensorC32RSK32, cutlass.TensorNC32HW32)
        a, b, c = (
            TensorDescription(kind, layout if self.is_interleaved else cutlass.TensorNHWC, alignment)
            for kind, layout, alignment in zip(
                (self.operands, self.operands, self.output), blocked, self.alignments, strict=True
            )
        )
        is_strided = self.kind == "dgrad" and self.stride == "Strided"
        swizzle = cutlass.StridedDgradIdentitySwizzle1 if is_strided else cutlass.IdentitySwizzle1
        compute = self.accumulator if self.accumulator in (F64, S32) and not self.is_interleaved else F32
        return Conv2dOperation(
            conv_kind=ConvKind[self.kind],
            iterator_algorithm=IteratorAlgorithm[self.algorithm],
            arch=80,
            tile_description=TileDescription([*self.tile], self.stages, [*self.warps], math),
            A=a,
            B=b,
            C=c,
            stride_support=StrideSupport[self.stride],
            epilogue_functor=LinearCombination(self.output, self.alignments[2], self.accumulator, compute),
            swizzling_functor=self.swizzle or swizzle,
        )


def size_of(given: Problem) -> Conv2dProblemSize:
    images, (filters, r, s), pad, stride = given
    return Conv2dProblemSize(
        cutlass.Tensor4DCoord(*images),
        cutlass.Tensor4DCoord(filters, r, s, images[3]),
        cutlass.Tensor4DCoord(pad[0], pad[0], pad[1], pad[1]),
        cutlass.MatrixCoord(*stride),
        cutlass.MatrixCoord(1, 1),
        cutlass.conv.Mode.cross_correlation,
        1,
        1,
    )


MMA, MMA_K8, TF32_MMA, SIMT = (16, 8, 16), (16, 8, 8), (16, 8, 8), (1, 1, 1)
W22, W24, W42, W14 = (2, 2, 1), (2, 4, 1), (4, 2, 1), (1, 4, 1)
T64, T32, T16, T8 = (128, 128, 64), (128, 128, 32), (128, 128, 16), (128, 128, 8)


def _f16(file: str, name: str, kind: str, algorithm: str, stride: str, *more: Any, **options: Any) -> Test:
    return Test(file, name, kind, algorithm, stride, MMA, T64, 3, W22, F16, F16, F16, *more, **options)


def _tests() -> list[Test]:
    tests = []
    for algorithm in ("analytic", "optimized"):
        title = algorithm.capitalize()
        tests += [
            _f16("dgrad_f16_f16", f"Dgrad_{title}", "dgrad", algorithm, "Unity", (8, 8, 8)),
            _f16("dgrad_f16_f16", f"Dgrad_{title}_align4", "dgrad", algorithm, "Unity", (4, 4, 4)),
            _f16("fprop_f16_f16", f"Fprop_{title}", "fprop", algorithm, "Strided", (8, 8, 8)),
            _f16("fprop_f16_f16", f"Fprop_{title}_align2", "fprop", algorithm, "Strided", (2, 2, 8), tuple(ALIGN2)),
            _f16("wgrad_f16_f16", f"Wgrad_{title}", "wgrad", algorithm, "Strided", (8, 8, 8)),
        ]
        for kind, stride in (("fprop", "Strided"), ("dgrad", "Unity"), ("wgrad", "Strided")):
            warps = W42 if algorithm == "analytic" and kind != "wgrad" else W24
            swizzle = cutlass.IdentitySwizzle2 if (kind, algorithm) == ("fprop", "analytic") else None
            # PyCUTLASS's analytic dgrad is misnamed Fprop.
            tests.append(
                Test(
                    f"{kind}_simt_f32",
                    f"{kind.capitalize()}_{title}",
                    kind,
                    algorithm,
                    stride,
                    SIMT,
                    T8,
                    4,
                    warps,
                    F32,
                    F32,
                    F32,
                    (4, 4, 1),
                    swizzle=swizzle,
                )
            )
        tests.append(
            Test(
                "wgrad_f16_f32",
                f"Wgrad_{title}",
                "wgrad",
                algorithm,
                "Strided",
                MMA_K8,
                T16,
                3,
                W22,
                F16,
                F32,
                F32,
                (8, 8, 4),
            )
        )
        tests.append(
            Test(
                "wgrad_f16_f32",
                f"Wgrad_{title}_align4",
                "wgrad",
                algorithm,
                "Strided",
                MMA_K8,
                T16,
                3,
                W22,
                F16,
                F32,
                F32,
                (4, 4, 4),
                tuple(ALIGN4),
            )
        )
        tests.append(_tf32("dgrad", f"Dgrad_{title}", algorithm, "Unity", T16, (4, 4, 4)))
    tests += [
        _f16(
            "fprop_f16_f16", "Fprop_Optimized_align4", "fprop", "optimized", "Strided", (4, 4, 8), tuple(FPROP_ALIGN4)
        ),
        _tf32("fprop", "Fprop_Analytic", "analytic", "Strided", T16, (4, 4, 4)),
        _tf32("fprop", "Fprop_Optimized_align2", "optimized", "Strided", T16, (2, 2, 4), tuple(ALIGN4)),
        _tf32("wgrad", "Wgrad_Optimized", "optimized", "Strided", T16, (4, 4, 4)),
        _tf32("wgrad", "Wgrad_Optimized_align1", "optimized", "Strided", T32, (1, 1, 1), tuple(ONE_CHANNEL)),
        _f16_f32("fprop_f16_f32", "Fprop_Analytic", "fprop", "analytic", "Strided", T64, 3, (8, 8, 4)),
        _f16_f32(
            "wgrad_f16_f32",
            "Wgrad_Optimized_64x256_32x4",
            "wgrad",
            "optimized",
            "Strided",
            (64, 256, 32),
            3,
            (8, 8, 4),
            W14,
        ),
    ]
    for tile, stages in ((T32, 3), (T32, 4), (T64, 3), (T64, 4)):
        name = f"Dgrad_Optimized_unity_stride_stage{stages}" + ("_64" if tile is T64 else "")
        tests.append(_f16_f32("dgrad_f16_f32", name, "dgrad", "optimized", "Unity", tile, stages, (8, 8, 4)))
    strided = "strided_dgrad_f16_f32"
    tests += [
        _f16_f32(strided, "Strided_Dgrad_Analytic_128x128_32x3", "dgrad", "analytic", "Strided", T32, 3, (8, 8, 4)),
        _f16_f32(
            strided,
            "Strided_Dgrad_Analytic_128x256_64x3",
            "dgrad",
            "analytic",
            "Strided",
            (128, 256, 64),
            3,
            (8, 8, 4),
            W24,
        ),
        _f16_f32(
            strided, "Strided_Dgrad_Analytic_align4", "dgrad", "analytic", "Strided", T32, 3, (4, 4, 4), W22, ALIGN4
        ),
        _f16_f32(strided, "Strided_Dgrad_Optimized_128x128_32x3", "dgrad", "optimized", "Strided", T32, 3, (8, 8, 4)),
        _f16_f32(
            strided,
            "Strided_Dgrad_Optimized_align4",
            "dgrad",
            "optimized",
            "Strided",
            T32,
            3,
            (4, 4, 4),
            W22,
            STRIDED_ALIGN4,
        ),
    ]
    few, fixed = "fprop_few_channels_f16", "fprop_fixed_channels_f16"
    tests += [
        _channels(few, 2, MMA, T64, 3),
        _channels(few, 1, MMA_K8, T32, 2),
        _channels(fixed, 8, MMA, T64, 3),
        _channels(fixed, 4, MMA, T64, 3),
        _channels(fixed, 2, MMA, T64, 3),
    ]
    return tests


def _tf32(kind: str, name: str, algorithm: str, stride: str, tile: Any, alignments: Any, problems: Any = ()) -> Test:
    return Test(
        f"{kind}_tf32", name, kind, algorithm, stride, TF32_MMA, tile, 3, W22, F32, F32, F32, alignments, problems
    )


def _f16_f32(
    file: str,
    name: str,
    kind: str,
    algorithm: str,
    stride: str,
    tile: Any,
    stages: int,
    alignments: Any,
    warps: Any = W22,
    problems: Any = (),
) -> Test:
    return Test(
        file, name, kind, algorithm, stride, MMA, tile, stages, warps, F16, F32, F32, alignments, tuple(problems)
    )


def _channels(file: str, channels: int, instruction: Any, tile: Any, stages: int) -> Test:
    is_few = "few" in file
    return Test(
        file,
        f"Fprop_channels_{channels}",
        "fprop",
        "few_channels" if is_few else "fixed_channels",
        "Strided",
        instruction,
        tile,
        stages,
        W22,
        F16,
        F32,
        F16,
        (channels, channels, 8),
        tuple(of_channels(channels, is_few)),
    )


TESTS = _tests()


def _unit_tests() -> list[Test]:
    """The convolutions of test_sm80.py: all kinds of each row; of s8 there is fprop only, interleaved too."""
    rows: list[tuple[Any, ...]] = [
        # name, instruction, tile, stages, warps, operands, accumulator, output of fprop and wgrad, of dgrad, alignments
        ("f16_f32", MMA, (256, 128, 32), 3, W42, F16, F32, F16, F32, (8, 8)),
        ("f16_f16", MMA, (64, 256, 32), 4, W14, F16, F16, F16, F16, (4, 8)),
        ("bf16_f32", MMA, (128, 64, 64), 3, W22, BF16, F32, F32, F32, (8, 4)),
        ("tf32", TF32_MMA, (128, 256, 16), 3, W42, F32, F32, F32, F32, (4, 4), MathOperation.multiply_add, TF32),
        ("fast_f16", TF32_MMA, (64, 256, 16), 4, W14, F32, F32, F32, F32, (4, 2), FAST_F16, F16),
        ("fast_bf16", TF32_MMA, (128, 64, 32), 3, W22, F32, F32, F32, F32, (2, 4), FAST_BF16, BF16),
        ("fast_f32", TF32_MMA, (256, 64, 32), 3, W42, F32, F32, F32, F32, (2, 2), FAST_F32),
        ("f64", (8, 8, 4), (64, 256, 16), 3, W24, F64, F64, F64, F64, (1, 1)),
        ("simt", SIMT, (128, 256, 8), 4, W24, F32, F32, F32, F32, (1, 1)),
        ("simt_f64", SIMT, (64, 128, 8), 5, W22, F64, F64, F64, F64, (1, 1)),
        ("s8", (16, 8, 32), (128, 256, 64), 3, W24, S8, S32, S32, S32, (16, 16), SATURATE),
    ]
    tests = []
    for name, instruction, tile, stages, warps, operands, accumulator, output, of_dgrad, alignments, *more in rows:
        math, element = (*more, MathOperation.multiply_add, None)[:2] if len(more) != 1 else (more[0], None)
        for kind in ("fprop", "dgrad", "wgrad") if name != "s8" else ("fprop",):
            is_strided = kind == "dgrad" or name in ("f16_f32", "f16_f16", "bf16_f32", "simt", "simt_f64", "s8")
            kind_of_c = of_dgrad if kind == "dgrad" else output
            widest = 1 if name == "simt" else {F16: 8, F32: 4, F64: 1, S32: 4}[kind_of_c]
            tests.append(
                Test(
                    "sm80",
                    f"{kind}_{name}",
                    kind,
                    "optimized",
                    "Strided" if is_strided else "Unity",
                    instruction,
                    tile,
                    stages,
                    warps,
                    operands,
                    accumulator,
                    kind_of_c,
                    (*alignments, widest),
                    (),
                    math,
                    element,
                )
            )
    # SM80_TensorOp_16832_Interleaved
    tests.append(
        Test(
            "sm80",
            "fprop_s8_interleaved",
            "fprop",
            "optimized",
            "Strided",
            (16, 8, 32),
            (256, 64, 64),
            4,
            (4, 1, 1),
            S8,
            S32,
            S8,
            (16, 16, 8),
            (),
            SATURATE,
            is_interleaved=True,
        )
    )
    return tests


UNIT_TESTS = _unit_tests()
