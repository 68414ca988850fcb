"""Compiles public CUDA programs, runs them with `tilewright emulate run`, and writes a table of the outcomes.

    git clone https://github.com/NVIDIA/cuda-samples
    git clone https://github.com/zjin-lcf/HeCBench
    git clone https://github.com/karpathy/llm.c
    python3 tests/emulation_trial/trial.py --command build/bin/tilewright \\
        --repository cuda-samples=cuda-samples --repository HeCBench=HeCBench --repository llm.c=llm.c

`--binaries FOLDER` keeps the compiled programs, and uses those that are there.

programs.txt lists the programs, one a line: repository | folder | sources | nvcc options | arguments | pattern. A program
passes if it exits with 0 and its output matches the pattern, which is what it prints after it has checked its results.
kernels.txt lists the kernels of llm.c, fast.cu, SGEMM_CUDA and CuTe's tutorials in the same way; it is run with
`--programs tests/emulation_trial/kernels.txt --option=--repeats=1`, as llm.c's programs launch each kernel 100 to 2000
times, and needs clones of these repositories, too:

    git clone https://github.com/pranjalssh/fast.cu
    git clone https://github.com/siboehm/SGEMM_CUDA
    git clone https://github.com/NVIDIA/cutlass

`{trial}` is the folder of this file: the main programs of fast.cu, SGEMM_CUDA and CuTe's tutorials take matrices that are
too large for the emulator, or check nothing, so that programs in this folder call their kernels, with integers.
Sources of these repositories are not part of Tilewright.
"""

import argparse
import hashlib
import json
import math
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    repository: str
    folder: str
    sources: list[str]
    options: list[str]
    arguments: list[str]
    pattern: str

    @property
    def name(self) -> str:
        name = self.folder.rsplit("/", 1)[-1]
        first = Path(self.sources[0]).stem
        tutorials = [option.split('"')[1] for option in self.options if option.startswith("-DTUTORIAL=")]
        if tutorials:
            return f"{name}/{tutorials[0]}"
        return name if self.repository in ("cuda-samples", "HeCBench") else f"{name}/{first}".removeprefix("./")

    @property
    def binary(self) -> str:
        """A name for the compiled program, which differs for other sources and options."""
        digest = hashlib.sha256(" ".join([self.folder, *self.sources, *self.options]).encode()).hexdigest()
        return f"{self.name.replace('/', '-')}-{digest[:8]}"


@dataclass
class Outcome:
    program: Program
    outcome: str
    seconds: float
    cpu_seconds: float  # of the program and its children, user and system
    findings: list[str]


def read_programs(path: Path) -> list[Program]:
    programs = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        repository, folder, sources, options, arguments, pattern = (part.strip() for part in line.split("|", 5))
        options = options.replace("{trial}", str(path.parent))
        sources = sources.replace("{trial}", str(path.parent))
        programs.append(Program(repository, folder, sources.split(), options.split(), arguments.split(), pattern))
    return programs


def compile_program(program: Program, root: Path, nvcc: str, binary: Path) -> str:
    """Returns an error, or nothing."""
    if binary.exists():
        return ""
    includes = ["-I", str(root / "Common")] if program.repository == "cuda-samples" else []
    has_target = any(option.startswith(("-arch", "-gencode")) for option in program.options)
    target = [] if has_target else ["-arch=compute_80"]
    compiled = subprocess.run(
        [nvcc, "-cudart", "shared", "-lineinfo", "-O2", "-std=c++17", *target, *includes,
         *program.options, *program.sources, "-o", str(binary)],
        cwd=root / program.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if compiled.returncode == 0:
        return ""
    lines = (compiled.stderr or compiled.stdout).strip().splitlines() or [""]
    error = next((line for line in lines if "error" in line), lines[-1])
    return f"does not compile: {error[-120:]}"


def run(program: Program, root: Path, binary: Path, command: str, timeout: float, extra: list[str]) -> Outcome:
    with tempfile.TemporaryDirectory() as reports:
        report = f"{reports}/report.json"

        def limit_cpu_time() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(timeout), math.ceil(timeout) + 5))

        begin = time.monotonic()
        cpu_begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            ran = subprocess.run(
                [command, "emulate", "run", *extra, "--json", report, "--", str(binary), *program.arguments],
                cwd=root / program.folder, capture_output=True, text=True, timeout=20 * timeout, check=False,
                errors="replace", preexec_fn=limit_cpu_time,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(program, f"did not end in {20 * timeout:.0f} s", 20 * timeout, 0, [])
        seconds = time.monotonic() - begin
        cpu_end = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_seconds = cpu_end.ru_utime - cpu_begin.ru_utime + cpu_end.ru_stime - cpu_begin.ru_stime
        findings: list[str] = []
        status = ""
        if Path(report).exists():
            data = json.loads(Path(report).read_text())
            status = data["status"]
            if f"signal {signal.SIGXCPU.value}" in status:
                return Outcome(program, f"did not end in {timeout:.0f} CPU seconds", seconds, cpu_seconds, [])
            for finding in data["findings"]:
                place = f"{Path(finding['file']).name}:{finding['line']}" if "file" in finding else "PTX"
                detail = f" ({finding['detail'][:90]})" if finding["kind"] == "unsupported_instruction" else ""
                findings.append(f"{finding['severity']} {finding['kind']} at {place}{detail}")
            findings += [f"not emulated: {name}" for name in data["unsupported"]]
            findings += [f"note: {note[:120]}" for note in data["notes"]]
        right = re.search(program.pattern, ran.stdout + ran.stderr, re.MULTILINE) is not None
        outcome = "right" if right and status.endswith("code 0") else f"{'right' if right else 'wrong'}, {status}"
        if not right and not findings:
            findings.append("last line: " + ((ran.stdout.strip().splitlines() or [""])[-1])[:120])
        return Outcome(program, outcome, seconds, cpu_seconds, findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/bin/tilewright")
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--repository", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--only", default="", help="a pattern of the names to run")
    parser.add_argument("--timeout", type=float, default=120, help="CPU seconds of a program")
    parser.add_argument("--option", action="append", default=[], help="an option of emulate run, such as --fast")
    parser.add_argument("--binaries", type=Path, help="a folder for the compiled programs")
    parser.add_argument("--programs", type=Path, default=Path(__file__).resolve().with_name("programs.txt"))
    options = parser.parse_args()
    command = str(Path(options.command).resolve())
    roots = dict(each.split("=", 1) for each in options.repository)
    print("| repository | program | arguments | seconds | CPU seconds | outcome | findings |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        binaries = (options.binaries or Path(temporary)).resolve()
        binaries.mkdir(parents=True, exist_ok=True)
        for program in read_programs(options.programs.resolve()):
            if program.repository not in roots or not re.search(options.only, program.name):
                continue
            root = Path(roots[program.repository]).resolve()
            binary = binaries / program.binary
            error = compile_program(program, root, options.nvcc, binary)
            if error:
                outcome = Outcome(program, error, 0, 0, [])
            else:
                outcome = run(program, root, binary, command, options.timeout, options.option)
            arguments = " ".join(program.arguments)
            found = "; ".join(outcome.findings) or "none"
            print(
                f"| {program.repository} | {program.name} | {arguments} | {outcome.seconds:.1f} | "
                f"{outcome.cpu_seconds:.1f} | {outcome.outcome} | {found} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
