"""Shared by the Python tests: the command under test, options of pytest, and fixtures."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARIES = pathlib.Path(os.environ.get("TILEWRIGHT_BIN_DIR", ROOT / "build/bin")).resolve()


def pytest_addoption(parser):
    parser.addoption(
        "--update-docs", action="store_true", help="rewrite outputs and pictures in documents instead of comparing"
    )
    parser.addoption("--shard", metavar="I/N", help="run only part I of N of the tests; parts are counted from 1")
    parser.addoption(
        "--every-kernel", action="store_true", help="assemble all kernels offered for bench/problems/hopper.txt"
    )
    parser.addoption(
        "--every-convolution", action="store_true", help="run PyCUTLASS's convolutions with all of its problem sizes"
    )


def pytest_collection_modifyitems(config, items):
    shard = config.getoption("--shard")
    if shard:
        part, parts = map(int, shard.split("/"))
        items[:] = items[part - 1 :: parts]


class Tilewright:
    """Runs the command build/bin/tilewright with additional environment variables."""

    program = str(BINARIES / "tilewright")

    def __init__(self, environment):
        self.environment = {**os.environ, **environment}

    def __call__(self, *arguments, cwd=None):
        command = [self.program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=cwd, timeout=300)


@pytest.fixture(scope="session")
def tilewright():
    return Tilewright({})


@pytest.fixture(scope="session")
def has_gpu(tilewright):
    findings = json.loads(tilewright("doctor", "--json").stdout)
    return any(finding["what"] == "GPU" and finding["found"] for finding in findings)


@pytest.fixture(autouse=True)
def skip_if_the_device_is_missing(request, has_gpu):
    callspec = getattr(request.node, "callspec", None)
    device = callspec.params.get("device", "") if callspec else ""
    if device.startswith("cuda") and not has_gpu:
        pytest.skip("no GPU")


@pytest.fixture
def save(tmp_path):
    """Returns a function that writes an array to a .npy file of the given name and returns its path."""

    def write(name, array):
        path = tmp_path / f"{name}.npy"
        np.save(path, array)
        return path

    return write
