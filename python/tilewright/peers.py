"""The libraries beside which tilewright.profile() times kernels: PyTorch, and cuBLASLt and cuDNN, which PyTorch calls.

`python -m tilewright.peers QUESTION ANSWER` does it for the command `tilewright profile --peers`: it reads problems from
one JSON file and writes a list of entries for each to the other (tools/cli/peers.cpp).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tilewright._tilewright import (
    ContractionArguments,
    Conv2dArguments,
    GemmArguments,
    GroupedGemmArguments,
    OperationArguments,
    ShapeOnly,
    _CallTimer,
    prepare,
)
from tilewright.errors import InvalidArgument

PEERS = ("torch", "cublaslt", "cudnn")
_WARM_UPS = 2
_LEAST_SAMPLES = 10
_MOST_SETS = 64
_NOT_PLAIN = "the peers are timed without epilogues: alpha must be 1 and beta 0"
_NOT_RAGGED = "torch._grouped_mm is timed for stacked rows (ragged_m) only"

_Call = Callable[[dict[str, Any]], Any]  # computes a result from tensors by the names of the operands


class Timer(Protocol):
    """tilewright._tilewright._CallTimer: enqueues calls on the stream that each is given, and returns microseconds."""

    def time(self, calls: Sequence[Callable[[int], object]]) -> list[float]: ...


class _Absent(Exception):
    """Why a peer is not timed."""


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple. Raises InvalidArgument for names that are not in PEERS."""
    if not isinstance(names, Sequence):
        raise TypeError(f"peers must be names of {', '.join(PEERS)}, got {names!r:.40}")
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in PEERS:
            raise InvalidArgument(f"peers must be names of {', '.join(PEERS)}, got {name!r:.40}")
    return given


def compare(
    args: OperationArguments,
    names: Sequence[str],
    problem: dict[str, Any],
    seconds: float,
    *,
    device: str = "cuda",
    timer: Timer | None = None,
) -> list[dict[str, Any]]:
    """An entry for each peer, also for those that are absent, with the reason. The kernel that a call of Tilewright uses
    takes turns with the peers. `problem` has the `flops` and `bytes` of the problem."""
    entries = [_entry(name) for name in names]
    calls: dict[str, _Call] = {}
    torch: Any = None
    try:
        torch = _torch(device, timer)
        _check_plain(args)
    except _Absent as absent:
        for entry in entries:
            entry["reason"] = str(absent)
        return entries
    for entry in entries:
        try:
            calls[entry["peer"]] = _call_of(entry["peer"], args, torch)
        except _Absent as absent:
            entry["reason"] = str(absent)
    if not calls:
        return entries
    sets = _operand_sets(args, torch, device)
    own = [prepare(_own_arguments(args, each)) for each in sets]
    result = _name_of_result(args)
    own[0].run()
    expected = sets[0][result].clone()
    for entry in entries:
        name = entry["peer"]
        if name not in calls:
            continue
        try:
            found = calls[name](sets[0])
        except RuntimeError as error:
            entry.update(disposition="failed", reason=str(error).splitlines()[0][:200])
            del calls[name]
            continue
        difference = float((found.double() - expected.double()).abs().max()) if expected.numel() else 0.0
        bound = 0.02 * max(1.0, float(expected.double().abs().max())) if expected.numel() else 0.0
        if difference <= bound:
            entry["disposition"] = "passed"
        else:
            entry.update(disposition="wrong", reason=f"differs from Tilewright's verified result by {difference:g}")
    samples = _rounds(torch, device, calls, sets, own, seconds, timer)
    own_us = statistics.median(samples[""])
    for entry in entries:
        if entry["peer"] in calls:
            entry["times"] = _summary(samples[entry["peer"]], problem)
            entry["own_median_us"] = own_us
            entry["ratio"] = entry["times"]["median_us"] / own_us
    return entries


def compare_described(
    problem: dict[str, Any], names: Sequence[str], seconds: float, *, device: str = "cuda", timer: Timer | None = None
) -> list[dict[str, Any]]:
    """compare() for a problem in the JSON of the command: its operation, the tensors by their names, and the rest of the
    arguments."""
    try:
        args = _described_arguments(problem)
    except _Absent as absent:
        return [{**_entry(name), "reason": str(absent)} for name in names]
    return compare(args, names, problem, seconds, device=device, timer=timer)


def _described_arguments(problem: dict[str, Any]) -> OperationArguments:
    def tensors(first: str, second: str, third: str) -> tuple[ShapeOnly, ShapeOnly, ShapeOnly]:
        return tensor(problem[first]), tensor(problem[second]), tensor(problem[third])

    def tensor(given: dict[str, Any]) -> ShapeOnly:
        return ShapeOnly(given["shape"], given["dtype"], given["stride"])

    operation = problem["operation"]
    if operation not in ("gemm", "grouped_gemm", "contraction", "conv2d"):
        raise _Absent(f"the peers have no {operation}")
    if not problem["is_plain"]:
        raise _Absent(_NOT_PLAIN)
    accumulator, math = problem["accumulator_type"], problem["math"]
    if operation == "gemm":
        return GemmArguments(*tensors("A", "B", "out"), accumulator, math=math)
    if operation == "contraction":
        return ContractionArguments(problem["expression"], *tensors("A", "B", "out"), accumulator, math=math)
    if operation == "grouped_gemm":
        offsets = ShapeOnly((problem["groups"],), "s32")
        if problem["mode"] != "ragged_m":
            raise _Absent(_NOT_RAGGED)
        return GroupedGemmArguments(*tensors("A", "B", "out"), accumulator, offsets=offsets, math=math)
    options = {name: problem[name] for name in ("kind", "stride", "padding", "dilation", "groups", "mode")}
    return Conv2dArguments(*tensors("x", "w", "y"), accumulator, layout="nhwc", math=math, **options)


def _entry(name: str) -> dict[str, Any]:
    return {
        "peer": name,
        "disposition": "not_run",
        "reason": "",
        "times": None,
        "own_median_us": None,
        "ratio": None,
    }


def _torch(device: str, timer: Timer | None) -> Any:
    if importlib.util.find_spec("torch") is None:
        raise _Absent("PyTorch is not installed")
    torch: Any = importlib.import_module("torch")
    if timer is None and not torch.cuda.is_available():
        raise _Absent("PyTorch finds no GPU, and on the emulator nothing is timed")
    return torch


def _check_plain(args: OperationArguments) -> None:
    if not isinstance(args, (GemmArguments, GroupedGemmArguments, Conv2dArguments, ContractionArguments)):
        raise _Absent(f"the peers have no {args.operation}")
    if args.alpha != 1 or args.beta != 0 or args.epilogue.name != "linear_combination":
        raise _Absent(_NOT_PLAIN)


def _call_of(name: str, args: OperationArguments, torch: Any) -> _Call:
    if name == "cudnn":
        if not isinstance(args, Conv2dArguments):
            raise _Absent("cuDNN is timed for convolutions only")
        if not torch.backends.cudnn.is_available():
            raise _Absent("this PyTorch has no cuDNN")
    if name == "cublaslt":
        if not isinstance(args, GemmArguments):
            raise _Absent("cuBLASLt is timed for GEMMs only")
        if not hasattr(torch.backends.cuda, "preferred_blas_library"):
            raise _Absent("this PyTorch cannot choose cuBLASLt")
    call = _torch_call(args, torch)
    if name == "torch":
        return call

    def with_library(tensors: dict[str, Any]) -> Any:
        with _library(torch, name):
            return call(tensors)

    return with_library


@contextlib.contextmanager
def _library(torch: Any, name: str) -> Iterator[None]:
    """Makes PyTorch call cuBLASLt, or the fastest algorithm of cuDNN."""
    if name == "cudnn":
        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            yield
        return
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    try:
        yield
    finally:
        torch.backends.cuda.preferred_blas_library(before)


def _torch_call(args: OperationArguments, torch: Any) -> _Call:
    if isinstance(args, GemmArguments):
        if args.A.dtype != args.out.dtype:
            raise _Absent("torch.matmul has results of its operands' type only")
        return lambda tensors: torch.matmul(tensors["A"], tensors["B"], out=tensors["peer"])
    if isinstance(args, ContractionArguments):
        if args.A.dtype != args.out.dtype:
            raise _Absent("torch.einsum has results of its operands' type only")
        return lambda tensors: torch.einsum(args.expression, tensors["A"], tensors["B"])
    if isinstance(args, GroupedGemmArguments):
        if args.mode != "ragged_m" or not hasattr(torch, "_grouped_mm"):
            raise _Absent(_NOT_RAGGED)
        return lambda tensors: torch._grouped_mm(tensors["A"], tensors["B"], offs=tensors["offsets"])
    assert isinstance(args, Conv2dArguments)
    if args.mode != "cross_correlation":
        raise _Absent("PyTorch computes cross-correlations only")
    numbers = (list(args.stride), list(args.padding), list(args.dilation), False, [0, 0], args.groups)

    def as_nchw(tensor: Any) -> Any:
        return tensor.permute(0, 3, 1, 2)

    def convolve(tensors: dict[str, Any]) -> Any:
        x, w, y = (as_nchw(tensors[name]) for name in "xwy")
        if args.kind == "fprop":
            return torch.ops.aten.convolution(x, w, None, *numbers).permute(0, 2, 3, 1)
        mask = [args.kind == "dgrad", args.kind == "wgrad", False]
        results = torch.ops.aten.convolution_backward(y, x, w, None, *numbers, mask)
        return results[0 if args.kind == "dgrad" else 1].permute(0, 2, 3, 1)

    return convolve


def _name_of_result(args: OperationArguments) -> str:
    if isinstance(args, Conv2dArguments):
        return {"fprop": "y", "dgrad": "x", "wgrad": "w"}[args.kind]
    return "out"


_TORCH_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "s32": "int32",
    "s8": "int8",
    "u8": "uint8",
}


def _operand_sets(args: OperationArguments, torch: Any, device: str) -> list[dict[str, Any]]:
    """Copies of the operands, which are together larger than twice the L2 cache, so that no call finds them there."""
    names = ("x", "w", "y") if isinstance(args, Conv2dArguments) else ("A", "B", "out")

    def make() -> dict[str, Any]:
        tensors: dict[str, Any] = {}
        for name in names:
            operand = getattr(args, name)
            kind = getattr(torch, _TORCH_TYPES.get(operand.dtype.name, ""), None)
            if kind is None:
                raise InvalidArgument(f"peers cannot be timed with operands of {operand.dtype.name}")
            tensor = torch.empty_strided(operand.shape, operand.stride, dtype=kind, device=device)
            tensors[name] = tensor.copy_(torch.randint(-2, 3, operand.shape, device=device))
        if isinstance(args, GroupedGemmArguments):
            rows, groups = args.m, args.groups
            ends = [rows * (group + 1) // groups for group in range(groups)]
            tensors["offsets"] = torch.tensor(ends, dtype=torch.int32, device=device)
        tensors["peer"] = torch.empty_like(tensors[_name_of_result(args)])
        return tensors

    first = make()
    size = sum(tensor.numel() * tensor.element_size() for tensor in first.values())
    cache = torch.cuda.get_device_properties(0).L2_cache_size if device == "cuda" else 0
    count = max(1, min(_MOST_SETS, math.ceil(2 * cache / max(size, 1))))
    return [first, *(make() for _ in range(count - 1))]


def _own_arguments(args: OperationArguments, tensors: dict[str, Any]) -> OperationArguments:
    """The same problem on these tensors."""
    if isinstance(args, GemmArguments):
        return GemmArguments(tensors["A"], tensors["B"], tensors["out"], args.accumulator_type, math=args.math)
    if isinstance(args, GroupedGemmArguments):
        return GroupedGemmArguments(
            tensors["A"], tensors["B"], tensors["out"], args.accumulator_type, offsets=tensors["offsets"], math=args.math
        )
    if isinstance(args, ContractionArguments):
        return ContractionArguments(
            args.expression, tensors["A"], tensors["B"], tensors["out"], args.accumulator_type, math=args.math
        )
    assert isinstance(args, Conv2dArguments)
    return Conv2dArguments(
        tensors["x"],
        tensors["w"],
        tensors["y"],
        args.accumulator_type,
        kind=args.kind,
        stride=args.stride,
        padding=args.padding,
        dilation=args.dilation,
        groups=args.groups,
        mode=args.mode,
        layout="nhwc",
        math=args.math,
    )


def _rounds(
    torch: Any,
    device: str,
    calls: dict[str, _Call],
    sets: list[dict[str, Any]],
    own: list[Any],
    seconds: float,
    timer: Timer | None,
) -> dict[str, list[float]]:
    """The times of Tilewright, by the name "", and of the peers, which take turns, each in all rounds."""
    if timer is None:
        timer = _CallTimer(torch.cuda.current_device())

    def peer(call: _Call, tensors: dict[str, Any]) -> Callable[[int], object]:
        def enqueue(stream: int) -> object:
            with torch.cuda.stream(torch.cuda.ExternalStream(stream)) if device == "cuda" else contextlib.nullcontext():
                return call(tensors)

        return enqueue

    names = ["", *calls]
    samples: dict[str, list[float]] = {name: [] for name in names}
    spent_us, at = 0.0, 0
    round = 0
    while round < _WARM_UPS + _LEAST_SAMPLES or spent_us < seconds * 1e6:
        enqueued: list[Callable[[int], object]] = []
        for name in names:
            number = at % len(sets)
            at += 1
            if name == "":
                enqueued.append(lambda stream, prepared=own[number]: prepared.run(stream=stream))  # type: ignore[misc]
            else:
                enqueued.append(peer(calls[name], sets[number]))
        times = timer.time(enqueued)
        spent_us += sum(times)
        if round >= _WARM_UPS:
            for name, us in zip(names, times, strict=True):
                samples[name].append(us)
        round += 1
    return samples


def _summary(samples: list[float], problem: dict[str, Any]) -> dict[str, Any]:
    ordered = sorted(samples)

    def percentile(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    median = percentile(0.5)
    return {
        "samples": len(ordered),
        "median_us": median,
        "p05_us": percentile(0.05),
        "p95_us": percentile(0.95),
        "tflops": problem["flops"] / median * 1e-6 if median else 0.0,
        "gbytes_per_s": problem["bytes"] / median * 1e-3 if median else 0.0,
    }


def _main(question: str, answer: str) -> None:
    with open(question, encoding="utf-8") as file:
        asked = json.load(file)
    found = [compare_described(each, asked["peers"], asked["seconds"]) for each in asked["problems"]]
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    _main(*sys.argv[1:])
