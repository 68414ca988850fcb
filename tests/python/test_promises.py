"""Promises that a caller requires of kernels: `deterministic` and `batch_invariant`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, GemmOperandsMetadata, InvalidArgument, Kernel, KernelMetadata, Launch, TensorAttributes


@pytest.fixture(autouse=True)
def on_the_emulator() -> Iterator[None]:
    tilewright.configure(device="emulator:sm_90a", deterministic=False, batch_invariant=False)
    yield
    tilewright.configure(device="emulator:sm_90a", deterministic=False, batch_invariant=False)


def matrix(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def few_rows(m: int = 8, k: int = 2048) -> GemmArguments:
    """A problem for which the ranking splits K."""
    return GemmArguments(matrix(m, k), matrix(k, 64), np.empty((m, 64), np.float16))


def test_bits_of_a_row_do_not_depend_on_m() -> None:
    rows, weights = matrix(40, 256), matrix(256, 64, seed=1)
    together = tilewright.matmul(rows, weights, batch_invariant=True, deterministic=True)
    alone = tilewright.matmul(rows[7:8], weights, batch_invariant=True)
    batch = tilewright.matmul(np.stack([rows[5:9]] * 3), weights, batch_invariant=True)
    assert together[7].tobytes() == alone[0].tobytes() == batch[1, 2].tobytes()


def test_metadata_lists_the_promises() -> None:
    kernel = tilewright.find_kernels(few_rows())[0]
    assert kernel.metadata.deterministic and kernel.metadata.batch_invariant
    assert json.loads(kernel.metadata.to_json())["promises"] == {"deterministic": True, "batch_invariant": True}


def test_the_choice_is_restricted_and_explained() -> None:
    args = few_rows()
    assert tilewright.find_kernels(args)[0].metadata.design.split_k > 1
    found = tilewright.find_kernels(args, batch_invariant=True)
    assert len(found) > 0 and all(kernel.metadata.design.split_k == 1 for kernel in found)
    explained = tilewright.explain(args, batch_invariant=True)
    assert explained.order == "wgmma 64x0x16 over 2048"
    assert explained.unrestricted_us is not None and explained.unrestricted_us < found.estimate_us(0)
    assert "required  batch_invariant: the best kernel takes" in str(explained)
    refused = {each.name: each for each in explained.refused if each.code == "promises"}
    assert any("sums in the order [fma 1x1x1 over 2048" in each.reason for each in refused.values())
    assert tilewright.explain(args).order is None and tilewright.explain(args).unrestricted_us is None
    prepared = tilewright.prepare(args, batch_invariant=True)
    assert prepared.kernel_name == found[0].name
    assert tilewright.prepare(args).kernel_name != found[0].name


def test_a_given_kernel_must_have_the_order() -> None:
    args = few_rows()
    split = tilewright.find_kernels(args)[0]
    with pytest.raises(InvalidArgument, match="batch_invariant requires"):
        tilewright.prepare(args, split, batch_invariant=True)
    simt = tilewright.find_kernels(args, providers=["simt_gemm"], batch_invariant=True)
    assert {kernel.metadata.family for kernel in simt} == {"simt_gemm"}


def test_configure_sets_the_default() -> None:
    tilewright.configure(batch_invariant=True)
    assert tilewright.find_kernels(few_rows())[0].metadata.design.split_k == 1
    assert tilewright.find_kernels(few_rows(), batch_invariant=False)[0].metadata.design.split_k > 1


def test_epilogues_that_sum_are_refused() -> None:
    a, b = matrix(8, 64), matrix(64, 16)
    totals = np.empty((8, 1), np.float32)
    text = "D = acc; column(totals) = sum(acc)"
    tilewright.matmul(a, b, epilogue=text, totals=totals, deterministic=True)
    with pytest.raises(InvalidArgument, match="'totals' sums along N"):
        tilewright.matmul(a, b, epilogue=text, totals=totals, batch_invariant=True)


def test_a_kernel_of_the_user_promises_only_what_its_metadata_says() -> None:
    class Doubles(Kernel):
        promises: dict[str, bool] = {}

        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any, target: str) -> list[Kernel]:
            row = TensorAttributes("f64", "row")
            operands = GemmOperandsMetadata(row, row, row, "f64")
            return [Doubles(KernelMetadata("doubles", Doubles, operands, **Doubles.promises))]

        def _source(self) -> str:
            return f'extern "C" __global__ void {self.name}(double* d) {{ d[threadIdx.x] = 1.0; }}'

        def _launch(self, args: Any) -> Launch:
            return Launch(grid=1, block=args.m * args.n, parameters=[args.out])

    args = GemmArguments(np.ones((4, 1)), np.ones((1, 4)), np.empty((4, 4)))
    for promised in (False, True):
        Doubles.promises = {"deterministic": promised}
        tilewright.register(Doubles)
        try:
            mine = tilewright.find_kernels(args, providers=["Doubles"])
            assert [kernel.metadata.deterministic for kernel in mine] == [promised]
            assert len(tilewright.find_kernels(args, providers=["Doubles"], deterministic=True)) == promised
            reasons = [each.reason for each in tilewright.explain(args, batch_invariant=True).refused]
            assert "batch_invariant is required, but the kernel's metadata does not promise it" in reasons
        finally:
            tilewright.unregister(Doubles)


def test_torch_requires_deterministic_kernels() -> None:
    torch = pytest.importorskip("torch")
    import tilewright.torch

    assert tilewright.torch._promises() == {}
    torch.use_deterministic_algorithms(True)
    try:
        assert tilewright.torch._promises() == {"deterministic": True}
        assert torch.ops.tilewright.matmul(torch.ones(4, 8), torch.ones(8, 4))[0, 0] == 8
    finally:
        torch.use_deterministic_algorithms(False)
