"""docs/programs.md: its programs run, and print the listing that it shows."""

import os
import subprocess
import sys

import pytest
from documents import Document

GUIDE = Document("docs/programs.md")

PROGRAMS = ["vector_add", "row_sums", "while", "any_instruction", "atoms", "hopper_gemm", "multicast", "windows", "registered"]


def run(folder, program):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (folder / "program.py").write_text(program)
    environment = {**os.environ, "TILEWRIGHT_DEVICE": "emulator:sm_90a"}
    finished = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


@pytest.mark.parametrize("program", GUIDE.blocks("python")[1:], ids=PROGRAMS[1:])
def test_programs_run(tmp_path, program):
    printed = run(tmp_path, program)
    if "reverse" in program:
        assert "reverse.tw:" in printed  # the race


def test_the_listing_is_printed(tmp_path):
    (listing,) = GUIDE.blocks("text")
    assert run(tmp_path, GUIDE.blocks("python")[0]).strip() == listing.strip()


def test_linked_files_exist():
    assert list(GUIDE.missing_links()) == []
