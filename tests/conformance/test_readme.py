"""What README.md shows is so: its C++ is in examples/, its commands run, its Python runs."""

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
    for script in README.blocks("python"):  # from a file: functions that are traced are read there
        (tmp_path / "script.py").write_text(script)
        subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=120)
    commands = [command for command, _ in README.sessions() if not command.startswith("pip ")]  # tests/python has it
    assert commands
    for command in commands:
        finished = run_in(tmp_path, command)
        assert finished.returncode == 0, f"{command}\n{finished.stderr}"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README.text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_links_lead_somewhere():
    assert list(README.missing_links()) == []


def test_environment_variables_are_read():
    known = {variable["name"] for variable in json.loads(Tilewright({})("env", "--json").stdout)["variables"]}
    named = set(re.findall(r"TILEWRIGHT_\w+", README.text))
    assert named and named <= known


def test_exit_codes_are_those_of_the_command():
    assert Tilewright({})("gemm", "--m", "-1", "--n", "1", "--k", "1").returncode == 2
