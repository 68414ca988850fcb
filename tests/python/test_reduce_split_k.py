"""The reduction of split-K, and split-K in parallel mode."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, InvalidArgument, ReduceSplitKArguments


def integers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_parts_are_added_and_the_epilogue_is_applied(count: int) -> None:
    parts, c, out = integers(count, 20, 28), integers(20, 28, seed=2), np.full((20, 28), np.nan, np.float32)
    args = ReduceSplitKArguments(parts, out, C=c, alpha=2.0, beta=-1.0)
    tilewright.run(args)
    assert np.array_equal(out, 2 * parts.sum(0) - c)
    assert args.verify()
    out[3, 4] += 1
    assert not args.verify()


def test_arguments_say_what_they_are() -> None:
    parts, out = integers(3, 20, 28), np.empty((20, 28), np.float16)
    args = ReduceSplitKArguments(parts, out, epilogue="D = relu(acc)")
    assert (args.count, args.m, args.n, args.alpha, args.beta) == (3, 20, 28, 1.0, 0.0)
    assert args.operation == "reduce_split_k" and args.parts.shape == (3, 20, 28) and args.out.shape == (20, 28)
    assert args.accumulator_type == tilewright.DType.f32 and set(args.operands) == {"parts", "C", "D"}
    assert repr(args).startswith("ReduceSplitKArguments(parts=f32(3,20,28) on host, out=f16(20,28) on host")
    kernel = tilewright.find_kernels(args)[0]
    metadata = kernel.metadata
    assert metadata.family == metadata.operation == "reduce_split_k"
    assert metadata.operands.parts.dtype == tilewright.DType.f32 and metadata.operands.C is None
    assert metadata.epilogue == args.epilogue
    assert '"operation":"reduce_split_k"' in metadata.to_json()
    kernel.run(args)
    assert np.array_equal(out, np.maximum(parts.sum(0), 0).astype(np.float16))


def test_the_epilogue_takes_a_function_and_tensors() -> None:
    parts, bias = integers(4, 20, 28), integers(28, seed=3)
    out, total = np.empty((20, 28), np.float32), np.empty(28, np.float32)
    tilewright.run(
        ReduceSplitKArguments(
            parts, out, epilogue="D = acc + row(bias); row(total) = sum(D)", tensors={"bias": bias, "total": total}
        )
    )
    assert np.array_equal(out, parts.sum(0) + bias) and np.array_equal(total, out.sum(0))


def test_a_prepared_reduction_takes_other_arrays() -> None:
    first, second, out = integers(4, 20, 28), integers(4, 20, 28, seed=5), np.empty((20, 28), np.float32)
    call = tilewright.prepare(ReduceSplitKArguments(first, out))
    call.run(ReduceSplitKArguments(second, out))
    assert np.array_equal(out, second.sum(0))
    with pytest.raises(InvalidArgument, match="prepared for the number of parts = 4, got 3"):
        call.run(ReduceSplitKArguments(second[:3].copy(), out))


def test_what_does_not_fit_is_refused() -> None:
    parts, out = integers(4, 20, 28), np.empty((20, 28), np.float32)
    with pytest.raises(InvalidArgument, match=r"out must be \(20,28\), got \(20,27\)"):
        ReduceSplitKArguments(parts, out[:, :27])
    with pytest.raises(InvalidArgument, match="parts are s8: must be f64, f32, f16, bf16 or s32"):
        ReduceSplitKArguments(parts.astype(np.int8), out)
    with pytest.raises(InvalidArgument, match="f32 parts accumulate in f32, got f64"):
        ReduceSplitKArguments(parts, out, "float64")
    with pytest.raises(InvalidArgument, match="does not use alpha"):
        ReduceSplitKArguments(parts, out, epilogue="D = acc", alpha=2.0)
    with pytest.raises(InvalidArgument, match="rank"):
        ReduceSplitKArguments(parts[0, 0], out)


@pytest.mark.parametrize(("k", "asked", "count"), [(96, 4, 4), (100, 3, 3), (24, 4, 3), (0, 4, 0)])
def test_split_k_computes_the_gemm(k: int, asked: int, count: int) -> None:
    a, b = integers(20, k).astype(np.float16), integers(k, 28, seed=2).astype(np.float16).copy("F")
    c, out = integers(20, 28, seed=3), np.full((20, 28), np.nan, np.float32)
    args = GemmArguments(a, b, out, C=c, alpha=2.0, beta=1.0)
    shape, dtype = tilewright.split_k_workspace(args, asked)
    assert shape == (count, 20, 28) and dtype == tilewright.DType.f32
    workspace = np.full(max(1, count * 20 * 28), np.nan, np.float32)
    gemms, reduction = tilewright.split_k(args, asked, workspace)
    assert len(gemms) <= 2 and reduction.count == count
    for each in [*gemms, reduction]:
        tilewright.run(each)
    assert np.array_equal(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)) + c)
    assert args.verify()


def test_split_k_refuses_what_it_cannot_split() -> None:
    a, b, out = integers(20, 96), integers(96, 28), np.empty((20, 28), np.float32)
    args = GemmArguments(a, b, out)
    with pytest.raises(InvalidArgument, match="workspace must have 8960 bytes, got 8956"):
        tilewright.split_k(args, 4, np.empty(4 * 20 * 28 - 1, np.float32))
    with pytest.raises(InvalidArgument, match="the elements of workspace must be contiguous"):
        tilewright.split_k(args, 4, np.empty((4 * 20, 56), np.float32)[:, ::2])
    with pytest.raises(InvalidArgument, match="at least 1 part, got 0"):
        tilewright.split_k_workspace(args, 0)
    batch = GemmArguments(integers(3, 20, 96), b, np.empty((3, 20, 28), np.float32))
    with pytest.raises(InvalidArgument, match="needs single matrices, got a batch of 3"):
        tilewright.split_k_workspace(batch, 4)
    lists = GemmArguments([a, a], [b, b], [out, np.empty_like(out)])
    with pytest.raises(InvalidArgument, match="A is an array of pointers, but split-K in parallel mode needs"):
        tilewright.split_k_workspace(lists, 4)
    read_only = np.empty((4, 20, 28), np.float32)
    read_only.flags.writeable = False
    with pytest.raises(InvalidArgument, match="workspace is read-only"):
        tilewright.split_k(args, 4, read_only)


def test_a_kernel_of_a_given_design() -> None:
    parts, out = integers(5, 20, 28), np.empty((20, 28), np.float32)
    args = ReduceSplitKArguments(parts, out)
    design = tilewright.BLASDesignMetadata(
        (16, 64, 8), stages=1, warp_count=(8, 1, 1), instruction_shape=(1, 4, 1), op_class="simt"
    )
    kernel = tilewright.make_kernel(args, design)
    kernel.run(args)
    assert np.array_equal(out, parts.sum(0))
    wrong = tilewright.BLASDesignMetadata((16, 60, 8), stages=1, warp_count=(8, 1, 1), instruction_shape=(1, 4, 1))
    with pytest.raises(InvalidArgument, match="256 threads with 4 columns each do not divide a tile of 60 columns"):
        tilewright.make_kernel(args, wrong)
