"""mypy --strict accepts the package and programs that use it, infers the types of results, and finds mistakes."""

import os
import pathlib
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
