"""Long-running native work, for programs that interrupt it, exit or fork while it runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright
from tilewright import GemmArguments, Kernel, KernelMetadata, Launch

ENDLESS = """
extern "C" __global__ void endless(double* out) {
  volatile double* numbers = out;
  while (numbers[0] != 42.0) numbers[1] = numbers[1] + 1.0;
}
"""
# A kernel of 100,000 statements, which takes a compiler about 20 seconds.
BOMB = """
#define A x = x * 1664525.0 + 1013904223.0;
#define B A A A A A A A A A A
#define C B B B B B B B B B B
#define D C C C C C C C C C C
#define E D D D D D D D D D D
extern "C" __global__ void NAME(double* out) { double x = *out; E E E E E E E E E E *out = x; }
"""
SMALL = 'extern "C" __global__ void NAME(double* out) { *out = VALUE; }'


def arguments() -> GemmArguments:
    return GemmArguments(np.ones((8, 8)), np.ones((8, 8)), np.zeros((8, 8)))


def authored(
    name: str, source: str, while_source: Callable[[], object] = int, while_launch: Callable[[], object] = int
) -> Kernel:
    """Registers a class with that source and returns its kernel. The class stays registered."""
    shipped = [kernel for kernel in tilewright.find_kernels(arguments()) if type(kernel) is Kernel][0].metadata

    def generate(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
        return [made(KernelMetadata(name, made, shipped.operands, shipped.design))]

    def source_of(self: Kernel) -> str:
        while_source()
        return source.replace("NAME", name)

    def launch_of(self: Kernel, args: GemmArguments) -> Launch:
        while_launch()
        return Launch(1, 1, [args.out])

    methods = {"generate_kernels": staticmethod(generate), "_source": source_of, "_launch": launch_of}
    made = type(name, (Kernel,), methods)
    tilewright.register(made)
    return tilewright.find_kernels(arguments(), providers=[name])[0]


def compile_small(name: str, **whiles: Callable[[], object]) -> None:
    """Compiles and runs a kernel that is not in any cache."""
    args = arguments()
    kernel = authored(name, SMALL.replace("VALUE", str(os.getpid())), **whiles)
    kernel.run(args)
    tilewright.unregister(name)


def product(extent: int = 16) -> None:
    a = np.full((extent, extent), 2, np.float16)
    out = np.empty((extent, extent), np.float16)
    tilewright.prepare(GemmArguments(a, a, out)).run()
    assert (out == 4 * extent).all()


def seconds_until_interrupted(work: Callable[[], object], after: float = 0.3) -> float:
    """The seconds from the signal to the exception."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, interrupt)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    timer.cancel()
    raise SystemExit("the work ended on its own")
