"""`import tilewright` is cheap and does not import modules that it does not need."""

import json
import subprocess
import sys

HEAVY = ("numpy", "torch", "typing", "tilewright._tilewright")


def run(program: str) -> str:
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def seconds_to_import(name: str) -> float:
    return float(run(f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"))


def test_import_takes_at_most_10_ms() -> None:
    assert min(seconds_to_import("tilewright") for _ in range(6)) < 0.010


def test_import_loads_neither_the_extension_nor_arrays() -> None:
    loaded = json.loads(run("import json, sys, tilewright; print(json.dumps(list(sys.modules)))"))
    assert not set(HEAVY) & set(loaded)


def test_the_extension_touches_no_cuda() -> None:
    maps = run("import tilewright._tilewright; print(open('/proc/self/maps').read())")
    assert "_tilewright.abi3.so" in maps
    assert not any(library in maps for library in ("libcuda", "libnvrtc", "libnvJitLink"))


def test_names_are_listed_and_exist() -> None:
    assert run("import tilewright as t; print(set(t.__all__) <= set(dir(t)), [getattr(t, n) for n in t.__all__] != [])")
    assert run("import tilewright; print(hasattr(tilewright, 'no_such_name'))") == "False\n"


def test_version_is_that_of_the_project() -> None:
    assert run("import tilewright; print(tilewright.__version__)").count(".") == 2
