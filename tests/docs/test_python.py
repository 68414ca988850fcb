"""The programs of docs/python.md that need neither PyTorch nor JAX, one after the other. Those that need one of them are
run by tests/python/test_torch.py, test_gradients.py and test_jax.py."""

import os
import subprocess
import sys

import pytest
from documents import Document

GUIDE = Document("docs/python.md")


def test_the_programs_run(tmp_path):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    programs = [
        block for block in GUIDE.blocks("python") if "import tilewright" in block and not {"torch", "jax"} & imports(block)
    ]
    assert len(programs) == 4
    (tmp_path / "programs.py").write_text("\n".join(programs))
    environment = {**os.environ, "TILEWRIGHT_DEVICE": "emulator:sm_90a"}
    finished = subprocess.run(
        [sys.executable, "programs.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110
    )
    assert finished.returncode == 0, finished.stderr


def imports(program):
    """The packages that a program imports."""
    lines = [line.split() for line in program.splitlines()]
    return {words[1].partition(".")[0] for words in lines if words[:1] in (["import"], ["from"])}
