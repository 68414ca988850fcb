"""`tilewright emulate run`: CUDA programs, as nvcc compiles them, run on the emulator's libcudart and libcuda."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
NVCC = os.environ.get("TILEWRIGHT_NVCC") or shutil.which("nvcc")

if NVCC is None:
    pytest.skip("no nvcc on this machine", allow_module_level=True)


def compile_program(folder: Path, source: str, *options: str) -> str:
    program = str(folder / Path(source).stem)
    command = [NVCC, "-cudart", "shared", "-std=c++17", *options, "-o", program, str(FOLDER / source)]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return program


@pytest.fixture(scope="session")
def runtime_api(tmp_path_factory):
    return compile_program(tmp_path_factory.mktemp("runtime"), "runtime_api.cu", "-arch=sm_90")


@pytest.fixture(scope="session")
def findings(tmp_path_factory):
    # LZ4; zstd is the default.
    options = ["-lineinfo", "-arch=sm_80", "-compress-mode=speed"]
    return compile_program(tmp_path_factory.mktemp("findings"), "findings.cu", *options)


def test_a_program_uses_the_runtime(tilewright, runtime_api):
    finished = tilewright("emulate", "run", "--", runtime_api)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "0 errors, 0 warnings" in finished.stderr
    assert "not emulated: cudaMallocArray, called 1 time\n" in finished.stderr
    assert "times that the program measured are the emulator's" in finished.stderr


def test_a_program_runs_without_global_checks(tilewright, runtime_api):
    finished = tilewright("emulate", "run", "--fast", "--", runtime_api)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr


def test_a_program_uses_the_driver(tilewright, tmp_path):
    program = compile_program(tmp_path, "driver_api.cpp", "-lcuda")
    finished = tilewright("emulate", "run", "--", program)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "note: cuGetProcAddress returned cudaErrorSymbolNotFound: named symbol not found: there is no cuNothing" in (
        finished.stderr
    )
    assert "note: cuMemFreeAsync returned " in finished.stderr, "the name is that of the function which was called"


@pytest.mark.parametrize("options", [[], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]])
def test_a_program_builds_graphs_with_the_driver(tilewright, tmp_path, options):
    program = compile_program(tmp_path, "driver_graph.cpp", "-lcuda", *options)
    finished = tilewright("emulate", "run", "--", program)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "0 errors, 0 warnings" in finished.stderr
    assert "not emulated" not in finished.stderr
    assert re.search(
        "note: cuStreamWaitValue32 returned cudaErrorNotSupported: .*: it waits for the value 1 at 0x[0-9a-f]+, which is "
        "33751555; ",
        finished.stderr,
    ), finished.stderr


def test_machine_code_of_nvrtc_is_replaced_by_its_ptx(tilewright, tmp_path):
    program = compile_program(tmp_path, "nvrtc_program.cpp", "-lnvrtc", "-lcuda")
    finished = tilewright("emulate", "run", "--", program)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "cuGetExportTable" not in finished.stderr


@pytest.mark.parametrize(
    "which, kind, thread, status",
    [
        (0, "out_of_bounds_global", 63, "no error"),
        (1, "shared_race", 0, "no error"),
        (2, "uninitialised_global_read", 0, "no error"),
        (3, "uninitialised_global_read", 32, "no error"),
        (4, "trap", 0, "device-side assert triggered"),
        (5, "out_of_bounds_global", 0, "no error"),
        (6, "deadlock", 0, "the launch timed out and was terminated"),
        (12, "deadlock", 0, "the launch timed out and was terminated"),
        (10, "mbarrier_misuse", 0, "unspecified launch failure"),
    ],
)
def test_findings_name_kernel_thread_and_line(tilewright, findings, tmp_path, which, kind, thread, status):
    report, sarif = tmp_path / "report.json", tmp_path / "report.sarif"
    files = ["--json", str(report), "--sarif", str(sarif)]
    finished = tilewright("emulate", "run", "--steps", "100000", *files, "--", findings, str(which))
    assert (finished.stdout, finished.returncode) == (status + "\n", 1), finished.stderr
    found, *more = json.loads(report.read_text())["findings"]
    assert {each["kind"] for each in more} <= {kind}
    lines = (FOLDER / "findings.cu").read_text().splitlines()
    names = {
        0: "past_the_end",
        1: "race",
        4: "failed_assertion",
        5: "host_pointer",
        6: "endless",
        10: "uninitialised_mbarrier",
        12: "barrier_of_libcudacxx",
    }
    kernel = names.get(which, "uninitialised")
    assert found["kind"] == kind
    assert any(note.endswith("ended here") for note in found["notes"]) == (status != "no error")
    assert found["kernel"].startswith(kernel + "(")
    if kind != "shared_race":  # either access of a race may be the one that comes too early
        first = next(i for i, line in enumerate(lines) if f" {kernel}(" in line)
        bug = next(i for i, line in enumerate(lines) if i > first and "// BUG" in line)
        assert found["line"] == bug + 1
        assert found["thread"][0] == thread
    assert found["excerpt"] == lines[found["line"] - 1].strip()
    result = json.loads(sarif.read_text())["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == (kind, "error")
    (location,) = result["locations"]
    assert location["physicalLocation"]["region"]["startLine"] == found["line"]


def test_ctas_that_wait_for_each_other_are_resident_together(tilewright, findings):
    finished = tilewright("emulate", "run", "--multiprocessors", "32", "--", findings, "11")
    assert (finished.stdout, finished.returncode) == ("no error\n", 0), finished.stderr
    finished = tilewright("emulate", "run", "--multiprocessors", "1", "--", findings, "11")
    assert (finished.stdout, finished.returncode) == ("the launch timed out and was terminated\n", 1), finished.stderr
    assert "note: CTAs 2..63 have not started, as the device runs 2 at a time" in finished.stderr
    fast = ["--fast", "--steps", "100000"]
    assert tilewright("emulate", "run", *fast, "--cooperative", "--", findings, "11").returncode == 1
    assert tilewright("emulate", "run", *fast, "--cooperative", "--multiprocessors", "32", "--", findings, "11").returncode == 0


def test_calls_that_fail_are_named(tilewright, findings):
    finished = tilewright("emulate", "run", "--", findings, "7")
    assert (finished.stdout, finished.returncode) == ("no error\n", 0), finished.stderr
    launch = "note: cudaLaunchKernel returned cudaErrorInvalidConfiguration: invalid configuration argument"
    extents = "first_half(float*) was not launched with a grid of (1,1,1) and blocks of (2048,1,1)"
    assert f"{launch}: {extents}: a block has 1 to 1024 threads" in finished.stderr
    assert tilewright("emulate", "run", "--notes-fail", "--", findings, "7").returncode == 1
    notes = finished.stderr
    assert re.search(
        r"note: cudaMemcpy returned cudaErrorInvalidValue: invalid argument: the source, 1024 bytes at 0x[0-9a-f]+, is not "
        r"inside one allocation \(the last 256 bytes of a 256-byte allocation\)",
        notes,
    ), notes
    assert "note: cudaMemcpy returned cudaErrorInvalidValue: invalid argument: the destination is a null pointer" in notes
    free = "note: cudaFree returned cudaErrorInvalidValue: invalid argument: 0x[0-9a-f]+ is not the address of an allocation"
    assert re.search(free + r" \(the last 252 bytes of a 256-byte allocation\)", notes), notes
    assert re.search(free + r" \(0 bytes into a 256-byte allocation that was freed\)", notes), notes
    assert re.search(r"note: cudaFreeHost returned .*: 0x[0-9a-f]+ was allocated by cudaMalloc\(\)", notes), notes


def test_notes_say_why_calls_fail(tilewright, findings):
    finished = tilewright("emulate", "run", "--", findings, "14")
    assert (finished.stdout, finished.returncode) == ("no error\n", 0), finished.stderr
    for wanted in [
        "cudaMemset returned cudaErrorInvalidValue: .*: the destination, 4 bytes at 0x",
        "cudaMemset2D returned cudaErrorInvalidPitchValue: .*: the pitch is 4 bytes, and a row has 8",
        "cudaMemcpy2D returned cudaErrorInvalidPitchValue: .*: the pitch is 8 bytes, and a row has 16",
        r"cudaLaunchKernel returned .*: race\(float const\*, float\*\) was not launched with 1048576 bytes of dynamic shared memory",
        "cudaFuncSetAttribute returned .*: the kernel may have at most [0-9]+ bytes of dynamic shared memory",
        r"cudaLaunchKernel returned .*: race\(float const\*, float\*\) has 2 parameters, and the array of arguments is a null pointer",
        "cudaLaunchCooperativeKernel returned .* a cooperative launch of it has at most 2 CTAs on each of the 4 multipro",
        "cudaLaunchKernel returned .*: there is no such stream, or it was destroyed",
        "cudaEventElapsedTime returned .*: the second event was never recorded",
        "cudaEventRecord returned .*: there is no such event, or it was destroyed",
        "cudaMalloc returned .*: emulator: cannot allocate 1125899906842624 bytes",
        "cudaMallocManaged returned .*: emulator: cannot allocate 1125899906842624 bytes",
    ]:
        assert re.search(f"note: {wanted}", finished.stderr), f"{wanted}: {finished.stderr}"


def test_a_copy_of_memory_that_no_one_has_written_is_warned_of(tilewright, findings):
    finished = tilewright("emulate", "run", "--", findings, "15")
    assert (finished.stdout, finished.returncode) == ("no error\n", 0), finished.stderr
    assert "warning: uninitialised global read\n  copy of 256 bytes at global address 0x" in finished.stderr
    assert "0 errors, 1 warning;" in finished.stderr
    assert "more of this kind" not in finished.stderr
    assert "warning" not in tilewright("emulate", "run", "--fast", "--", findings, "15").stderr.replace("0 warnings", "")


def test_copies_past_the_end_of_host_memory_are_found(tilewright, findings):
    finished = tilewright("emulate", "run", "--", findings, "13")
    assert (finished.stdout, finished.returncode) == ("no error\n", 1), finished.stderr
    assert "2 errors" in finished.stderr
    begin = "by a copy in the default stream,"
    written = rf"write of 256 bytes at address 0x[0-9a-f]+ of the host {begin} 56 bytes of it past the end of a 200-byte block"
    assert re.search(written, finished.stderr), finished.stderr
    read = rf"read of 64 bytes at address 0x[0-9a-f]+ of the host {begin} 32 bytes of it past the end of a 40-byte block of "
    assert re.search(read + r"malloc\(\) or new, in which it begins at byte 8;", finished.stderr), finished.stderr


def test_memory_of_all_kinds_counts_as_used(tilewright, findings):
    finished = tilewright("emulate", "run", "--memory", "1", "--", findings, "16")
    out_of_memory = 2
    assert finished.stdout == f"0 {out_of_memory} {out_of_memory} 1 0 0\nno error\n", finished.stderr
    assert "cannot allocate 629145600 bytes: 444595712 of 1073741824 bytes are free" in finished.stderr


def test_a_handler_of_the_program_may_call_the_one_that_it_replaces(tilewright, findings):
    finished = tilewright("emulate", "run", "--", findings, "17")
    assert finished.stdout == "handler\n", finished.stderr
    assert "SIGSEGV" in finished.stderr or "Segmentation fault" in finished.stderr, finished.stderr


def test_memory_that_was_freed_and_memory_of_the_host_are_named(tilewright, findings):
    assert "(0 bytes into a 256-byte allocation that was freed)" in tilewright("emulate", "run", "--", findings, "9").stderr
    assert "(in memory of the host" in tilewright("emulate", "run", "--", findings, "5").stderr


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("reaches_program", [False, True])  # Ctrl-C in a terminal does
def test_an_interruption_keeps_what_was_found(tilewright, findings, tmp_path, number, code, reaches_program):
    report, sarif = tmp_path / "report.json", tmp_path / "report.sarif"
    files = ["--json", str(report), "--sarif", str(sarif)]
    command = [tilewright.program, "emulate", "run", *files, "--", findings, "8"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout.readline() == "launched\n"
    time.sleep(0.5)
    if reaches_program:
        os.killpg(running.pid, number)
    else:
        running.send_signal(number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == code, errors
    assert "out-of-bounds global access" in errors
    assert "note: the run was interrupted" in errors
    found = json.loads(report.read_text())
    assert (found["interrupted"], [each["kind"] for each in found["findings"]]) == (True, ["out_of_bounds_global"])
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "out_of_bounds_global"


def test_findings_can_be_suppressed(tilewright, findings, tmp_path):
    suppressions = tmp_path / "suppressions"
    suppressions.write_text("uninitialised_global_read findings.cu\n")
    finished = tilewright("emulate", "run", "--suppressions", str(suppressions), "--", findings, "2")
    assert finished.returncode == 0
    assert "1 suppressed" in finished.stderr


def test_the_exit_code_is_the_programs(tilewright):
    assert tilewright("emulate", "run", "--", "/bin/sh", "-c", "exit 7").returncode == 7
    assert tilewright("emulate", "run", "--", "/bin/sh", "-c", "kill -9 $$").returncode == 137


def test_races_between_streams_are_found(tilewright, tmp_path):
    program = compile_program(tmp_path, "stream_races.cu", "-lineinfo", "-arch=compute_90")
    names = subprocess.run(
        [tilewright.program, "emulate", "run", "--", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(names) == 45
    for name in names:
        report = tmp_path / "report.json"
        finished = tilewright("emulate", "run", "--json", str(report), "--", program, name)
        findings = json.loads(report.read_text())["findings"]
        found = [each["kind"] for each in findings]
        assert found == (["stream_race"] if name.startswith("race") else []), f"{name}: {finished.stderr}"
        assert finished.returncode == len(found), finished.stderr
    finished = tilewright("emulate", "run", "--", program, "race_of_an_early_start")
    assert "by kernel read(int const*, int*) before griddepcontrol.wait" in finished.stderr
    finished = tilewright("emulate", "run", "--", program, "race_of_kernels")
    wanted = (
        r"read of 1024 bytes at global address 0x[0-9a-f]+ by kernel read\(int const\*, int\*\) in stream 4, "
        r"not ordered after the write by kernel write\(int\*\) in stream 3"
    )
    assert re.search(wanted, finished.stderr), finished.stderr
    finished = tilewright("emulate", "run", "--", program, "race_of_a_read_by_the_host")
    assert re.search(
        r"read of memory at address 0x[0-9a-f]+ by the host, at stream_races\+0x[0-9a-f]+, not ordered after the write by "
        r"kernel write\(int\*\) in stream 3: the host has not waited for it",
        finished.stderr,
    ), finished.stderr
    assert "lineinfo" not in finished.stderr
    assert tilewright("emulate", "run", "--fast", "--", program, "race_of_a_read_by_the_host").returncode == 0


def test_separately_compiled_files_are_linked(tilewright, tmp_path):
    program = compile_program(tmp_path, "linked.cu", str(FOLDER / "linked_part.cu"), "-rdc=true", "-arch=compute_80")
    finished = tilewright("emulate", "run", "--", program)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "0 errors, 0 warnings" in finished.stderr


def test_a_missing_program_is_named(tilewright):
    finished = tilewright("emulate", "run", "--", "/nowhere/program")
    assert finished.returncode == 2
    assert re.search("/nowhere/program: cannot be started: No such file", finished.stderr)


def test_a_program_without_ptx_is_told_how_to_compile(tilewright, tmp_path):
    program = compile_program(tmp_path, "findings.cu", "-gencode", "arch=compute_80,code=sm_80")
    finished = tilewright("emulate", "run", "--", program, "0")
    assert finished.stdout == "no error\n" or "no kernel image" in finished.stdout
    assert "has no PTX that runs on sm_90a, but machine code for sm_80" in finished.stderr
    assert "-gencode arch=compute_90a,code=compute_90a" in finished.stderr


@pytest.fixture(scope="session")
def blas_api(tmp_path_factory):
    if not (Path(NVCC).resolve().parents[1] / "include" / "cublas_v2.h").exists():
        pytest.skip("no cuBLAS beside nvcc")
    options = ["-lineinfo", "-arch=compute_80", "-lcublas", "-lcublasLt"]
    return compile_program(tmp_path_factory.mktemp("blas"), "blas_api.cu", *options)


def test_a_program_uses_cublas(tilewright, blas_api):
    finished = tilewright("emulate", "run", "--", blas_api)
    assert (finished.stdout, finished.returncode) == ("all right\n", 0), finished.stderr
    assert "0 errors, 0 warnings" in finished.stderr
    assert "no version information" not in finished.stderr


@pytest.mark.parametrize(
    "number, code, text",
    [
        (1, 1, "cublasSgemm writes 32 bytes of C at global address"),
        (2, 1, "cublasSgemm reads C at global address"),
        (3, 0, "note: cublasSgemm returned CUBLAS_STATUS_INVALID_VALUE: ldc is 7, and must be at least 8"),
        (4, 0, "not emulated: cublasStrsv, called 1 time"),
        (5, 1, "by cublasSgemm in stream 4, not ordered after the write by cublasSgemm in stream 3"),
    ],
)
def test_mistakes_in_calls_of_cublas_are_named(tilewright, blas_api, number, code, text):
    finished = tilewright("emulate", "run", "--", blas_api, str(number))
    assert (finished.stdout, finished.returncode) == ("", code), finished.stderr
    assert text in finished.stderr
    assert "-lineinfo" not in finished.stderr


@pytest.fixture(scope="session")
def repeats(tmp_path_factory, blas_api):
    return compile_program(tmp_path_factory.mktemp("repeats"), "repeats.cu", "-arch=compute_80", "-lcublas")


@pytest.mark.parametrize(
    "loop, output, skipped",
    [
        (0, "5040\n", 8 * 3),
        (1, "50\n", 0),
        (2, "20\n", 0),
        (3, "5\n", 7 * 2),
        (4, "10\n", 8 * 3),
        (5, "10\n", 0),
        (6, "14\n", 0),
        (7, "6\n", 8),
        (8, "5\n", 7 * 2),
        (9, 3 * "print\n", 0),
    ],
)
def test_launches_that_would_change_nothing_can_be_left_out(tilewright, repeats, tmp_path, loop, output, skipped):
    report = tmp_path / "report.json"
    assert tilewright("emulate", "run", "--", repeats, str(loop)).stdout == output
    finished = tilewright("emulate", "run", "--skip-repeats", "--json", str(report), "--", repeats, str(loop))
    assert (finished.stdout, finished.returncode) == (output, 0), finished.stderr
    assert json.loads(report.read_text())["skipped"] == skipped
    assert (f"note: {skipped} launches or fills would only have repeated others" in finished.stderr) == (skipped != 0)


def test_skipping_needs_the_checks_of_global_memory(tilewright):
    refused = tilewright("emulate", "run", "--skip-repeats", "--fast", "--", "/bin/true")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--fast" in refused.stderr
