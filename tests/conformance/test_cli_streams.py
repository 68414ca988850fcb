"""Standard output that cannot be written, warnings, and signals: what a script that calls the command relies on."""

import json
import os
import signal
import subprocess

import numpy as np
import pytest
from conftest import Tilewright
from test_cli_commands import SMALL

PRINTING = {
    "gemm": ("gemm", *SMALL),
    "gemm_json": ("gemm", *SMALL, "--json"),
    "find": ("find", *SMALL),
    "find_json": ("find", *SMALL, "--json"),
    "tune_check": ("tune", *SMALL, "--check", "--top", 1),
    "tune_list": ("tune", "--list"),
    "emit": ("emit", *SMALL),
    "emit_ptx": ("emit", *SMALL, "--ptx"),
    "emit_stats": ("emit", *SMALL, "--stats"),
    "layout_eval": ("layout", "eval", "(4,4)"),
    "layout_functions": ("layout", "functions"),
    "layout_draw": ("layout", "draw", "(4,4):(4,1)"),
    "layout_svg": ("layout", "draw", "(16,16):(16,1)", "--svg", "-"),
    "cache_ls": ("cache", "ls"),
    "cache_verify": ("cache", "verify"),
    "doctor": ("doctor",),
    "doctor_json": ("doctor", "--json"),
    "env": ("env",),
    "env_json": ("env", "--json"),
    "help": ("--help",),
    "gemm_help": ("gemm", "--help"),
    "version": ("--version",),
}


def start(tilewright, arguments, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([tilewright.program, *map(str, arguments)], env=tilewright.environment, **options)


@pytest.mark.parametrize("name", PRINTING)
def test_a_full_disk_behind_standard_output(tilewright, name):
    with open("/dev/full", "w") as full:
        process = start(tilewright, PRINTING[name], stdout=full)
        errors = process.communicate(timeout=120)[1]
    assert process.returncode == 3
    assert errors == "tilewright: cannot write to the standard output: No space left on device\n"


def test_a_result_that_is_wrong_already_keeps_its_code(tilewright):
    with open("/dev/full", "w") as full:
        process = start(tilewright, ("gemm", *SMALL, "--fill", "sand"), stdout=full)
        errors = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert errors.count("\n") == 1


def test_a_closed_standard_output_is_no_file_of_ours(tilewright, tmp_path):
    out = tmp_path / "d.npy"
    process = start(tilewright, ("gemm", *SMALL, "--out", out), preexec_fn=lambda: os.close(1))
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 3
    assert errors == "tilewright: cannot write to the standard output: Bad file descriptor\n"
    assert np.load(out).shape == (40, 24)


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
@pytest.mark.parametrize("name", ["emit", "gemm_json", "gemm_help"])
def test_a_closed_pipe_ends_quietly(tilewright, name, disposition):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(tilewright, PRINTING[name], stdout=writer, restore_signals=False,
                    preexec_fn=lambda: signal.signal(signal.SIGPIPE, disposition))
    os.close(writer)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == -signal.SIGPIPE
    assert errors == ""


def test_warnings_are_shown_once_beside_the_result(tmp_path):
    (tmp_path / "file").write_text("")
    here = Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / "file")})
    finished = here("gemm", *SMALL, "--json")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["binary"]["from"] == "compiled"
    assert finished.stderr.startswith("tilewright: warning: kernels are kept in memory only, the cache folder cannot be")
    assert finished.stderr.count("\n") == 1


def test_warnings_have_no_control_characters(tmp_path):
    name = "fi\x1b[31m\nle"
    (tmp_path / name).write_text("")
    finished = Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / name)})("gemm", *SMALL, "--json")
    assert finished.returncode == 0
    assert "fi\\x1b[31m\\x0ale" in finished.stderr
    assert finished.stderr.count("\n") == 1
