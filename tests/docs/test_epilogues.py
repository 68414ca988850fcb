"""docs/epilogues.md: its commands run and verify, its C++ is in examples/, its Python prints the text below it, and its
links lead to files that exist."""

import os
import subprocess
import sys

from conftest import ROOT
from documents import Document, run_in

GUIDE = Document("docs/epilogues.md")


def test_commands_run(tmp_path):
    commands = [command for command, _ in GUIDE.sessions()]
    assert commands
    for command in commands:
        finished = run_in(tmp_path, command)
        assert finished.returncode == 0, f"{command}\n{finished.stderr}"
        assert "verify    " in finished.stdout


def test_cpp_is_quoted_from_an_example_that_runs():
    programs = [path.read_text() for path in (ROOT / "examples").glob("*.cpp")]
    assert GUIDE.blocks("cpp")
    for block in GUIDE.blocks("cpp"):
        assert any(block in program for program in programs), block


def run_python(folder, text):
    (folder / "model.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [sys.executable, "model.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_python_prints_the_text_below_it(tmp_path):
    (program,) = GUIDE.blocks("python")
    printed, _ = GUIDE.blocks("text")
    finished = run_python(tmp_path, program)
    assert finished.stdout == printed, finished.stderr


def test_untraceable_python_is_refused_as_shown(tmp_path):
    _, refusal = GUIDE.blocks("text")
    lines = ["from tilewright.tracing import trace", "", "", "def epilogue(accum):", "    t = accum", ""]
    lines += ["    return torch.softmax(t, dim=-1)", "", "", "trace(epilogue, problem=(64, 96))"]
    finished = run_python(tmp_path, "\n".join(lines))
    assert refusal.partition(": ")[2] in finished.stderr and "model.py:7:12: " in finished.stderr


def test_linked_files_exist():
    assert list(GUIDE.missing_links()) == []
