"""mypy --strict and pyright accept the package and programs that use it, infer types of results, and find mistakes."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import tilewright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = pathlib.Path(tilewright.__file__).parents[1]

GOOD = """
from typing import assert_type

import tilewright
from tilewright import arch, program
from tilewright.layout import ComposedLayout, Drawing, IntTuple, Layout, Swizzle, Tiler
from tilewright.layout import composition, local_tile, logical_divide, size, slice_and_offset, tile_to_shape

rows = Layout((8, 8), (8, 1))
assert_type(rows(1, 3), int)
assert_type(rows(1, None), Layout)
assert_type(rows.shape, IntTuple)
assert_type(rows[0], Layout)
assert_type([mode for mode in rows], list[Layout])
assert_type(size(rows, 0) + len(rows), int)
tiler: Tiler = (2, Layout(4), None)
assert_type(logical_divide(Layout((8, 8, 8)), tiler), Layout)
assert_type(composition(Swizzle(3, 4, 3), rows), ComposedLayout)
assert_type(composition(rows, (2, 4)), Layout)
assert_type(tile_to_shape(composition(Swizzle(3, 4, 3), rows), (64, 64)), ComposedLayout)
assert_type(local_tile(rows, (2, 4), (1, None)), tuple[Layout, IntTuple])
assert_type(slice_and_offset((1, None), rows)[0], Layout)
assert_type(rows.draw(tile=(2, 4)), Drawing)
assert_type(tilewright.layout.Layout.parse("8:1"), Layout)
assert_type(tilewright.__version__, str)
k = program.Kernel("typed", threads=32)
with k.loop(4) as i, k.If(i % 2 == 1):
    assert_type(i < 3, program.Number)
    assert_type(1 + k.thread * i // 2, program.Number)
    assert_type(program.add(k, program.constant(k, 1.0), program.to_f32(k, i)), program.Value)
assert_type(k.cell(0, 4).get(), program.Number)
assert_type(k.build().cuda(), str)
assert_type(arch.wgmma_atom("f16", "f16", "f32").instruction(64).layout_c_tv, Layout)
code: int = tilewright.DriverError("cuInit", 100).code
try:
    composition(rows, Layout(4, 3))
except tilewright.InvalidArgument as refused:
    print(refused)
"""

BAD = """
from tilewright.layout import Layout, composition
from tilewright.program import Kernel, add

Layout("8")
Layout((8, None))
composition(Layout(8), "4")
Layout(8).draw(colour=True)
k = Kernel("wrong")
k.thread + "1"
add(k, k.thread, k.thread)
"""


def mypy(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), *arguments]
    environment = {**os.environ, "MYPYPATH": str(PACKAGES)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False
    )


def test_the_package_type_checks(tmp_path: pathlib.Path) -> None:
    checked = mypy(tmp_path, "--config-file", str(ROOT / "pyproject.toml"), "-p", "tilewright")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_examples_type_check(tmp_path: pathlib.Path) -> None:
    untyped = {"03_epilogue.py", "15_cutlass_api_notebook.py"}  # functions that are traced; another library's cells
    examples = [str(path) for path in (ROOT / "examples").glob("*.py") if path.name not in untyped]
    checked = mypy(tmp_path, "--config-file", str(ROOT / "pyproject.toml"), *examples)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_pyright_accepts_the_package_the_examples_and_programs(tmp_path: pathlib.Path) -> None:
    """With the settings of pyproject.toml, in a copy of the sources with the stubs of the extension."""
    shutil.copytree(PACKAGES / "tilewright", tmp_path / "python" / "tilewright", ignore=shutil.ignore_patterns("*.so"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.cpp", "*.hpp"))
    good = GOOD.replace("from typing import", "from typing_extensions import")  # the settings name Python 3.10
    (tmp_path / "examples" / "good.py").write_text(good)
    (tmp_path / "examples" / "bad.py").write_text(BAD)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "python").symlink_to(tmp_path / "python")
    for name in ("jax", "torch"):
        if importlib.util.find_spec(name) is None:
            # Otherwise pyright takes tilewright/torch.py for the module `torch` that this file imports.
            (tmp_path / "typings" / name).mkdir(parents=True)
            stub = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"
            (tmp_path / "typings" / name / "__init__.pyi").write_text(stub)
    command = [sys.executable, "-m", "pyright", "--project", "pyproject.toml", "--pythonpath", sys.executable]
    checked = subprocess.run(
        [*command, "--outputjson"], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    found = json.loads(checked.stdout)["generalDiagnostics"]
    wrong = {each["range"]["start"]["line"] + 1 for each in found if each["file"].endswith("examples/bad.py")}
    assert wrong == {5, 6, 7, 8, 10, 11}, checked.stdout
    assert [each for each in found if not each["file"].endswith("examples/bad.py")] == []


def test_programs_type_check_and_run(tmp_path: pathlib.Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    checked = mypy(tmp_path, "good.py")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    program = GOOD.replace("from typing import assert_type", "def assert_type(value: object, _: object) -> None: ...")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0 and "divisibility" in ran.stdout, ran.stderr


def test_mistakes_are_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    checked = mypy(tmp_path, "bad.py")
    wrong = {int(line.split(":")[1]) for line in checked.stdout.splitlines() if ": error:" in line}
    assert wrong == {5, 6, 7, 8, 10, 11}, checked.stdout
