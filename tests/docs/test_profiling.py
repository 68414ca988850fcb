"""docs/profiling.md: its commands and its program run, and it lists the options of the command."""

import os
import re
import subprocess
import sys

import pytest
from documents import Document, run_in

GUIDE = Document("docs/profiling.md")


def test_commands_run(tmp_path):
    (commands,) = GUIDE.blocks("console")
    for line in commands.splitlines():
        finished = run_in(
            tmp_path, line.removeprefix("$ ") + (" --device emulator:sm_80" if " profile " in line else "")
        )
        assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "report.html").stat().st_size > 10000
    assert len((tmp_path / "profile.csv").read_text().splitlines()) == 13


def test_the_program_runs(tmp_path):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (program,) = GUIDE.blocks("python")
    (tmp_path / "program.py").write_text(program)
    finished = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "TILEWRIGHT_DEVICE": "emulator:sm_80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_every_option_is_listed(tmp_path):
    options = set(re.findall(r"--[a-z-]+", run_in(tmp_path, "build/bin/tilewright profile --help").stdout))
    listed = set(re.findall(r"--[a-z-]+", GUIDE.text))
    assert options - listed <= {"--help", "--device", "--deterministic", "--batch-invariant"}


def test_links_lead_to_files():
    assert list(GUIDE.missing_links()) == []
