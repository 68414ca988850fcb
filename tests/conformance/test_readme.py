"""README.md: its C++ is in examples/, its commands and its Python run, and its links, make targets and environment
variables exist."""

import json
import re
import subprocess
import sys

from conftest import ROOT, Tilewright
from documents import Document, run_in

README = Document("README.md")


def test_cpp_is_quoted_from_an_example_that_runs():
    assert README.blocks("cpp")
    programs = [path.read_text() for path in (ROOT / "examples").glob("*.cpp")]
    for block in README.blocks("cpp"):
        assert any(block in program for program in programs), f"not in examples/:\n{block}"


def test_python_and_commands_run(tmp_path):
    for script in README.blocks("python"):  # from a file, because the source of traced functions is read from it
        (tmp_path / "script.py").write_text(script)
        subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=120)
    commands = [command for command, _ in README.sessions() if not command.startswith("pip ")]  # tests/python tests pip
    assert commands
    for command in commands:
        finished = run_in(tmp_path, command)
        assert finished.returncode == 0, f"{command}\n{finished.stderr}"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README.text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_linked_files_exist():
    assert list(README.missing_links()) == []


def test_environment_variables_exist():
    known = {variable["name"] for variable in json.loads(Tilewright({})("env", "--json").stdout)["variables"]}
    named = set(re.findall(r"TILEWRIGHT_\w+", README.text))
    assert named and named <= known


def test_bad_input_has_exit_code_2():
    assert Tilewright({})("gemm", "--m", "-1", "--n", "1", "--k", "1").returncode == 2
