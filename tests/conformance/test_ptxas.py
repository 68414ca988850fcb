"""What ptxas makes of the kernels that are ranked first on Hopper: no spills, no serialised wgmma, no more registers
than the plan counts on."""

import itertools
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

BEST = 3  # of each problem
# One large problem of whole tiles and whole vectors of every type: what is timed, and what nothing may slow down.
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
# The register file of an SM, the unit in which a thread's share of it grows, and the most that a thread can address:
# CUDA C++ Programming Guide, "Compute Capabilities".
REGISTERS_OF_AN_SM, REGISTER_UNIT, MOST_REGISTERS = 65536, 8, 255


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


def distinct_kernels(tilewright, case):
    """(name, arguments of its problem, text) of what `find` ranks first. A kernel that is another one but for its
    name comes once."""
    seen = set()
    for layouts in LAYOUTS:
        problem = (*case, *layouts, "--target", "sm_90a")
        for kernel in json.loads(output_of(tilewright, "find", *problem, "--json"))["kernels"][:BEST]:
            text = output_of(tilewright, "emit", *problem, "--kernel", kernel["name"])
            anonymous = text.replace(kernel["name"], "kernel")
            if anonymous not in seen:
                seen.add(anonymous)
                yield kernel["name"], problem, text


def register_bound(text):
    """What __launch_bounds__(threads, CTAs of an SM) leaves to a thread; without a number of CTAs it is one."""
    threads, ctas = map(int, re.search(r"__launch_bounds__\((\d+)(?:, (\d+))?\)", text).groups("1"))
    share = REGISTERS_OF_AN_SM // (threads * ctas)
    return min(share // REGISTER_UNIT * REGISTER_UNIT, MOST_REGISTERS)


def complaints(log, bound):
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if not registers or not spills:
        yield f"ptxas -v says nothing of registers and spills: {log}"
        return
    if spills.groups() != ("0", "0"):
        yield spills.group()
    if int(registers.group(1)) > bound:
        yield f"{registers.group(1)} registers, the plan has {bound}"
    for warning in re.findall(r".*\(C75\d\d\).*", log):  # wgmma that ptxas had to serialise, and its kin
        yield warning.strip()


@pytest.mark.parametrize("case", CASES)
def test_what_is_ranked_first_on_hopper(tilewright, ptxas, tmp_path, case):
    ptx = tmp_path / "kernel.ptx"
    count = 0
    found = []
    for name, problem, text in distinct_kernels(tilewright, CASES[case]):
        ptx.write_text(output_of(tilewright, "emit", *problem, "--kernel", name, "--ptx"))
        command = [ptxas, "-arch=sm_90a", "-v", str(ptx), "-o", "/dev/null"]
        assembled = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert assembled.returncode == 0, f"{name}: {assembled.stderr}"
        found += [f"{name}: {says}" for says in complaints(assembled.stderr + assembled.stdout, register_bound(text))]
        count += 1
    assert count > 0, "nothing is offered"
    assert not found, f"{len(found)} complaints about {count} kernels:\n" + "\n".join(found)
