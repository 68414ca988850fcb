#!/usr/bin/env python3
"""Installs the wheel of `make wheel` into a bare environment and computes a product on the emulator, where no program
but those of the environment is found: no compiler and no CUDA toolkit. NVRTC is that of the wheel's extra [cuda].

    test_wheel.py dist
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PROGRAM = """
import shutil
import numpy as np
import tilewright

assert shutil.which("c++") is None and shutil.which("gcc") is None and shutil.which("nvcc") is None
a, b = np.arange(12.0, dtype="float32").reshape(3, 4), np.ones((4, 5), "float32")
bias = np.full(5, -10, "float32")
got = tilewright.matmul(a, b, epilogue="D = relu(acc + row(bias))", bias=bias)
assert np.array_equal(got, np.maximum(a @ b - 10, 0)), got
print(tilewright.__version__, tilewright.__file__)
"""


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
        python = f"{folder}/environment/bin/python"
        subprocess.run(["/usr/bin/python3", "-m", "venv", f"{folder}/environment"], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        subprocess.run([*install, f"{wheel}[cuda]"], check=True, env={"PATH": "/nowhere", "HOME": folder})
        environment = {
            "PATH": f"{folder}/environment/bin",
            "HOME": folder,
            "TILEWRIGHT_DEVICE": "emulator",
            "TILEWRIGHT_CACHE_DIR": f"{folder}/cache",
        }
        for command in ([python, "-c", PROGRAM], [f"{folder}/environment/bin/tilewright", "layout", "eval", "size((2,3):(1,2))"]):
            ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            print(ran.stdout.strip())
        subprocess.run(["tar", "-xzf", sources, "-C", folder], check=True)
        (unpacked,) = pathlib.Path(folder).glob("tilewright-*/CMakeLists.txt")
        assert (unpacked.parent / "python/bindings/module.cpp").exists()
    print("the wheel and the source distribution are complete")


main()
