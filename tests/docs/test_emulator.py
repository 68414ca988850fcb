"""docs/emulator.md: its kernel gives the report that it shows, and its Python program runs."""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from documents import Document, run_in

GUIDE = Document("docs/emulator.md")


def without_numbers(text):
    """The report without what depends on the version of NVRTC: registers, PTX lines and addresses."""
    text = re.sub(r"^  note: before that: .*", "  note: before that", text, flags=re.M)
    text = re.sub(r"(read|write) by thread .*", r"\1", text)
    text = re.sub(r"and \d+ more", "and more", text)
    text = re.sub(r"^  PTX line .*\n", "", text, flags=re.M)
    return re.sub(r"\n+", "\n", text)


@pytest.fixture
def has_nvrtc(tilewright):
    if "NVRTC" in tilewright("emulate", "/dev/null/none.cu").stderr:
        pytest.skip("no NVRTC on this machine")


def test_the_report_is_as_shown(tmp_path, has_nvrtc):
    (kernel,) = GUIDE.blocks("cuda")
    (tmp_path / "reduce.cu").write_text(kernel)
    ((command, shown),) = GUIDE.sessions()
    finished = run_in(tmp_path, command)
    assert (finished.returncode, finished.stderr) == (1, "")
    assert without_numbers(finished.stdout) == without_numbers(shown)
    assert (tmp_path / "out.npy").exists()


def test_the_program_runs(tmp_path, has_nvrtc):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    (program,) = GUIDE.blocks("python")
    (tmp_path / "program.py").write_text(program)
    finished = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")


KERNEL = "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n"
HOST_CODE = "int main() { twice<<<1, 32>>>(nullptr); }\n"


def test_host_code_is_explained(tmp_path, tilewright, has_nvrtc):
    file = tmp_path / "twice.cu"
    file.write_text(KERNEL + HOST_CODE)
    finished = tilewright("emulate", str(file))
    assert finished.returncode == 2
    assert "twice.cu has host code" in finished.stderr
    file.write_text(f"{KERNEL}#ifndef __CUDACC_RTC__\n{HOST_CODE}#endif\n")
    finished = tilewright("emulate", str(file), "--block", "32", "--args", "x:f32[32]=1", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    file.write_text("template <class T> __global__ void twice(T* x) { *x *= 2; }\n")
    assert "a template must be instantiated" in tilewright("emulate", str(file)).stderr


def test_every_kind_is_listed():
    header = (ROOT / "tilewright/emulator/checks.hpp").read_text()
    kinds = re.search(r"enum class FindingKind.*?\{(.*?)\};", header, re.S).group(1)
    listed = set(re.findall(r"`(\w+)`", GUIDE.text))
    assert not [kind for kind in re.findall(r"^  (\w+),", kinds, re.M) if kind not in listed]


def test_linked_files_exist():
    assert list(GUIDE.missing_links()) == []
