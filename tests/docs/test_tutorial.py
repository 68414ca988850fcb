"""docs/tutorial.md: its commands run, and its Python runs as one program."""

import os
import subprocess
import sys

import pytest
from documents import Document, run_in

GUIDE = Document("docs/tutorial.md")


def test_commands_run(tmp_path):
    for session in GUIDE.blocks("console"):
        for line in session.splitlines():
            finished = run_in(tmp_path, line.removeprefix("$ "))
            assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "report.html").is_file()


def test_the_program_runs(tmp_path):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (tmp_path / "tutorial.py").write_text("\n".join(GUIDE.blocks("python")))
    finished = subprocess.run(
        [sys.executable, "tutorial.py"],
        cwd=tmp_path,
        env={**os.environ, "TILEWRIGHT_DEVICE": "emulator:sm_80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, ""), finished.stderr
    assert "gemm A(64,64):f16" in finished.stdout
