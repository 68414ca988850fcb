#!/usr/bin/env python3
"""Runs the tutorial from the wheel of `make wheel` in a root file system without compilers, and looks into the source
distribution. Needs root.

    test_wheel.py dist
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from tutorial_session import run_tutorial


def only(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    (found,) = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)[-1:]
    return found.resolve()


def main() -> None:
    dist = pathlib.Path(sys.argv[1])
    wheel, sources = only(dist, "*-manylinux_2_34_x86_64.whl"), only(dist, "*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(re.fullmatch(r"tilewright/_tilewright\.abi3\.so", name) for name in names), names
    libraries = sorted(name.split("/")[1].split("-")[0] for name in names if name.startswith("tilewright.libs/"))
    print("the wheel contains", *libraries)
    with tempfile.TemporaryDirectory() as folder:
        ran = run_tutorial(pathlib.Path(folder) / "root", wheel)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        subprocess.run(["tar", "-xzf", sources, "-C", folder], check=True)
        (unpacked,) = pathlib.Path(folder).glob("tilewright-*/CMakeLists.txt")
        assert (unpacked.parent / "python/bindings/module.cpp").exists()
    print("the tutorial runs from the wheel, and the source distribution is complete")


main()
