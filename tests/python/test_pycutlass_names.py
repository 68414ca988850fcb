"""The names of PyCUTLASS beside its operations: pycutlass.utils, ReferenceModule, and activations as instances."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tilewright import InvalidArgument
from tilewright.pycutlass import *
from tilewright.pycutlass import cutlass, utils
from tilewright.pycutlass.utils import ReferenceModule, numpy_to_cutlass, to_cutlass, torch_to_cutlass

MATH = MathInstruction([1, 1, 1], *[cutlass.float32] * 3, cutlass.OpClass.Simt, MathOperation.multiply_add)
TILE = TileDescription([32, 32, 8], 2, [2, 2, 1], MATH)


def stored(matrix: Any, layout: Any) -> Any:
    return (matrix if layout is cutlass.RowMajor else matrix.swapaxes(-1, -2)).reshape(-1).copy()


@pytest.mark.parametrize("layouts", list(itertools.product([cutlass.RowMajor, cutlass.ColumnMajor], repeat=3)))
@pytest.mark.parametrize("bias", [False, True])
def test_operations_agree_with_the_reference(layouts: tuple[Any, ...], bias: bool) -> None:
    if bias and layouts[2] is not cutlass.RowMajor:
        pytest.skip("a bias is for row-major outputs")
    random = np.random.default_rng(5)
    m, n, k = 24, 20, 12
    a, b, c = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    A, B, C = (TensorDescription(cutlass.float32, layout, 1) for layout in layouts)
    functor = LinearCombinationGeneric(relu(cutlass.float32), cutlass.float32, 1, cutlass.float32, cutlass.float32)
    operation = GemmOperationUniversal(80, TILE, A, B, C, functor)
    flat_a, flat_b = stored(a, layouts[0]), stored(b, layouts[1])
    source = c[0].copy() if bias else stored(c, layouts[2])
    d = np.full(m * n, np.nan, np.float32)
    arguments = GemmArguments(
        operation,
        cutlass.gemm.GemmCoord(m, n, k),
        flat_a,
        flat_b,
        source,
        d,
        output_op=operation.epilogue_type(2.0, -1.0),
    )
    operation.run(arguments)
    arguments.sync()
    size = cutlass.gemm.GemmCoord(m, n, k)
    reference = ReferenceModule(A, B, C).run(flat_a, flat_b, source, size, 2.0, -1.0, bias=bias)
    expected = np.maximum(2 * a @ b - (c[0] if bias else c), 0)
    np.testing.assert_array_equal(np.maximum(reference, 0), stored(expected, layouts[2]))
    np.testing.assert_array_equal(d, np.maximum(reference, 0))


def test_the_reference_takes_batches_and_integers() -> None:
    random = np.random.default_rng(6)
    a, b = random.integers(-128, 128, (3, 5, 7)).astype(np.int8), random.integers(-128, 128, (3, 7, 6)).astype(np.int8)
    byte = TensorDescription(cutlass.int8, cutlass.RowMajor, 1)
    word = TensorDescription(cutlass.int32, cutlass.RowMajor, 1)
    c = np.zeros((3, 5, 6), np.int32)
    d = ReferenceModule(byte, byte, word).run(a, b, c, cutlass.gemm.GemmCoord(5, 6, 7), batch=3)
    assert d.dtype == np.int32
    np.testing.assert_array_equal(d.reshape(3, 5, 6), a.astype(np.int32) @ b.astype(np.int32))


def test_the_reference_names_what_is_wrong() -> None:
    wide = TensorDescription(cutlass.float32, cutlass.RowMajor, 1)
    with pytest.raises(InvalidArgument, match="B must have 12 elements, got 13"):
        ReferenceModule(wide, wide, wide).run(np.zeros(8), np.zeros(13), np.zeros(6), cutlass.gemm.GemmCoord(2, 3, 4))
    tiled = TensorDescription(cutlass.int8, cutlass.ColumnMajorInterleaved32, 16)
    with pytest.raises(InvalidArgument, match="got ColumnMajorInterleaved32 for A"):
        ReferenceModule(tiled, wide, wide).run(np.zeros(8), np.zeros(12), np.zeros(6), cutlass.gemm.GemmCoord(2, 3, 4))


def test_types_are_converted() -> None:
    assert to_cutlass(np.float16) is cutlass.float16 and to_cutlass(cutlass.int8) is cutlass.int8
    assert numpy_to_cutlass(np.dtype("int32")) is cutlass.int32
    assert numpy_to_cutlass(np.complex64) is None and torch_to_cutlass("nonsense") is None
    with pytest.raises(InvalidArgument, match="unknown element type .*complex64"):
        to_cutlass(np.complex64)
    assert utils.device_cc() == device_cc()


def test_leaky_relu_as_an_instance_has_its_parameter() -> None:
    functor = LinearCombinationGeneric(
        leaky_relu(cutlass.float32), cutlass.float32, 1, cutlass.float32, cutlass.float32
    )
    assert functor.epilogue_type(1.0, 0.0, 0.5).scalars == {"leaky_alpha": 0.5}
