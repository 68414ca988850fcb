"""Every Python file of examples/ runs unchanged in any folder, and prints nothing to stderr."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", str(example)],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_examples_exist_in_both_languages() -> None:
    languages = {".cpp": set[str](), ".py": set[str]()}
    for path in EXAMPLES[0].parent.glob("[0-9]*"):
        languages[path.suffix].add(path.stem)
    in_python = {"09_pycutlass_readme", "15_cutlass_api_notebook"}
    # The layouts of Python have static numbers, and its arrays are those of other packages.
    in_cpp = {"15_run_time_layout", "17_device_memory"}
    assert languages[".py"] - in_python == languages[".cpp"] - in_cpp
