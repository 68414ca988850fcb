"""What scripts that call the command rely on: exit codes of failed output, warnings on stderr, and signals."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

import numpy as np
import pytest
from conftest import Tilewright
from test_cli_commands import SMALL

PRINTING = {
    "gemm": ("gemm", *SMALL),
    "gemm_json": ("gemm", *SMALL, "--json"),
    "find": ("find", *SMALL),
    "find_json": ("find", *SMALL, "--json"),
    "tune_check": ("tune", *SMALL, "--verify-candidates", "--top", 1),
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


def test_an_earlier_error_keeps_its_exit_code(tilewright):
    with open("/dev/full", "w") as full:
        process = start(tilewright, ("gemm", *SMALL, "--distribution", "sand"), stdout=full)
        errors = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert errors.count("\n") == 1


def test_no_file_gets_the_descriptor_of_a_closed_standard_output(tilewright, tmp_path):
    out = tmp_path / "d.npy"
    process = start(tilewright, ("gemm", *SMALL, "--out", out), preexec_fn=lambda: os.close(1))
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 3
    assert errors == "tilewright: cannot write to the standard output: Bad file descriptor\n"
    assert np.load(out).shape == (40, 24)


def test_errors_that_cannot_be_printed_keep_their_exit_code(tilewright, tmp_path):
    (tmp_path / "file").write_text("")
    here = Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / "file")})
    with open("/dev/full", "w") as full:
        for arguments, code in ((("gemm",), 2), (("gemm", *SMALL), 0), (("find", "--device", "cuda:99"), 2)):
            process = start(here, arguments, stderr=full)
            process.communicate(timeout=120)
            assert process.returncode == code
        process = start(tilewright, ("--version",), stdout=full, stderr=full)
        process.communicate(timeout=120)
        assert process.returncode == 3


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
@pytest.mark.parametrize("name", ["emit", "gemm_json", "gemm_help"])
def test_a_closed_pipe_ends_the_command_without_a_message(tilewright, name, disposition):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(tilewright, PRINTING[name], stdout=writer, restore_signals=False,
                    preexec_fn=lambda: signal.signal(signal.SIGPIPE, disposition))
    os.close(writer)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == -signal.SIGPIPE
    assert errors == ""


def test_warnings_are_printed_once_on_stderr(tmp_path):
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


def catches(process, number):
    """Waits until the process has a handler for the signal, or has ended; returns whether it has one."""
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return True
        time.sleep(0.002)
    return False


@pytest.fixture
def waiting(tmp_path):
    """Starts a command that waits five seconds for a lock that the test holds."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    (folder / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (folder / "tuning_records.db").touch(mode=0o600)
    holder = sqlite3.connect(folder / "tuning_records.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    here = Tilewright({"TILEWRIGHT_CACHE_DIR": str(folder)})
    yield lambda **options: start(here, ("tune", "--forget"), **options)
    holder.close()


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_within_two_seconds(waiting, number, code):
    process = waiting()
    assert catches(process, number)
    process.send_signal(number)
    sent = time.monotonic()
    output, errors = process.communicate(timeout=60)
    assert time.monotonic() - sent < 2
    assert process.returncode == code
    assert errors == "tilewright: interrupted\n"
    assert output == ""


def test_a_second_signal_kills_if_the_command_is_still_there(waiting):
    process = waiting()
    assert catches(process, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    while catches(process, signal.SIGINT):  # until the handler has run, which removes itself
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130)


def test_a_signal_that_the_caller_ignores_stays_ignored(waiting):
    process = waiting(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert catches(process, signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "locked" in errors


ENDLESS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry endless(.param .u64 out)
{
  .reg .pred %p; .reg .b32 %v; .reg .b64 %out;
  .shared .align 4 .b8 s[4];
  ld.param.u64 %out, [out];
  st.global.u32 [%out+400], 1;
  ld.shared.u32 %v, [s];
  setp.eq.u32 %p, %v, 0;
  @%p bra loop;
loop:
  bra loop;
}
"""


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("options", [[], ["--cooperative"]])
def test_an_interrupted_launch_reports_what_was_found(tilewright, tmp_path, number, code, options):
    (tmp_path / "endless.ptx").write_text(ENDLESS)
    command = ["emulate", "endless.ptx", "--args", "out:s32[4]=0", "--json", "--steps", str(1 << 40), *options]
    process = start(tilewright, command, cwd=tmp_path)
    assert catches(process, number)
    time.sleep(0.5)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    report = json.loads(output)
    assert report["interrupted"] and report["outputs"] == []
    kinds = [finding["kind"] for finding in report["findings"]]
    assert kinds == ["out_of_bounds_global", "uninitialised_shared_read"]
    assert not (tmp_path / "out.npy").exists()
