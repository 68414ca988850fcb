"""What README.md shows is so: its C++ is in examples/, its commands run, its Python runs."""

import re
import shutil
import subprocess
import sys

from conftest import BINARIES, ROOT, Tilewright

README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def test_cpp_is_quoted_from_an_example_that_runs():
    assert blocks("cpp")
    programs = [path.read_text() for path in (ROOT / "examples").glob("*.cpp")]
    for block in blocks("cpp"):
        assert any(block in program for program in programs), f"not in examples/:\n{block}"


def test_python_and_commands_run(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "build/bin").symlink_to(BINARIES)
    for script in blocks("python"):
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=120)
    commands = [
        line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ build/bin/")
    ]
    assert commands
    for command in commands:
        finished = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            executable=shutil.which("bash"),
        )
        assert finished.returncode == 0, f"{command}\n{finished.stderr}"


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_exit_codes_are_those_of_the_command():
    assert Tilewright({})("gemm", "--m", "-1", "--n", "1", "--k", "1").returncode == 2
