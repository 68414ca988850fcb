"""Runs docs/tutorial.md as it is written, from a wheel, in a root file system without compilers (bare_root.py)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from bare_root import BareRoot

TUTORIAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
# Every Debian and Ubuntu has these, but for python3-venv. libstdc++6 is there because apt needs it.
PACKAGES = ["bash", "coreutils", "libstdc++6", "python3-venv"]


def run_tutorial(folder: pathlib.Path, wheel: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Makes the root in `folder` and runs the tutorial there. The wheels that the tutorial's pip finds are downloaded
    before, so that the root needs no network; `python` is /usr/bin/python3, as in the root."""
    root = BareRoot(folder, PACKAGES)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", TUTORIAL.read_text(), re.M | re.S)
    commands = [
        line.removeprefix("$ ")
        for language, text in blocks
        if language == "console"
        for line in text.splitlines()
        if line.startswith("$ ")
    ]
    (folder / "root/tutorial.py").write_text("\n".join(text for language, text in blocks if language == "python"))
    shutil.copy(wheel, folder / "root")
    (folder / "wheels").mkdir()
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
         "--dest", folder / "wheels", f"{wheel}[cuda]"],
        check=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    forbidden = "for each in gcc c++ cc ld nvcc apt-get; do ! command -v $each; done"
    return root.run("\n".join([forbidden, *commands]), PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels")
