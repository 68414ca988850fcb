"""Peers of tilewright.profile() on tensors in host memory, with a timer that runs the calls and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import tilewright
from tilewright import ShapeOnly
from tilewright.peers import compare

torch = pytest.importorskip("torch")

SIZES = {"flops": 2e6, "bytes": 1e6}


class CountingTimer:
    """Runs the calls. The first of a round takes 10 us, each other one 5 us more than the one before."""

    def __init__(self) -> None:
        self.rounds = 0

    def time(self, calls: Sequence[Callable[[int], object]]) -> list[float]:
        self.rounds += 1
        for call in calls[1:]:
            call(0)
        return [10.0 + 5.0 * i for i in range(len(calls))]


def shaped(*shapes: tuple[int, ...], kind: str = "f32") -> list[Any]:
    return [ShapeOnly(shape, kind) for shape in shapes]


PROBLEMS = {
    "gemm": lambda: tilewright.GemmArguments(*shaped((6, 8), (8, 4), (6, 4))),
    "batch": lambda: tilewright.GemmArguments(*shaped((2, 6, 8), (2, 8, 4), (2, 6, 4))),
    "contraction": lambda: tilewright.ContractionArguments("ak,kbc->abc", *shaped((4, 8), (8, 3, 5), (4, 3, 5))),
    "fprop": lambda: tilewright.Conv2dArguments(*shaped((1, 6, 6, 8), (4, 3, 3, 8), (1, 4, 4, 4)), layout="nhwc"),
    "dgrad": lambda: tilewright.Conv2dArguments(
        *shaped((1, 6, 6, 8), (4, 3, 3, 8), (1, 4, 4, 4)), layout="nhwc", kind="dgrad"
    ),
    "wgrad": lambda: tilewright.Conv2dArguments(
        *shaped((1, 6, 6, 8), (4, 3, 3, 8), (1, 4, 4, 4)), layout="nhwc", kind="wgrad"
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_torch_is_verified_and_timed(name: str) -> None:
    timer = CountingTimer()
    (peer,) = compare(PROBLEMS[name](), ["torch"], SIZES, 1e-4, device="cpu", timer=timer)
    assert peer["disposition"] == "passed", peer["reason"]
    assert timer.rounds == 12 and peer["times"]["samples"] == 10
    assert (peer["times"]["median_us"], peer["own_median_us"], peer["ratio"]) == (15.0, 10.0, 1.5)
    assert peer["times"]["tflops"] == pytest.approx(2e6 / 15 * 1e-6)


def test_a_wrong_result_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "matmul", lambda a, b, out: out.fill_(1000.0))
    (peer,) = compare(PROBLEMS["gemm"](), ["torch"], SIZES, 1e-4, device="cpu", timer=CountingTimer())
    assert peer["disposition"] == "wrong" and "differs from Tilewright's verified result" in peer["reason"]


def test_peers_that_do_not_fit_are_named() -> None:
    found = compare(PROBLEMS["gemm"](), ["cudnn", "torch"], SIZES, 1e-4, device="cpu", timer=CountingTimer())
    assert [each["disposition"] for each in found] == ["not_run", "passed"]
    assert found[0]["reason"] == "cuDNN is timed for convolutions only"
    relu = tilewright.GemmArguments(*shaped((6, 8), (8, 4), (6, 4)), epilogue="relu")
    (peer,) = compare(relu, ["torch"], SIZES, 1e-4, device="cpu", timer=CountingTimer())
    assert peer["reason"] == "the peers are timed without epilogues: alpha must be 1 and beta 0"
    halves = tilewright.GemmArguments(*shaped((6, 8), (8, 4), kind="f16"), ShapeOnly((6, 4), "f32"))
    (peer,) = compare(halves, ["torch"], SIZES, 1e-4, device="cpu", timer=CountingTimer())
    assert peer["reason"] == "torch.matmul has results of its operands' type only"
