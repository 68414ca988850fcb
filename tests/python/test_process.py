"""Processes that use kernels: exit while kernels are alive, forks, the lifetime of engines, and configure()."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = """
import os, sys
import numpy as np
import tilewright

def product():
    a, b = np.full((32, 16), 2, np.float16), np.full((16, 24), 3, np.float16)
    out = np.empty((32, 24), np.float16)
    args = tilewright.GemmArguments(a, b, out)
    kernel = tilewright.find_kernels(args)[0]
    kernel.run(args)
    assert (out == 96).all()
    return args, kernel, tilewright.prepare(args), kernel.compile(args)
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", SETUP + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_interpreter_exits_with_live_kernels() -> None:
    done = run(
        """
alive = product()
@tilewright.register
class Mine(tilewright.Kernel):
    pass
sys.modules["keeps"] = alive
import threading
threading.local().alive = product()
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_computes_on_its_own() -> None:
    done = run(
        """
product()
child = os.fork()
if child == 0:
    product()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
product()
""",
        TILEWRIGHT_DEVICE="emulator",
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_child_gets_a_driver_error() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    done = run(
        """
product()
child = os.fork()
if child == 0:
    try:
        product()
    except tilewright.DriverError as error:
        os._exit(0 if "does not survive a fork" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
""",
        TILEWRIGHT_DEVICE="cuda",
    )
    assert done.returncode == 0, done.stderr


def test_configure_applies_from_then_on(tmp_path: Path) -> None:
    done = run(
        f"""
tilewright.configure(device="emulator:sm_80", cache_dir="{tmp_path}/elsewhere")
assert tilewright.device_name() == "emulator:sm_80"
product()
assert tilewright.cache_counters()["compiles"] == 1
tilewright.configure(device="emulator:sm_90a")
assert tilewright.device_name() == "emulator:sm_90a"
for wrong in (dict(compiler="gcc"), dict(pool_initial_bytes=-1)):
    try:
        tilewright.configure(**wrong)
        raise SystemExit(3)
    except tilewright.InvalidArgument as error:
        print(error)
assert tilewright.allocated_bytes() == 0
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "compiler must be nvrtc, nvrtc_in_process, nvcc or none, got 'gcc'\npool_initial_bytes must be at least 0, got -1\n"
    )
    assert (tmp_path / "elsewhere").is_dir()


def test_ten_thousand_runs_do_not_leak() -> None:
    done = run(
        """
import resource
a = b = np.zeros((8, 8), np.float32)
out = np.empty((8, 8), np.float32)
kernel = tilewright.find_kernels(tilewright.GemmArguments(a, b, out), lambda metadata: metadata.family == "simt_gemm")[-1]
def many(runs):
    for _ in range(runs):
        args = tilewright.GemmArguments(a, b, out)
        tilewright.find_kernels(args)
        kernel.supports(args)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
many(2000)
before = many(1)
assert many(10000) - before < 2048, "KiB"
"""
    )
    assert done.returncode == 0, done.stderr


def test_warnings_go_to_pythons_logging(tmp_path: Path) -> None:
    unusable = tmp_path / "file"
    unusable.write_text("")
    done = run(
        """
import logging
heard = []
class Hears(logging.Handler):
    def emit(self, record):
        heard.append((record.name, record.levelname, record.getMessage()))
logging.getLogger("tilewright").addHandler(Hears())
product()
assert [entry[:2] for entry in heard] == [("tilewright", "WARNING")], heard
print(heard[0][2])
""",
        TILEWRIGHT_CACHE_DIR=str(unusable),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "kernels are kept in memory only" in done.stdout
