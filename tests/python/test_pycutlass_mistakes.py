"""Mistakes of users of PyCUTLASS and of cutlass_api: arguments of another type, each named in one exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import InvalidArgument, cutlass_api
from tilewright.cutlass_api.cutlass import cute
from tilewright.pycutlass import *
from tilewright.pycutlass import cutlass

F32, ROW = cutlass.float32, cutlass.RowMajor
MATH = MathInstruction([1, 1, 1], F32, F32, F32, cutlass.OpClass.Simt, MathOperation.multiply_add)
TILE = TileDescription([32, 32, 8], 2, [1, 1, 1], MATH)
T = TensorDescription(F32, ROW, 1)
LINEAR = LinearCombination(F32, 1, F32, F32)
SIZE = cutlass.gemm.GemmCoord(8, 8, 8)


def operation(**changed: Any) -> Any:
    given = {"arch": 80, "tile_description": TILE, "A": T, "B": T, "C": T, "epilogue_functor": LINEAR, **changed}
    return GemmOperationUniversal(**given)


def z(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def math(*given: Any) -> Any:
    return MathInstruction([16, 8, 16], cutlass.float16, cutlass.float16, F32, *given)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "the class is text": (lambda: math("TensorOp"), "opcode_class must be cutlass.OpClass.Simt or .*, got 'TensorOp'"),
    "the math is text": (
        lambda: math(cutlass.OpClass.TensorOp, "multiply_add"),
        "math_operation must be a MathOperation, as MathOperation.multiply_add, got 'multiply_add'",
    ),
    "no math": (lambda: TileDescription([32, 32, 8], 2, [1, 1, 1], None), "math_instruction must be a MathInstruction"),
    "the alignment is text": (lambda: TensorDescription(F32, ROW, "4"), "alignment must be an int, got '4'"),
    "the alignment is negative": (lambda: TensorDescription(F32, ROW, -4), "alignment must be at least 1, got -4"),
    "arch is text": (lambda: operation(arch="sm_80"), "arch must be an int, got 'sm_80'"),
    "arch is a float": (lambda: operation(arch=8.0), "arch must be an int, got 8.0"),
    "the swizzle is text": (
        lambda: operation(swizzling_functor="IdentitySwizzle1"),
        "swizzling_functor must be a swizzle such as cutlass.IdentitySwizzle1, got 'IdentitySwizzle1'",
    ),
    "the swizzle is a class": (lambda: operation(swizzling_functor=int), "swizzling_functor must be a swizzle"),
    "the epilogue is a class": (
        lambda: operation(epilogue_functor=LinearCombination),
        r"epilogue_functor must be an epilogue such as LinearCombination\(...\), got <class",
    ),
    "the epilogue is text": (lambda: operation(epilogue_functor="relu"), "epilogue_functor must be an epilogue"),
    "math in place of a tile": (lambda: operation(tile_description=MATH), "tile_description must be a TileDescription"),
    "a type in place of A": (lambda: operation(A=F32), "A must be a TensorDescription, got <DataType.float32"),
    "C is None": (lambda: operation(C=None), "C must be a TensorDescription, got None"),
    "alpha is text": (lambda: operation().epilogue_type("1", 0), "alpha must be a number, got '1'"),
    "beta is a list": (lambda: operation().epilogue_type(1, [0]), r"beta must be a number, got \[0\]"),
    "no arguments": (lambda: operation().run(None), "takes a GemmArguments of the operation, got None"),
    "arrays are no arguments": (lambda: operation().run(z(8, 8)), "takes a GemmArguments of the operation"),
    "a conv kind is text": (
        lambda: Conv2dOperation(
            "fprop", IteratorAlgorithm.optimized, 80, TILE, T, T, T, StrideSupport.Strided, LINEAR
        ),
        "conv_kind must be an Operator, got 'fprop'",
    ),
    "an operation is text": (
        lambda: GemmArguments("gemm", SIZE, z(8, 8), z(8, 8), z(8, 8), z(8, 8)),
        "operation must be a GemmOperationUniversal, got 'gemm'",
    ),
    "a class without its arguments": (
        lambda: GemmArguments(GemmOperationUniversal, SIZE, z(8, 8), z(8, 8), z(8, 8), z(8, 8)),
        "operation must be a GemmOperationUniversal, got <class",
    ),
    "a kernel outside": (lambda: cute.arch.block_idx(), r"is for the body of a function with @cute.kernel"),
    "a query for text": (lambda: cutlass_api.get_kernels("gemm"), r"args must be the arguments of an operation"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str) -> None:
    call, message = MISTAKES[mistake]
    with pytest.raises((InvalidArgument, TypeError), match=message) as raised:
        call()
    assert len(str(raised.value)) < 400 and raised.value.__cause__ is None
