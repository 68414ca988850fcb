"""ptxas assembles the kernels that are ranked first on Hopper without spills, without serialised wgmma, and with no
more registers than the plan assumes. With --every-kernel the same holds for all kernels that are offered for the problems of
bench/problems/hopper.txt, without C and with it; those without C took 9 minutes on two cores (-n 2). -s prints their
number. From the root of the repository, with .venv/bin/python:

  -m pytest -s -p no:cacheprovider --confcutdir tests tests/conformance/test_ptxas.py -k offered --every-kernel
"""

import itertools
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

BEST = 3  # kernels of each problem, best-ranked first
# One large problem of each type, without residue tiles and with full vectors: the kernels that benchmarks time.
EXTENTS = ("--m", 8192, "--n", 8192, "--k", 8192)
TYPES = {
    "f16": ("--dtype", "f16"),
    "f16_in_f16": ("--dtype", "f16", "--accumulator", "f16"),
    "bf16": ("--dtype", "bf16"),
    "bf16_to_f32": ("--dtype", "bf16", "--out-dtype", "f32"),
    "tf32": ("--dtype", "tf32"),
    "s8": ("--dtype", "s8"),
    "e4m3_to_bf16": ("--dtype", "e4m3", "--out-dtype", "bf16"),
    "e4m3_fast": ("--dtype", "e4m3", "--out-dtype", "bf16", "--math", "multiply_add_fast_accumulate"),
    "f64": ("--dtype", "f64"),
    "f32_fast_f32": ("--dtype", "f32", "--math", "multiply_add_fast_f32"),
}
CASES = {name: (*EXTENTS, *types) for name, types in TYPES.items()}
LAYOUTS = [
    tuple(itertools.compress(("--transpose-a", "--transpose-b"), chosen))
    for chosen in itertools.product((False, True), repeat=2)
]
WITHOUT_AND_WITH_C = ((), ("--beta", 1))  # a kernel for a problem without C has no code that reads C
# The options of the command for the fields of a problem file. Layouts that are not row-major are flags.
OPTIONS = {"out": "--out-dtype", "acc": "--accumulator"}
NOT_OPTIONS = ("id", "class", "a", "b", "d")
OFFERED = set()  # texts of the kernels that were assembled for an earlier class
# Registers of an SM, the allocation granularity per thread, and the maximum per thread: CUDA C++ Programming Guide,
# "Compute Capabilities".
REGISTERS_OF_AN_SM, REGISTER_UNIT, MOST_REGISTERS = 65536, 8, 255


def arguments_of(line):
    """Parses a line of a problem file to (class of the problem, arguments of the command)."""
    fields = dict(field.split("=") for field in line.split())
    options = [(OPTIONS.get(key, f"--{key}"), value) for key, value in fields.items() if key not in NOT_OPTIONS]
    flags = [f"--transpose-{operand}" for operand in ("a", "b", "d") if fields.get(operand) == "col"]
    return fields["class"], (*itertools.chain.from_iterable(options), *flags, "--target", "sm_90a")


def problems_by_class(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    by_class = {}
    for name, arguments in map(arguments_of, filter(None, lines)):
        by_class.setdefault(name, []).append(arguments)
    return by_class


HOPPER = problems_by_class(ROOT / "bench/problems/hopper.txt")


@pytest.fixture(scope="session")
def ptxas():
    wheels = (ROOT / ".venv/lib").glob("python3*/site-packages/nvidia/cu13/bin/ptxas")
    found = shutil.which("ptxas") or next((str(path) for path in (pathlib.Path("/usr/local/cuda/bin/ptxas"), *wheels)
                                           if path.exists()), None)
    if found is None:
        pytest.skip("no ptxas")
    return found


def output_of(tilewright, *arguments):
    finished = tilewright(*arguments)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def distinct_kernels(tilewright, problems, best, seen):
    """Yields (name, arguments of its problem, text) of the `best` kernels that `find` ranks first for each problem, or
    of all if `best` is None. Kernels whose texts differ only in the name come once, and not at all if `seen` has them."""
    for problem in problems:
        for kernel in json.loads(output_of(tilewright, "find", *problem, "--json"))["kernels"][:best]:
            text = output_of(tilewright, "emit", *problem, "--kernel", kernel["name"])
            anonymous = text.replace(kernel["name"], "kernel")
            if anonymous not in seen:
                seen.add(anonymous)
                yield kernel["name"], problem, text


def register_bound(text):
    """The registers per thread that __launch_bounds__(threads, CTAs per SM) allows; CTAs per SM is 1 unless given."""
    threads, ctas = map(int, re.search(r"__launch_bounds__\((\d+)(?:, (\d+))?\)", text).groups("1"))
    share = REGISTERS_OF_AN_SM // (threads * ctas)
    return min(share // REGISTER_UNIT * REGISTER_UNIT, MOST_REGISTERS)


def complaints(log, bound):
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not registers or not spills:
        yield f"ptxas -v does not report registers and spills: {log}"
        return
    if spills.groups() != ("0", "0"):
        yield spills.group()
    if int(registers.group(1)) > bound:
        yield f"{registers.group(1)} registers, but the plan allows {bound}"
    for warning in re.findall(r".*\(C75\d\d\).*", log):  # C75xx: warnings about wgmma, such as serialised instructions
        yield warning.strip()


def assemble(tilewright, ptxas, ptx, kernels):
    """Assembles the kernels; fails if ptxas reports spills, too many registers or serialised wgmma for any of them."""
    count = 0
    found = []
    for name, problem, text in kernels:
        ptx.write_text(output_of(tilewright, "emit", *problem, "--kernel", name, "--ptx"))
        command = [ptxas, "-arch=sm_90a", "-v", str(ptx), "-o", "/dev/null"]
        assembled = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert assembled.returncode == 0, f"{name}: {assembled.stderr}"
        found += [f"{name}: {says}" for says in complaints(assembled.stderr + assembled.stdout, register_bound(text))]
        count += 1
    print(f"{count} kernels, {len(found)} complaints")
    assert count > 0, "no kernel is offered"
    assert not found, f"{len(found)} complaints about {count} kernels:\n" + "\n".join(found)


@pytest.mark.parametrize("case", CASES)
def test_best_ranked_kernels_on_hopper(tilewright, ptxas, tmp_path, case):
    problems = [(*CASES[case], *layouts, *c, "--target", "sm_90a") for layouts in LAYOUTS for c in WITHOUT_AND_WITH_C]
    assemble(tilewright, ptxas, tmp_path / "kernel.ptx", distinct_kernels(tilewright, problems, BEST, set()))


@pytest.mark.parametrize("problem_class", HOPPER)
def test_every_offered_kernel_on_hopper(request, tilewright, ptxas, tmp_path, problem_class):
    if not request.config.getoption("--every-kernel"):
        pytest.skip("takes minutes: runs only with --every-kernel")
    problems = [(*problem, *c) for problem in HOPPER[problem_class] for c in WITHOUT_AND_WITH_C]
    kernels = distinct_kernels(tilewright, problems, None, OFFERED)
    assemble(tilewright, ptxas, tmp_path / "kernel.ptx", kernels)
