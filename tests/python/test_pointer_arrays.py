"""Batches as lists of matrices and as PointerArray: one launch, in GemmArguments, matmul and PyCUTLASS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pycutlass_problems import ARRAY, COLUMN, CONFIGURATIONS, ROW, K, M, N, empty, matrix, problem, run, simt

import tilewright
from tilewright import GemmArguments, GroupedGemmArguments, InvalidArgument, PointerArray, matmul
from tilewright.pycutlass import EpilogueVisitTree, cutlass, relu
from tilewright.pycutlass import GemmArguments as PycutlassArguments

Array = np.ndarray[Any, Any]


def integers(*shape: int, seed: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def matrices(count: int, rows: int, columns: int, seed: int, dtype: Any = np.float32) -> list[Array]:
    return [integers(rows, columns, seed=seed + i, dtype=dtype) for i in range(count)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_lists_are_one_launch(dtype: Any) -> None:
    a, b, c = matrices(5, 24, 32, 1, dtype), matrices(5, 32, 40, 11, dtype), matrices(5, 24, 40, 21, dtype)
    out = [np.full((24, 40), np.nan, dtype) for _ in a]
    args = GemmArguments(a, b, out, C=c, beta=-1.0)
    assert (args.batch, args.m, args.n, args.k) == (5, 24, 40, 32)
    assert args.A.is_pointer_array and args.out.is_pointer_array
    assert "by pointers" in repr(args)
    tilewright.find_kernels(args)[0].run(args)
    for i in range(5):
        np.testing.assert_array_equal(out[i], a[i] @ b[i] - c[i])


def test_a_list_mixes_with_batches_and_single_matrices() -> None:
    a, b, c = matrices(3, 8, 16, 1), integers(16, 12, seed=5), integers(3, 8, 12, seed=6)
    expected = np.stack(a) @ b + c
    np.testing.assert_array_equal(matmul(a, b, c=c), expected)
    np.testing.assert_array_equal(matmul(tuple(a), [b, b, b], c=[*c]), expected)
    np.testing.assert_array_equal(matmul(np.stack(a), [b] * 3, c=c), expected)
    out = [np.empty((8, 12), np.float32) for _ in range(3)]
    assert matmul(a, b, c=c, out=out) is out
    np.testing.assert_array_equal(np.stack(out), expected)
    np.testing.assert_array_equal(matmul(a, b, epilogue="relu"), np.maximum(np.stack(a) @ b, 0))


def test_matrices_may_be_padded_transposed_and_of_any_alignment() -> None:
    memory = integers(3, 20, 40, seed=3, dtype=np.float16)
    a = [each[:16, 1:33].T for each in memory]  # 32 x 16, column-major, at odd elements
    b = matrices(3, 16, 24, 7, np.float16)
    np.testing.assert_array_equal(matmul(a, b), np.stack(a) @ np.stack(b))


def test_a_prepared_call_takes_other_lists() -> None:
    a, b = matrices(3, 8, 16, 1), matrices(3, 16, 12, 5)
    out = [np.empty((8, 12), np.float32) for _ in range(3)]
    prepared = tilewright.prepare(GemmArguments(a, b, out))
    others = matrices(3, 8, 16, 50)
    prepared.run(GemmArguments(others, b, out))
    np.testing.assert_array_equal(np.stack(out), np.stack(others) @ np.stack(b))
    prepared.run()
    np.testing.assert_array_equal(np.stack(out), np.stack(a) @ np.stack(b))


def test_an_array_of_addresses() -> None:
    a, b = matrices(4, 8, 16, 1), matrices(4, 16, 12, 5)
    order = [2, 0, 3, 1]
    addresses = np.array([a[i].ctypes.data for i in order], np.uint64)
    pointers = PointerArray(addresses, (8, 16), "float32", alignment=4)
    assert (pointers.shape, pointers.stride, pointers.alignment) == ((8, 16), (16, 1), 4)
    assert pointers.dtype == tilewright.DType.f32 and pointers.addresses is addresses
    out = np.empty((4, 8, 12), np.float32)
    matmul(pointers, b, out=out)
    np.testing.assert_array_equal(out, np.stack([a[i] for i in order]) @ np.stack(b))
    with pytest.raises(InvalidArgument, match="a is a PointerArray, of which no array can be made: pass out="):
        matmul(pointers, b)


def test_what_is_no_batch_is_refused() -> None:
    a, b, out = matrices(3, 8, 16, 1), integers(16, 12, seed=5), np.empty((3, 8, 12), np.float32)
    for bad, told in (
        ([], "A is an empty list"),
        (a[:2], "A has 2 matrices, but out has 3: they must be equal"),
        ([*a[:2], integers(8, 15, seed=1)], r"A\[2\] is f32\(8,15\) with strides \(15,1\) on host, but A\[0\] is f32\(8,16\)"),
        ([*a[:2], a[2].astype(np.float16)], r"A\[2\] is f16\(8,16\)"),
        ([each.reshape(-1) for each in a], r"A\[0\] must be a matrix, got shape \(128\)"),
        ([1, 2, 3], r"A\[0\]: expected an array"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            GemmArguments(bad, b, out)
    locked = [np.empty((8, 12), np.float32) for _ in range(3)]
    locked[1].flags.writeable = False
    with pytest.raises(InvalidArgument, match=r"out\[1\] is read-only"):
        GemmArguments(a, b, locked)
    with pytest.raises(InvalidArgument, match="bias: expected an array"):
        GemmArguments(a, b, out, epilogue="D = acc + row(bias)", tensors={"bias": [b[0]] * 3})
    blocks = [np.zeros((16, 32), np.int8)] * 3
    with pytest.raises(InvalidArgument, match="A is interleaved: it must be one array, no list and no PointerArray"):
        GemmArguments(blocks, np.zeros((32, 32), np.int8), np.zeros((3, 16, 32), np.int32), interleaved="A")
    addresses = np.zeros(3, np.int64)
    for arguments, told in (
        ((addresses.astype(np.int32), (8, 16), "float32"), "addresses must be an array of int64 or uint64, got int32"),
        ((addresses, (8,), "float32"), "must be those of one matrix"),
        ((addresses, (8, 16), "float32", (2, 2)), "must have one stride of 1"),
        ((addresses, (8, 16), "float32", None, 12), "power of two of at least 4 bytes"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            PointerArray(*arguments)


def in_buffer(buffer: Array, random: np.random.Generator) -> tuple[Array, set[int]]:
    """A row-major matrix in the buffer, and the places of its elements."""
    rows, columns = (int(extent) for extent in random.integers(1, 5, 2))
    ld, begin = max(columns, int(random.choice([1, 6, 8, 8]))), int(random.integers(0, 40))
    places = {begin + i * ld + j for i in range(rows) for j in range(columns)}
    return np.lib.stride_tricks.as_strided(buffer[begin:], (rows, columns), (ld * 4, 4)), places


def test_outputs_of_lists_must_be_apart() -> None:
    random, buffer, refused = np.random.default_rng(0), np.zeros(200, np.float32), 0
    for _ in range(500):
        (x, of_x), (y, of_y) = in_buffer(buffer, random), in_buffer(buffer, random)
        a = [np.zeros((each.shape[0], 3), np.float32) for each in (x, y)]
        b = [np.zeros((3, each.shape[1]), np.float32) for each in (x, y)]
        if not of_x & of_y:
            GroupedGemmArguments(a, b, [x, y])
            continue
        refused += 1
        with pytest.raises(InvalidArgument, match=r"out\[[01]\] \[.*\) overlaps out\[[01]\] "):
            GroupedGemmArguments(a, b, [x, y])
    assert 50 < refused < 450

    a, b = matrices(2, 8, 8, 1), matrices(2, 8, 8, 3)
    out = matrices(2, 8, 8, 5)
    wide = np.empty((8, 16), np.float32)
    columns = [wide[:, :8], wide[:, 8:]]
    matmul(a, b, out=columns)
    for x, y, got in zip(a, b, columns):
        np.testing.assert_array_equal(got, x @ y)
    with pytest.raises(InvalidArgument, match=r"a\[1\] .* overlaps out\[0\] "):
        matmul(a, b, out=[a[1], out[1]])
    with pytest.raises(InvalidArgument, match=r"b .* overlaps out\[0\] "):
        matmul(a, b[1], out=[b[1], out[1]])
    with pytest.raises(InvalidArgument, match=r"c\[0\] .* overlaps out\[1\] "):
        matmul(a, b, c=out, out=out[::-1])
    expected = [x @ y + z for x, y, z in zip(a, b, out)]
    np.testing.assert_array_equal(matmul(a, b, c=out, out=out), expected)
    matmul(a, b, c=out[::-1], beta=0.0, out=out)  # C is not read


def test_kernels_are_made_for_pointer_arrays() -> None:
    strided = tilewright.TensorAttributes("float32", "row", 4)
    pointers = tilewright.TensorAttributes("float32", "row", 4, is_pointer_array=True)
    assert pointers.is_pointer_array and not strided.is_pointer_array
    assert pointers != strided and "pointers" in repr(pointers)


def launches(arguments: Any) -> int:
    return len(arguments._problems)


@pytest.mark.parametrize("name", ["simt_f32", "f16", "f16_in_f16"])
@pytest.mark.parametrize("layouts", [(ROW, COLUMN, ROW), (COLUMN, ROW, COLUMN)])
def test_an_array_of_pycutlass_is_one_launch(name: str, layouts: Any) -> None:
    operation = CONFIGURATIONS[name].operation(layouts)
    (a, b, c), memory = problem(operation, batch=3)
    lists = [[*memory[0]], memory[1], [*memory[2]]]
    d = [empty(operation, M, N) for _ in range(3)]
    arguments = run(operation, lists, d, 1.0, -1.0, gemm_mode=ARRAY)
    assert launches(arguments) == 1
    np.testing.assert_array_equal(np.stack([matrix(each, operation) for each in d]), a @ b - c)


def test_bias_vectors_of_an_array_are_launches_of_their_own() -> None:
    operation = simt()
    (a, b, _), memory = problem(operation, batch=3)
    bias = [integers(N, seed=i) for i in range(3)]
    d = [empty(operation, M, N) for _ in range(3)]
    arguments = run(operation, [[*memory[0]], [*memory[1]], bias], d, 1.0, 1.0, gemm_mode=ARRAY)
    assert launches(arguments) == 3
    np.testing.assert_array_equal(np.stack(d), a @ b + np.stack(bias)[:, None, :])


class Shifted(EpilogueVisitTree):
    def __call__(self, accum: "tensor", vector: "row", alpha: "scalar"):  # type: ignore # noqa: F821
        T = accum + vector
        D = relu.numpy(alpha * T)
        return D, T


def test_a_visitor_takes_lists() -> None:
    operation = simt(Shifted)
    (a, b, _), memory = problem(operation, batch=3)
    vector, t = integers(3, 1, N, seed=9), np.empty((3, M, N), np.float32)
    d = [empty(operation, M, N) for _ in range(3)]
    output_op = operation.epilogue_type(vector=vector, T=t, alpha=2.0, problem_size=[M, N])
    size = cutlass.gemm.GemmCoord(M, N, K)
    arguments = PycutlassArguments(
        operation, size, [*memory[0]], [*memory[1]], None, d, gemm_mode=ARRAY, output_op=output_op
    )
    operation.run(arguments)
    arguments.sync()
    output_op.sync()
    assert launches(arguments) == 1
    np.testing.assert_array_equal(t, a @ b + vector)
    np.testing.assert_array_equal(np.stack(d), np.maximum(2 * t, 0))


@pytest.mark.parametrize("dtype, layouts", [("float16", "rc"), ("bfloat16", "rr"), ("int8", "rc"), ("float16", "cc")])
def test_kernels_for_pointer_arrays_do_not_spill(dtype: str, layouts: str) -> None:
    def shapes(rows: int, columns: int, layout: str, kind: str) -> list[tilewright.ShapeOnly]:
        return [tilewright.ShapeOnly((rows, columns), kind, (columns, 1) if layout == "r" else (1, rows))] * 8

    kind = "int32" if dtype == "int8" else dtype
    for m, n, k in ((1024, 2048, 512), (1001, 2047, 519)):  # by TMA, and by plain loads
        out = shapes(m, n, "r", kind)
        args = GemmArguments(shapes(m, k, layouts[0], dtype), shapes(k, n, layouts[1], dtype), out, C=out, beta=1.0)
        families = set()
        for kernel in tilewright.find_kernels(args, target="sm_90a"):
            family = kernel.name.split("_gemm")[0]
            if family in families:
                continue
            families.add(family)
            assert not kernel.compile(args).spill_bytes, kernel.name
        assert "sm90" in families
