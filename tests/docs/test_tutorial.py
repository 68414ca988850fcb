"""docs/tutorial.md in the build folder: its Python as one program, and its commands after the installation.
tests/python/test_pip_install.py runs it as written, from a wheel."""

import os
import subprocess
import sys

import pytest
from conftest import BINARIES
from documents import Document

GUIDE = Document("docs/tutorial.md")


def run(folder, *command):
    path = f"{BINARIES}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "TILEWRIGHT_DEVICE": "emulator:sm_80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished


def test_commands_run(tmp_path):
    lines = [line.removeprefix("$ ") for block in GUIDE.blocks("console") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("tilewright ")]
    assert len(commands) == 2
    for command in commands:
        run(tmp_path, "bash", "-c", command)
    assert (tmp_path / "report.html").is_file()


def test_the_program_runs(tmp_path):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (tmp_path / "tutorial.py").write_text("\n".join(GUIDE.blocks("python")))
    finished = run(tmp_path, sys.executable, "tutorial.py")
    assert finished.stderr == ""
    assert "gemm A(64,64):f16" in finished.stdout
