"""docs/operations.md: its programs run, and the command computes and verifies its problem file."""

import json
import os
import subprocess
import sys

import pytest
from documents import Document, run_in

GUIDE = Document("docs/operations.md")


PROGRAMS = ["product", "any_operation", "reduce_split_k", "grouped", "convolutions"]


@pytest.mark.parametrize("program", GUIDE.blocks("python"), ids=PROGRAMS)
def test_programs_run(tmp_path, program):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "TILEWRIGHT_DEVICE": "emulator:sm_80"}
    finished = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_the_problem_file_is_computed_and_verified(tmp_path):
    (problem,) = GUIDE.blocks("json")
    (tmp_path / "problem.json").write_text(problem)
    command = "build/bin/tilewright run --problem problem.json --device emulator:sm_80"
    verified = run_in(tmp_path, f"{command} --verify --json")
    assert verified.returncode == 0, verified.stderr
    verify = json.loads(verified.stdout)["verify"]
    assert (verify["ok"], verify["exact"], verify["elements"]) == (True, True, 48 * 64)
    assert run_in(tmp_path, f"{command} --verify-candidates").returncode == 0
    assert "sm90_gemm" in run_in(tmp_path, f"{command} --find").stdout


def test_linked_files_exist():
    assert list(GUIDE.missing_links()) == []
