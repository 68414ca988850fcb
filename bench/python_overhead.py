"""The host time of calls from Python: import, arguments, queries, prepared runs. On a GPU they are compared with
torch.mm, CuPy and cutlass.operators, where these are installed.

    python bench/python_overhead.py [--json FILE]

Arrays are torch tensors if torch and a GPU are available, else NumPy arrays; runs on the emulator are not timed. Times
are microseconds per call: medians over rounds in which the contenders alternate. Calls that enqueue work run in batches with a
synchronisation in between, so that the GPU's queue never fills.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS = 15
CALLS = 200


def import_ms(module: str, tries: int = 10) -> float:
    """Milliseconds to import the module in a fresh interpreter; the shortest of several tries."""
    code = f"import time; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1e3)"
    answers = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(tries)]
    return min(float(answer.stdout.split()[-1]) for answer in answers)


def contend(contenders: dict[str, Callable[[], Any]], wait: Callable[[], Any]) -> dict[str, float]:
    """Median microseconds per call of each function; the calls alternate."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            wait()
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append((time.perf_counter() - begin) / CALLS * 1e6)
    wait()
    return {name: statistics.median(times) for name, times in samples.items()}


def activate(acc: Any, bias: Any) -> Any:
    return np.maximum(acc + bias, 0)


def arrays(torch: Any) -> tuple[Any, Any, Any]:
    if torch is not None:
        return tuple(torch.randn(128, 128, device="cuda", dtype=torch.float16) for _ in range(3))
    random = np.random.default_rng(0)
    return tuple(random.normal(size=(128, 128)).astype(np.float16) for _ in range(3))


def torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def listing(tilewright: Any) -> dict[str, Any]:
    """The time to list all kernels for Hopper, and the memory that the process keeps afterwards."""
    before, begin = resident_mib(), time.perf_counter()
    count = sum(1 for _ in tilewright.list_kernels(target="sm_90a"))
    return {"kernels": count, "seconds": time.perf_counter() - begin, "grown_mib": resident_mib() - before}


def cold_query_us(find: Callable[[Any], Any], make: Callable[[int], Any]) -> float:
    """The time of find_kernels for problems that were not queried before."""
    times = []
    for i in range(40):
        args = make(64 + 8 * i)
        begin = time.perf_counter()
        find(args)
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[5:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    figures: dict[str, Any] = {"import_ms": import_ms("tilewright")}

    import tilewright

    torch = torch_with_gpu()
    a, b, out = arrays(torch)
    args = tilewright.GemmArguments(a, b, out)
    kernel = tilewright.find_kernels(args)[0]
    artifact = kernel.compile(args)
    prepared = tilewright.prepare(args)
    figures["device"] = tilewright.device_name("cuda:0" if torch is not None else "")
    figures["kernel"] = kernel.name

    def shaped(m: int) -> Any:
        shape = tilewright.ShapeOnly
        return tilewright.GemmArguments(shape([m, 128], "f16"), shape([128, 128], "f16"), shape([m, 128], "f16"))

    figures["listing"] = listing(tilewright)
    figures["find_kernels_cold_us"] = cold_query_us(tilewright.find_kernels, shaped)
    calls: dict[str, Callable[[], Any]] = {
        "GemmArguments": lambda: tilewright.GemmArguments(a, b, out),
        "find_kernels": lambda: tilewright.find_kernels(args),
        "supports": lambda: kernel.supports(args),
        "pass": lambda: None,
    }
    wait: Callable[[], Any] = lambda: None
    if torch is not None:
        wait = torch.cuda.synchronize
        bias = torch.zeros(128, device="cuda")
        others = [tilewright.GemmArguments(a.clone(), b.clone(), out.clone()) for _ in range(CALLS)]
        turns = itertools.cycle(others)
        calls |= {
            "prepared.run()": prepared.run,
            "prepared.run(args)": lambda: prepared.run(args),
            "prepared.run(args) of 200 in turn": lambda: prepared.run(next(turns)),
            "kernel.run(args, artifact)": lambda: kernel.run(args, artifact),
            "matmul(out=)": lambda: tilewright.matmul(a, b, out=out),
            "matmul(out=, traced epilogue)": lambda: tilewright.matmul(a, b, epilogue=activate, bias=bias, out=out),
            "torch.mm(out=)": lambda: torch.mm(a, b, out=out),
            "matmul()": lambda: tilewright.matmul(a, b),
            "torch.mm()": lambda: torch.mm(a, b),
        }
        calls |= cupy_calls(a, b, out) | operators_calls(torch, a, b, out, figures)
    figures["us"] = contend(calls, wait)
    print(json.dumps(figures, indent=2))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)


def cupy_calls(a: Any, b: Any, out: Any) -> dict[str, Callable[[], Any]]:
    """The times of CuPy's product and of its launch of an empty kernel, as the baseline of a mature package."""
    try:
        import cupy
    except ImportError:
        return {}
    x, y, z = (cupy.from_dlpack(tensor) for tensor in (a, b, out))
    empty = cupy.RawKernel('extern "C" __global__ void empty() {}', "empty")
    return {
        "cupy.matmul(out=)": lambda: cupy.matmul(x, y, out=z),
        "cupy.RawKernel of nothing": lambda: empty((1,), (32,), ()),
    }


def operators_calls(torch: Any, a: Any, b: Any, out: Any, figures: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The times of NVIDIA's comparable package, nvidia-cutlass-operators[torch] with nvidia-cutlass-dsl[cu13]."""
    try:
        import cutlass.operators as ops
    except ImportError:
        return {}

    def arguments(a: Any, b: Any, out: Any) -> Any:
        return ops.GemmArguments(a, b, out, accumulator_type=torch.float32)

    def find(args: Any) -> Any:
        return ops.get_operators(args, target_sm="90a")

    def of_rows(m: int) -> Any:
        return arguments(a.new_empty(m, 128), b, out.new_empty(m, 128))

    args = arguments(a, b, out)
    begin = time.perf_counter()
    operators = find(args)
    first_ms = (time.perf_counter() - begin) * 1e3
    artifact = operators[0].compile(args)
    figures["operators"] = {
        "version": ops.__version__,
        "import_ms": import_ms("cutlass.operators", tries=3),
        "first_query_ms": first_ms,
        "found": len(operators),
        "cold_us": cold_query_us(find, of_rows),
    }
    return {
        "operators: GemmArguments": lambda: arguments(a, b, out),
        "operators: get_operators": lambda: find(args),
        "operators: run(args, artifact)": lambda: operators[0].run(args, artifact),
        "operators: run, assumed supported": lambda: operators[0].run(args, artifact, assume_supported_args=True),
    }


if __name__ == "__main__":
    main()
