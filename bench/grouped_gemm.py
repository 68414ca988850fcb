#!/usr/bin/env python3
"""Times grouped GEMMs against torch._grouped_mm, cuBLAS's grouped entry and a loop of torch.mm on the shapes of
mixture-of-experts layers.

  bench/grouped_gemm.py --json grouped.json [--only 64x128 ...] [--all] [--candidates 8] [--rounds 15] [--expect]

This needs a GPU of compute capability 9.0, torch 2.8 or newer, and the package tilewright. Our contender is the kernel
that the ranking puts first, without tuning; --candidates also times the kernels behind it. "dense" is one torch.mm of
the same rows with one matrix B, which is a bound and no contender. cuBLAS and the loop have the sizes on the host. Each contender is captured in a CUDA graph, so that
the host's time is not measured, and the graphs are replayed in random order in each round; times are medians.

Before, our results and those of cuBLAS are compared bit for bit with products in float32 of integers, and ours once
more after the sizes were changed in device memory and the captured graph was replayed.
"""

import argparse
import dataclasses
import datetime
import json
import math
import pathlib
import random
import statistics
import sys

import torch
from cublas_grouped import CublasGrouped
from graph_timing import captured, samples_of

import tilewright

REFERENCES = {"torch._grouped_mm": "torch", "cublas": "cublas", "loop": "loop", "dense": "dense"}  # and in the table
INTEGERS = 2  # the largest magnitude of integer inputs, for which every sum is exact in float32


def uniform(rows):
    return lambda groups: [rows] * groups


def zipf(total):
    """Sizes in proportion to 1/1, 1/2, 1/3, ... in random order; the largest group has what the rounding leaves."""

    def sizes(groups):
        whole = sum(1.0 / (i + 1) for i in range(groups))
        parts = [int(total / whole / (i + 1)) for i in range(groups)]
        parts[0] += total - sum(parts)
        random.Random(1).shuffle(parts)
        return parts

    return sizes


@dataclasses.dataclass(frozen=True)
class Case:
    """A grouped product. `kind` is "forward" (rows are stacked), "input_gradient" (the same, B contiguous along n) or
    "weight_gradient" (k is stacked: n x k is the shape of each result, and its product is over the rows)."""

    id: str
    kind: str
    groups: int
    sizes_of: object
    n: int
    k: int

    def sizes(self):
        return self.sizes_of(self.groups)

    def operations(self):
        return 2.0 * sum(self.sizes()) * self.n * self.k

    def describe(self):
        sizes = self.sizes()
        shape = {"groups": self.groups, "rows": sum(sizes), "n": self.n, "k": self.k}
        return {**shape, "largest": max(sizes), "empty": sizes.count(0)}

    def moved_bytes(self):
        """Each operand of groups that are not empty, once."""
        rows, used = sum(self.sizes()), sum(size > 0 for size in self.sizes())
        return 2 * (rows * (self.n + self.k) + used * self.n * self.k)


CASES = [
    Case("8x512", "forward", 8, uniform(512), 14336, 4096),
    Case("64x128", "forward", 64, uniform(128), 4096, 7168),
    Case("256x16", "forward", 256, uniform(16), 4096, 7168),
    Case("64-zipf-8192", "forward", 64, zipf(8192), 2048, 7168),
    Case("256-zipf-7024", "forward", 256, zipf(7024), 7168, 2048),
    Case("32-zipf-1936", "forward", 32, zipf(1936), 5760, 2880),
    Case("4x8192", "forward", 4, uniform(8192), 7168, 3072),
]
MORE_CASES = [
    Case("128-zipf-65536", "forward", 128, zipf(65536), 1536, 2048),
    Case("dgrad-8x512", "input_gradient", 8, uniform(512), 4096, 14336),
    Case("dgrad-128-zipf-65536", "input_gradient", 128, zipf(65536), 2048, 1536),
    Case("wgrad-8x1024", "weight_gradient", 8, uniform(1024), 14336, 4096),
    Case("wgrad-128-zipf-65536", "weight_gradient", 128, zipf(65536), 2048, 1536),
]


@dataclasses.dataclass(frozen=True)
class ListCase:
    """A list of problems, each with extents and matrices of its own: 8 * i + 24 for random i below `most`."""

    id: str
    groups: int
    most: int
    kind: str = "list"

    def extents(self):
        generator = random.Random(2080)
        return [tuple(8 * generator.randrange(self.most) + 24 for _ in "mnk") for _ in range(self.groups)]

    def operations(self):
        return sum(2.0 * m * n * k for m, n, k in self.extents())

    def moved_bytes(self):
        return sum(2 * (m * k + k * n + m * n) for m, n, k in self.extents())

    def describe(self):
        return {"groups": self.groups, "extents": self.extents()}


LIST_CASES = [ListCase("list-24", 24, 64), ListCase("list-64-large", 64, 256)]


class ListOperands:
    """Matrices of a ListCase in bf16, and the arguments of our call."""

    def __init__(self, case, device="cuda"):
        self.case = case
        self.sizes = [m for m, _, _ in case.extents()]
        made = {"device": device, "dtype": torch.bfloat16}
        self.a = [torch.empty(m, k, **made) for m, _, k in case.extents()]
        self.b = [torch.empty(n, k, **made).mT for _, n, k in case.extents()]
        self.out = [torch.empty(m, n, **made) for m, n, _ in case.extents()]
        self.args = tilewright.GroupedGemmArguments(self.a, self.b, self.out)

    def fill_integers(self):
        for each in self.a + self.b:
            each.random_(-INTEGERS, INTEGERS + 1)

    def fill_normal(self):
        for each in self.a + self.b:
            each.normal_()

    def clear(self):
        for each in self.out:
            each.fill_(math.nan)

    def group(self, index):
        return self.a[index], self.b[index], self.out[index]


class Operands:
    """Matrices in bf16 on a device, the ends of the groups, and the arguments of our call."""

    def __init__(self, case, device="cuda", expects=False):
        self.case = case
        rows, n, k = sum(case.sizes()), case.n, case.k
        made = {"device": device, "dtype": torch.bfloat16}
        if case.kind == "weight_gradient":
            self.stored = [torch.empty(rows, k, **made), torch.empty(rows, n, **made)]
            self.a, self.b = self.stored[0].mT, self.stored[1]
            self.out = torch.empty(case.groups, k, n, **made)
        else:
            is_forward = case.kind == "forward"
            weights = torch.empty(case.groups, *((n, k) if is_forward else (k, n)), **made)
            self.stored = [torch.empty(rows, k, **made), weights]
            self.a, self.b = self.stored[0], weights.mT if is_forward else weights
            self.out = torch.empty(rows, n, **made)
        self.offsets = torch.empty(case.groups, dtype=torch.int32, device=device)
        self.set_sizes(case.sizes())
        expected = case.sizes() if expects else None
        self.args = tilewright.GroupedGemmArguments(
            self.a, self.b, self.out, offsets=self.offsets, expected_sizes=expected
        )

    def set_sizes(self, sizes):
        self.sizes = sizes
        self.offsets.copy_(torch.tensor(sizes).cumsum(0).to(torch.int32))

    def fill_integers(self):
        for each in self.stored:
            each.random_(-INTEGERS, INTEGERS + 1)

    def fill_normal(self):
        for each in self.stored:
            each.normal_()

    def clear(self):
        self.out.fill_(math.nan)

    def group(self, index):
        """A, B and D of a group, as views."""
        begin = sum(self.sizes[:index])
        rows = slice(begin, begin + self.sizes[index])
        if self.case.kind == "weight_gradient":
            return self.a[:, rows], self.b[rows], self.out[index]
        return self.a[rows], self.b[index], self.out[rows]


def operands_of(case, expects, device="cuda"):
    return ListOperands(case, device) if case.kind == "list" else Operands(case, device, expects)


def disagreement(operands):
    """Describes the first wrong element of `out`; empty if every group equals the product of integers in float32."""
    for index in range(operands.case.groups):
        a, b, d = operands.group(index)
        expected = (a.float() @ b.float()).to(d.dtype)
        wrong = (d != expected) | d.isnan()
        if wrong.any():
            row, column = wrong.nonzero()[0].tolist()
            return f"group {index}: out[{row},{column}] is {d[row, column].item()}, not {expected[row, column].item()}"
    return ""


def other_sizes(sizes):
    """Sizes with the same sum: some groups empty, tails of a few rows, and one large group."""
    changed = [0 if i % 3 == 1 else max(0, size - i % 7) for i, size in enumerate(sizes)]
    changed[len(changed) // 2] += sum(sizes) - sum(changed)
    return changed


def checked(operands, prepared):
    """Why our results are wrong; empty if they are right, also after the sizes of a captured graph changed."""
    operands.fill_integers()
    graph = captured(prepared.run, 1)
    own = operands.sizes
    is_list = operands.case.kind == "list"  # whose sizes are known to the host
    for what, sizes in (("", own), *(() if is_list else (("with other sizes: ", other_sizes(own)), ("again: ", own)))):
        if not is_list:
            operands.set_sizes(sizes)
        operands.clear()
        graph.replay()
        torch.cuda.synchronize()
        wrong = disagreement(operands)
        if wrong:
            return what + wrong
    return ""


def cublas_of(operands):
    """cuBLAS's grouped entry for the sizes of now; None where this cuBLAS lacks it."""
    groups = [operands.group(index) for index in range(operands.case.groups)]
    try:
        return CublasGrouped(*zip(*groups, strict=True))
    except RuntimeError as error:
        print(f"cublas: {error}", file=sys.stderr)
        return None


def check_cublas(operands):
    """Raises an exception if cuBLAS computes something else: then the comparison would mean nothing."""
    cublas = cublas_of(operands)
    if cublas is None:
        return
    operands.clear()
    cublas.run()
    torch.cuda.synchronize()
    wrong = disagreement(operands)
    if wrong:
        raise AssertionError(f"cublas: {wrong}")


def contenders_of(operands, kernels):
    """The calls to time, by name."""
    case = operands.case
    triples = [operands.group(index) for index in range(case.groups) if operands.sizes[index] > 0]

    def loop():
        for a, b, d in triples:
            torch.mm(a, b, out=d)

    calls = {}
    for place, kernel in enumerate(kernels):
        calls["tilewright" if place == 0 else f"candidate {place}"] = tilewright.prepare(operands.args, kernel).run
    if case.kind != "list":
        calls["torch._grouped_mm"] = lambda: torch._grouped_mm(operands.a, operands.b, offs=operands.offsets)
    calls["loop"] = loop
    cublas = cublas_of(operands)
    if cublas is not None:
        calls["cublas"] = cublas.run
    if case.kind not in ("weight_gradient", "list"):
        calls["dense"] = lambda: torch.mm(operands.a, operands.b[0], out=operands.out)
    return calls


def rows_of(case, samples, kernels):
    medians = {name: statistics.median(values) for name, values in samples.items()}
    rows = []
    for name, values in samples.items():
        us = medians[name]
        row = {
            "contender": name,
            "median_us": us,
            "mad_us": statistics.median(abs(value - us) for value in values),
            "samples": len(values),
            "tera_ops": 1e-6 * case.operations() / us,
            "tera_bytes_per_s": 1e-6 * case.moved_bytes() / us,
        }
        if name == "tilewright" or name.startswith("candidate"):
            kernel = kernels[0 if name == "tilewright" else int(name.split()[1])]
            row["kernel"], row["estimate_us"] = kernel
        for reference in REFERENCES:
            if reference in medians:
                row[f"ratio_to_{reference}"] = medians[reference] / us
        rows.append(row)
    return rows


def measure(case, options):
    """The JSON entry of a case. A failure is recorded in it, so that the other cases still run."""
    entry = {"id": case.id, "kind": case.kind, **case.describe(), "missing": "", "results": []}
    try:
        operands = operands_of(case, options.expect)
        found = tilewright.find_kernels(operands.args)
        kernels = found[: max(1, options.candidates)]
        entry["missing"] = checked(operands, tilewright.prepare(operands.args, kernels[0]))
        if entry["missing"]:
            entry["missing"] = "wrong: " + entry["missing"]
            return entry
        check_cublas(operands)
        operands.fill_normal()
        samples, entry["unmeasured"] = samples_of(contenders_of(operands, kernels), options.rounds)
        named = [(kernel.name, found.estimate_us(place)) for place, kernel in enumerate(kernels)]
        entry["results"] = rows_of(case, samples, named)
    except Exception as error:  # an error of the compiler or the driver, or out of memory
        entry["missing"] = f"failed: {error}"
    return entry


def line(entry):
    """The line that is printed for an entry."""
    if entry["missing"]:
        return f"{entry['id']:<22} missing: {entry['missing']}"
    by_name = {row["contender"]: row for row in entry["results"]}
    ours = by_name["tilewright"]
    best = min(row["median_us"] for name, row in by_name.items() if "kernel" in row)

    def ratio(name):
        return f"{ours['ratio_to_' + name]:8.3f}" if f"ratio_to_{name}" in ours else "       -"

    return (
        f"{entry['id']:<22}{ours['median_us']:9.1f}{ours['tera_ops']:9.1f}{ours['tera_bytes_per_s']:7.2f}"
        f"{''.join(map(ratio, REFERENCES))}{ours['median_us'] / best:8.3f}"
        f"{ours['median_us'] / ours['estimate_us']:8.2f}  {ours['kernel']}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file for the figures")
    parser.add_argument("--only", action="append", help="measure only the case with this id; repeatable")
    parser.add_argument("--all", action="store_true", help="also measure gradients, further sizes and lists")
    parser.add_argument("--candidates", type=int, default=1, help="how many of our kernels are timed")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--expect", action="store_true", help="tell our ranking the sizes of the groups (expected_sizes)")
    options = parser.parse_args()

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    chosen = [*CASES, *(MORE_CASES + LIST_CASES if options.all or options.only else [])]
    chosen = [case for case in chosen if not options.only or case.id in options.only]
    setting = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "tilewright": tilewright.__version__,
    }
    precompile(chosen, options)
    columns = [*REFERENCES.values(), "regret", "/pred"]
    print(f"{setting['gpu']}, torch {setting['torch']}; ratios are another's time divided by ours")
    print(f"{'case':<22}{'us':>9}{'TFLOP/s':>9}{'TB/s':>7}" + "".join(f"{name:>8}" for name in columns) + "  kernel")
    entries = []
    for case in chosen:
        entries.append(measure(case, options))
        print(line(entries[-1]), flush=True)
        options.json.write_text(json.dumps({"setting": setting, "cases": entries}, indent=2) + "\n")
        torch.cuda.empty_cache()
    ours = [row for entry in entries for row in entry["results"] if row["contender"] == "tilewright"]
    ratios = [row["ratio_to_torch._grouped_mm"] for row in ours if "ratio_to_torch._grouped_mm" in row]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(each) for each in ratios))
        print(f"{len(ratios)} ratios to torch._grouped_mm: geometric mean {mean:.3f}, least {min(ratios):.3f}")


def precompile(cases, options):
    """Compiles the kernels of all cases in parallel. Only shapes are needed, so that no memory is taken."""
    kernels = {}
    for case in cases:
        operands = operands_of(case, options.expect, device="meta")
        target = torch.cuda.get_device_capability()
        found = tilewright.find_kernels(operands.args, target=10 * target[0] + target[1])
        kernels |= {kernel.name: kernel for kernel in found[: max(1, options.candidates)]}
    tilewright.compile_kernels(list(kernels.values()))


if __name__ == "__main__":
    main()
