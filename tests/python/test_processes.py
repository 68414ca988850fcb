"""Exit, forks and Ctrl-C while native code works on the main thread, on a daemon thread or in a thread pool.

Nothing crashes, hangs or prints. Each case runs TILEWRIGHT_TEST_REPEATS times, at different moments of the work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPEATS = int(os.environ.get("TILEWRIGHT_TEST_REPEATS", "3"))
MOST_SECONDS = 60  # a case takes 0.3 s alone, and 10 s beside ten other programs on two cores

PRELUDE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from long_work import *
from long_work import os, signal, threading, time, tilewright

# A shell starts programs in the background with SIGINT ignored, and Python then leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
names = (f"small_{os.getpid()}_{i}" for i in count())
worked = []

def is_idle():
    return work is do_nothing

def do_nothing(): time.sleep(0.01)
def compile_one(**whiles): compile_small(next(names), **whiles)
def launch_one(): product(96)

def work_on():
    while True:
        work()
        worked.append(True)

def in_child():
    "A forked child compiles other kernels than its parent and exits normally."
    signal.alarm(45)
    compile_small(f"child_{os.getpid()}")
    product()
    sys.exit(0)

def fork():
    child = os.fork()
    if child == 0:
        in_child()
    assert os.waitpid(child, 0)[1] == 0

def until(has_happened):
    while not has_happened():
        time.sleep(0.002)

product()
"""

WORKS = {"compile": "work = compile_one\n", "launch": "work = launch_one\n", "idle": "work = do_nothing\n"}

DAEMON = """
thread = threading.Thread(target=work_on, daemon=True)
thread.start()
"""
POOL = """
pool = ThreadPoolExecutor(2)
futures = [pool.submit(lambda: (work(), worked.append(True))) for _ in range(6)]
"""

EXITS = {
    "main": """
def leave(number, frame): sys.exit(0)
signal.signal(signal.SIGALRM, leave)
signal.setitimer(signal.ITIMER_REAL, 0.001 + moment)
work_on()
""",
    "daemon": DAEMON + "time.sleep(moment)\n",
    "pool": POOL + "time.sleep(moment)\n",
}

# The main thread forks while it compiles or launches, in the user's code that the library calls.
FORKS = {
    "main": """
if is_idle(): fork()
compile_one(while_source=fork if work is compile_one else int, while_launch=fork if work is launch_one else int)
""",
    "daemon": DAEMON
    + """
for i in range(3):
    time.sleep(moment / 3)
    fork()
before = len(worked)
until(lambda: len(worked) > before)
""",
    "pool": POOL
    + """
time.sleep(moment / 2)
fork()
for future in futures: future.result()
""",
}

FORKS_DURING_LAUNCHES = """
def prepared():
    return tilewright.prepare(GemmArguments(*(np.ones(s, np.float16) for s in ((512, 8), (8, 32), (512, 32)))))
def launch_on():
    launch = prepared()
    while True:
        launch.run()
own = prepared()
for _ in range(3):
    threading.Thread(target=launch_on, daemon=True).start()
for i in range(100):
    time.sleep(i * 0.618034 % 1 * 0.002)
    child = os.fork()
    if child == 0:
        signal.alarm(45)
        own.run()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

# The program polls, because Python misses the signal if the system delivers it to a thread that is being created.
CTRL_CS = {
    "main": "print('ready', flush=True)\nwork_on()\n",
    "daemon": DAEMON + "print('ready', flush=True)\nuntil(lambda: False)\n",
    "pool": POOL + "print('ready', flush=True)\nuntil(lambda: False)\n",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=range(REPEATS))
def moment(request: pytest.FixtureRequest) -> float:
    """The delay in seconds before the event, pseudo-random over about 0.2 s."""
    return float(request.param * 0.618034 % 1) * 0.2


def start(program: str, cache: Path, moment: float, before: str = "") -> subprocess.Popen[str]:
    """`before` is code that the program runs before it imports tilewright."""
    return subprocess.Popen(
        # Python 3.12 and newer warn when a process with threads forks.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", f"{before}moment = {moment}\n{PRELUDE}{program}"],
        env={
            **os.environ,
            "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}",
            "TILEWRIGHT_DEVICE": "emulator",
            "TILEWRIGHT_CACHE_DIR": str(cache),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status of the program, and what it printed to stderr."""
    try:
        err = process.communicate(timeout=MOST_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"the process hangs: {process.communicate()}")
    return process.returncode, err


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("place", EXITS)
def test_exit(place: str, work: str, cache: Path, moment: float) -> None:
    assert end_of(start(WORKS[work] + EXITS[place], cache, moment)) == (0, "")


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("place", FORKS)
def test_fork(place: str, work: str, cache: Path, moment: float) -> None:
    assert end_of(start(WORKS[work] + FORKS[place], cache, moment)) == (0, "")


def test_many_forks_while_launches_create_threads(cache: Path) -> None:
    """Without thread_creation() of base/fork.hpp, the C library finds a corrupted heap in three of 100 children."""
    assert end_of(start(FORKS_DURING_LAUNCHES, cache, 0)) == (0, "")


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("place", CTRL_CS)
def test_ctrl_c(place: str, work: str, cache: Path, moment: float) -> None:
    process = start(WORKS[work] + CTRL_CS[place], cache, moment)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    status, err = end_of(process)
    lines = err.splitlines()
    assert (status, lines[0], lines[-1]) == (-signal.SIGINT, "Traceback (most recent call last):", "KeyboardInterrupt")
    assert err.count("Traceback") == 1


def test_exit_while_native_code_calls_python(cache: Path, moment: float) -> None:
    """Native work that calls Python code: filters, methods of kernels, traced epilogues and exporters of arrays."""
    program = """
import numpy as np
def slowly(result):
    for i in range(3000): pass
    return result
class Exporter:
    def __init__(self, array): self.array = array
    def __dlpack__(self, **options): return slowly(self.array.__dlpack__())
a = np.ones((8, 8), np.float32)
def export(): tilewright.GemmArguments(Exporter(a), Exporter(a), Exporter(np.empty_like(a)))
def search(): tilewright.find_kernels(arguments(), lambda metadata: slowly(True))
def trace():
    epilogue = tilewright.EpilogueArguments("def f(accum, s):\\n  D = accum * s + s * accum\\n  return D", s=2.0)
    tilewright.GemmArguments(a, a, np.empty_like(a), epilogue=epilogue)
def author(): kernel.run(arguments())
kernel = authored("slow", SMALL.replace("VALUE", "1"), while_launch=lambda: slowly(None))
def forever(work):
    while True: work()
for work in (export, search, trace, author):
    threading.Thread(target=forever, args=(work,), daemon=True).start()
time.sleep(moment)
"""
    assert end_of(start(program, cache, moment)) == (0, "")


def test_exit_does_not_wait_for_python_code_that_native_code_calls(cache: Path) -> None:
    """It waits two seconds. Then the interpreter ends the thread, which must not crash."""
    program = """
began = threading.Event()
def forever(metadata):
    began.set()
    while True: pass
threading.Thread(target=lambda: tilewright.find_kernels(arguments(), forever), daemon=True).start()
began.wait()
"""
    assert end_of(start(program, cache, 0)) == (0, "")


REGISTER = "import atexit\natexit.register(lambda: product(96))\natexit.register(lambda: print('computed'))\n"


@pytest.mark.parametrize("before, after", [(REGISTER, ""), ("", REGISTER)], ids=["before_import", "after_import"])
def test_atexit_functions_may_compute(before: str, after: str, cache: Path, moment: float) -> None:
    program = WORKS["launch"] + DAEMON + after + "time.sleep(moment)\n"
    process = start(program, cache, moment, before)
    out, err = process.communicate(timeout=MOST_SECONDS)
    assert (process.returncode, out, err) == (0, "computed\n", "")


@pytest.mark.parametrize("work", ["compile", "launch"])
def test_multiprocessing_by_forks(work: str, cache: Path, moment: float) -> None:
    program = """
import multiprocessing
context = multiprocessing.get_context("fork")
time.sleep(moment)
child = context.Process(target=in_child)
child.start()
child.join()
assert child.exitcode == 0
with context.Pool(2) as pool:
    pool.map(compile_small, [f"pool_{os.getpid()}_{i}" for i in range(4)])
before = len(worked)
until(lambda: len(worked) > before)
"""
    assert end_of(start(WORKS[work] + DAEMON + program, cache, moment)) == (0, "")


def test_programs_started_meanwhile_inherit_no_descriptor(cache: Path, moment: float) -> None:
    before = """
import re, subprocess
def files():
    listed = subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, text=True).stdout
    return sorted(re.sub(r"\\d+", "N", line.split(" -> ")[1]) for line in listed.splitlines()[1:])
inherited = files()
"""
    program = """
for i in range(5):
    time.sleep(moment / 5)
    assert files() == inherited, files()
"""
    assert end_of(start(WORKS["compile"] + DAEMON + program, cache, moment, before)) == (0, "")
