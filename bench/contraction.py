#!/usr/bin/env python3
"""Times contractions against torch.einsum on the 48 contractions of TCCG and a few of networks.

  bench/contraction.py --json contraction.json [--types f32 bf16] [--only abcijk-ijma-mkbc ...] [--candidates 4]

This needs a GPU of compute capability 9.0, torch, and the package tilewright. A contraction of TCCG is written C-A-B, and
the first mode of each tensor is contiguous (springer13/tccg): its largest tensor has 200 MiB of f32, the modes that come
first in a tensor have a multiple of 24 elements, the others one of 4, and the j of the products of a tensor and a matrix
has 24. Our contender is the kernel that the ranking puts first, without tuning; --candidates also times the kernels behind
it. `direct` is the first kernel that copies no operand, and `copies` the first one that does, if the ranking has both.
`einsum` is tilewright.torch.einsum, which may choose the order of modes of its result, as torch.einsum does; the other
contenders store D with its first mode contiguous. torch multiplies f32 without tf32. Each contender is captured in a CUDA
graph, and the graphs are replayed in random order in each round; times are medians.

--quick measures 14 contractions that stand for all, one round.

Before, our result on integers is compared with that of torch.einsum in f32, bit for bit: every sum is exact there.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import math
import pathlib
import random
import statistics
import sys

import torch
from graph_timing import samples_of

import tilewright
import tilewright.torch
from tilewright.contraction import _order_of_result

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
TENSOR_TIMES_MATRIX = (
    "abj-bka-kj ajb-kba-jk abjc-cbka-kj ajbc-ckba-jk abjc-kbac-jk abjcd-dkbac-jk adbjc-cbdka-kj ajbdc-ckbad-jk"
)
CHANGE_OF_BASIS = "aqrs-pa-pqrs abrs-qb-aqrs abcs-rc-abrs"
CCSD = (
    "ij-ik-kj ij-ikl-ljk ij-kil-lkj ijk-ikl-lj ijk-il-jlk ijk-ilk-jl ijk-ilk-lj ijk-ilmk-mjl ijkl-imjn-lnkm "
    "ijkl-imkn-jnlm ijkl-imln-jnkm ijkl-imjn-nlmk ijkl-imkn-njml ijkl-imln-njmk ijkl-imnj-nlkm ijkl-imnk-njml "
    "ijkl-minj-nlmk ijkl-minl-njmk ijkl-mink-jnlm"
)
CCSD_T = (
    "abcijk-ijma-mkbc abcijk-ikma-mjbc abcijk-jkma-mibc abcijk-ijmb-mkac abcijk-ijmc-mkab abcijk-ikmb-mjac "
    "abcijk-ikmc-mjab abcijk-jkmb-miac abcijk-jkmc-miab abcijk-eiab-jkec abcijk-eiac-jkeb abcijk-ejab-ikec "
    "abcijk-ejac-ikeb abcijk-ekab-ijec abcijk-ekac-ijeb abcijk-eibc-jkea abcijk-ejbc-ikea abcijk-ekbc-ijea"
)
# The subset that --quick measures: in each group, contractions whose operands are contiguous along different modes.
QUICK = (
    "abj-bka-kj abjc-cbka-kj ajbdc-ckbad-jk aqrs-pa-pqrs ij-kil-lkj ijk-ilmk-mjl ijkl-imjn-lnkm ijkl-imjn-nlmk "
    "ijkl-minj-nlmk abcijk-ijma-mkbc abcijk-ijmb-mkac abcijk-eiab-jkec bqhd,bkhd->bhqk bhqk,bkhd->bqhd"
)
LARGEST_ELEMENTS = 200 * 2**20 // 4
FIRST_MULTIPLE, OTHER_MULTIPLE, EXTENT_OF_J = 24, 4, 24
# Attention and layers with several modes, in row-major tensors: expression and extents.
NETWORKS = {
    "bqhd,bkhd->bhqk": {"b": 8, "q": 1024, "k": 1024, "h": 16, "d": 64},
    "bhqk,bkhd->bqhd": {"b": 8, "q": 1024, "k": 1024, "h": 16, "d": 64},
    "btc,chd->bthd": {"b": 8, "t": 2048, "c": 2048, "h": 16, "d": 128},
    "bthd,hdc->btc": {"b": 8, "t": 2048, "c": 2048, "h": 16, "d": 128},
    "bcxy,ck->bkxy": {"b": 32, "c": 256, "x": 28, "y": 28, "k": 512},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A contraction whose tensors have their first mode, or their last, contiguous."""

    id: str
    group: str
    a: str
    b: str
    d: str
    extents: dict
    first_is_contiguous: bool

    def expression(self):
        return f"{self.a},{self.b}->{self.d}"

    def shape(self, modes):
        return [self.extents[mode] for mode in modes]

    def operations(self):
        return 2.0 * math.prod(self.extents.values())

    def tensor(self, modes, dtype, device="cuda"):
        shape = self.shape(modes)
        if not self.first_is_contiguous:
            return torch.empty(shape, dtype=dtype, device=device)
        return torch.empty(shape[::-1], dtype=dtype, device=device).permute(*range(len(shape) - 1, -1, -1))


def rounded_up(number, multiple):
    return math.ceil(number / multiple) * multiple


def tccg_case(text, group):
    d, a, b = text.split("-")
    rank = max(map(len, (a, b, d)))
    mean = LARGEST_ELEMENTS ** (1 / rank)
    firsts = {modes[0] for modes in (a, b, d)}
    extents = {
        mode: rounded_up(mean, FIRST_MULTIPLE if mode in firsts else OTHER_MULTIPLE) for mode in sorted({*a, *b, *d})
    }
    if group == "tensor times matrix":
        extents["j"] = EXTENT_OF_J
    return Case(text, group, a, b, d, extents, True)


def network_case(expression):
    inputs, d = expression.split("->")
    a, b = inputs.split(",")
    return Case(expression, "networks", a, b, d, NETWORKS[expression], False)


CASES = [
    *(
        tccg_case(text, group)
        for group, texts in (
            ("tensor times matrix", TENSOR_TIMES_MATRIX),
            ("change of basis", CHANGE_OF_BASIS),
            ("CCSD", CCSD),
            ("CCSD(T)", CCSD_T),
        )
        for text in texts.split()
    ),
    *map(network_case, NETWORKS),
]


def wrong(case, tensors, computes):
    """Why a result is wrong; empty if all are those of torch on integers. `computes` has functions that return it."""
    a, b, d = tensors
    for each in (a, b):
        each.copy_(torch.randint(-2, 3, each.shape, device=each.device))
    expected = torch.einsum(case.expression(), a.float(), b.float()).to(d.dtype)
    for name, compute in computes.items():
        d.fill_(math.nan)
        result = compute()
        differs = (result != expected) | result.isnan()
        if differs.any():
            place = differs.nonzero()[0].tolist()
            return f"{name}: {case.d}{place} is {result[*place].item()}, not {expected[*place].item()}"
    return ""


def copied(kernel):
    """The letters of the operands that the kernel copies: "ab"."""
    return json.loads(kernel.metadata.to_json()).get("permuted", "")


def contenders(found, count):
    """The kernels to time, by the names of contenders: the first, others behind it, and the first with and without
    copies."""
    kernels = {f"candidate {place}" if place else "tilewright": found[place] for place in range(min(count, len(found)))}
    direct = [kernel for kernel in found if not copied(kernel)]
    copies = [kernel for kernel in found if copied(kernel)]
    if direct and copies:
        kernels["direct"], kernels["copies"] = direct[0], copies[0]
    return kernels


def measure(case, type, options):
    """The JSON entry of a contraction. A failure is recorded in it, so that the others still run."""
    entry = {"id": case.id, "group": case.group, "type": type, "extents": case.extents, "missing": "", "results": []}
    try:
        tensors = a, b, d = [case.tensor(modes, TYPES[type]) for modes in (case.a, case.b, case.d)]
        arguments = tilewright.ContractionArguments(case.expression(), a, b, d)
        entry["classes"] = arguments.classes
        found = tilewright.find_kernels(arguments)
        kernels = contenders(found, options.candidates)

        def result_of(kernel):
            tilewright.prepare(arguments, kernel).run()
            return d

        computes = {kernel.name: functools.partial(result_of, kernel) for kernel in kernels.values()}
        computes["einsum"] = lambda: tilewright.torch.einsum(case.expression(), a, b)
        if reason := wrong(case, tensors, computes):
            entry["missing"] = f"wrong: {reason}"
            return entry
        for each in (a, b):
            each.normal_()
        calls = {name: tilewright.prepare(arguments, kernel).run for name, kernel in kernels.items()}
        calls["einsum"] = computes["einsum"]
        calls["torch"] = lambda: torch.einsum(case.expression(), a, b)
        samples, entry["unmeasured"] = samples_of(calls, options.rounds)
        medians = {name: statistics.median(values) for name, values in samples.items()}
        for name, us in medians.items():
            row = {"contender": name, "median_us": us, "tera_ops": 1e-6 * case.operations() / us}
            if name in kernels:
                estimate_us = next(found.estimate_us(i) for i, each in enumerate(found) if each.name == kernels[name].name)
                row |= {"kernel": kernels[name].name, "estimate_us": estimate_us, "copied": copied(kernels[name])}
            if name != "torch":
                row["ratio_to_torch"] = medians.get("torch", math.nan) / us
            entry["results"].append(row)
    except Exception as error:  # an error of the compiler or the driver, or out of memory
        entry["missing"] = f"failed: {error}"
    return entry


def line(entry):
    if entry["missing"]:
        return f"{entry['id']:<18} {entry['type']:<5} missing: {entry['missing']}"
    rows = {row["contender"]: row for row in entry["results"]}
    ours = rows["tilewright"]
    best = min(row["median_us"] for row in rows.values() if "kernel" in row)

    def time_of(contender):
        return f"{rows[contender]['median_us']:10.1f}" if contender in rows else f"{'-':>10}"

    return (
        f"{entry['id']:<18} {entry['type']:<5}{ours['median_us']:10.1f}{ours['tera_ops']:8.1f}"
        f"{ours['ratio_to_torch']:8.3f}{ours['median_us'] / best:8.3f}{ours['median_us'] / ours['estimate_us']:7.2f}"
        f"{time_of('direct')}{time_of('copies')}{time_of('einsum')}{time_of('torch')}"
        f" {ours['copied'] or '-':<4} {ours['kernel'][:60]}"
    )


def summary(entries):
    """Geometric means of the ratios to torch.einsum, by contender, group and type."""
    for contender in ("tilewright", "einsum"):
        for group in [*dict.fromkeys(entry["group"] for entry in entries), "all"]:
            for type in dict.fromkeys(entry["type"] for entry in entries):
                ratios = [
                    row["ratio_to_torch"]
                    for entry in entries
                    if entry["type"] == type and group in (entry["group"], "all")
                    for row in entry["results"]
                    if row["contender"] == contender
                ]
                if ratios:
                    mean = math.exp(statistics.fmean(map(math.log, ratios)))
                    yield f"{contender:<11} {group:<20} {type:<5} {mean:7.3f} (least {min(ratios):6.3f}, {len(ratios)})"


def precompile(cases, count):
    """Compiles the kernels of all contractions in parallel. Only shapes are needed, so that no memory is taken."""
    kernels = {}
    major, minor = torch.cuda.get_device_capability()
    for case, type in cases:
        tensors = [case.tensor(modes, TYPES[type], "meta") for modes in (case.a, case.b, case.d)]
        arguments = tilewright.ContractionArguments(case.expression(), *tensors)
        found = tilewright.find_kernels(arguments, target=10 * major + minor)
        kernels |= {kernel.name: kernel for kernel in contenders(found, count).values()}
        made = _order_of_result(case.a, case.b, case.d, *tensors[:2])  # of einsum
        of_einsum = torch.empty(case.shape(made), dtype=TYPES[type], device="meta")
        arguments = tilewright.ContractionArguments(f"{case.a},{case.b}->{made}", *tensors[:2], of_einsum)
        first = tilewright.find_kernels(arguments, target=10 * major + minor)[0]
        kernels[first.name] = first
    tilewright.compile_kernels(list(kernels.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file for the figures")
    parser.add_argument("--only", nargs="+", help="measure only these contractions")
    parser.add_argument("--quick", action="store_true", help="14 contractions, one round")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["f32", "bf16"])
    parser.add_argument("--candidates", type=int, default=1, help="how many of our kernels are timed")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.quick:
        options.only = options.only or QUICK.split()
        options.rounds = 1

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    chosen = [(case, type) for type in options.types for case in CASES if not options.only or case.id in options.only]
    precompile(chosen, options.candidates)
    setting = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "tilewright": tilewright.__version__,
    }
    print(f"{setting['gpu']}, torch {setting['torch']}; the ratio is the time of torch.einsum by ours")
    print(f"{'contraction':<18} {'type':<5}{'us':>10}{'TFLOP/s':>8}{'torch':>8}{'regret':>8}{'/pred':>7}"
          f"{'direct':>10}{'copies':>10}{'einsum':>10}{'torch us':>10} copied, kernel")
    entries = []
    for case, type in chosen:
        entries.append(measure(case, type, options))
        print(line(entries[-1]), flush=True)
        options.json.write_text(json.dumps({"setting": setting, "contractions": entries}, indent=1) + "\n")
    print(*summary(entries), sep="\n")


if __name__ == "__main__":
    main()
