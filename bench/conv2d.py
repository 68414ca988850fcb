#!/usr/bin/env python3
"""Times convolutions and their gradients against cuDNN, which torch calls, on layers of common networks.

  bench/conv2d.py --json conv2d.json [--only V01 ...] [--kinds fprop dgrad wgrad] [--candidates 4] [--rounds 15]
  bench/conv2d.py --json random.json --random 100:60 --seconds 170

This needs a GPU of compute capability 9.0, torch, and the package tilewright. Our contender is the kernel that the
ranking puts first, without tuning; --candidates also times the kernels behind it. "cudnn" is the algorithm that cuDNN's
heuristic puts first, "cudnn_best" the fastest that torch.backends.cudnn.benchmark finds. All tensors are channels-last
and packed. Each contender is captured in a CUDA graph of many calls, which go round several sets of tensors that are
together larger than L2; the graphs are replayed in random order in each round, and times are medians.

Before, our results on integers are compared with torch's own convolution without cuDNN in float32, bit for bit.

--random SEED:COUNT measures layers that are drawn at random (conv_layers.py) instead of the list, and prints all of them
again at the end, sorted by their ratio to the fastest algorithm of cuDNN. Seeds from 100 on are for judging only.
"""

import argparse
import datetime
import itertools
import json
import math
import pathlib
import random
import statistics
import sys
import time

import torch
from conv_layers import KINDS, LAYERS, random_layers
from graph_timing import samples_of

import tilewright

L2_BYTES = 50e6  # of an H200; the sets of tensors have at least twice as many
MOST_SETS = 8
VERIFIED_OPERATIONS = 1e11  # layers with more are verified on fewer images
COMPILED_TOGETHER = 24  # passes of layers whose kernels are compiled in parallel before the first of them is measured


class Tensors:
    """x, w and y of a layer; `written` is the one that a call computes."""

    def __init__(self, case, kind, images=None, device="cuda"):
        type = {"bf16": torch.bfloat16, "f16": torch.float16, "tf32": torch.float32}[case.type]
        self.case, self.kind = case, kind
        self.written = {"fprop": "y", "dgrad": "x", "wgrad": "w"}[kind]
        for role, shape in case.shapes().items():
            if images is not None and role != "w":
                shape = (images, *shape[1:])
            made = torch.empty(shape, dtype=type, device=device, memory_format=torch.channels_last)
            setattr(self, role, made)
        self.math = "multiply_add_tf32" if case.type == "tf32" else None

    def arguments(self):
        case = self.case
        return tilewright.Conv2dArguments(
            self.x,
            self.w,
            self.y,
            kind=self.kind,
            stride=case.stride,
            padding=case.padding,
            dilation=case.dilation,
            groups=case.groups,
            math=self.math,
        )

    def fill(self, call):
        for role in "xwy":
            if role != self.written:
                call(getattr(self, role))

    def torch_call(self):
        """Calls torch, which allocates the result."""
        case = self.case
        numbers = ([case.stride] * 2, [case.padding] * 2, [case.dilation] * 2)
        if self.kind == "fprop":
            return torch.ops.aten.convolution(self.x, self.w, None, *numbers, False, [0, 0], case.groups)
        mask = [self.kind == "dgrad", self.kind == "wgrad", False]
        results = torch.ops.aten.convolution_backward(
            self.y, self.x, self.w, None, *numbers, False, [0, 0], case.groups, mask
        )
        return results[0 if self.kind == "dgrad" else 1]


def wrong(case, kind, kernel):
    """Why the kernel's result is wrong; empty if it is that of torch's own convolution of integers in float32."""
    images = min(case.n, max(1, int(VERIFIED_OPERATIONS / case.operations() * case.n)))
    tensors = Tensors(case, kind, images)
    tensors.fill(lambda tensor: tensor.copy_(torch.randint(-2, 3, tensor.shape, device=tensor.device)))
    out = getattr(tensors, tensors.written)
    out.fill_(math.nan)
    tilewright.prepare(tensors.arguments(), kernel).run()
    for role in "xwy":
        if role != tensors.written:
            setattr(tensors, role, getattr(tensors, role).float().contiguous())
        else:
            setattr(tensors, role, torch.empty(out.shape, device=out.device))
    with torch.backends.cudnn.flags(enabled=False):
        expected = tensors.torch_call().to(out.dtype)
    differs = (out != expected) | out.isnan()
    if not differs.any():
        return ""
    place = differs.nonzero()[0].tolist()
    return f"{tensors.written}{place} is {out[*place].item()}, not {expected[*place].item()}"


def set_count(case):
    return max(1, min(MOST_SETS, math.ceil(2 * L2_BYTES / case.moved_bytes())))


def contenders_of(sets, kernels):
    """The calls to time, by name. Each goes round the sets of tensors."""

    def round_of(calls):
        order = itertools.cycle(calls)
        return lambda: next(order)()

    calls = {}
    for place, kernel in enumerate(kernels):
        name = "tilewright" if place == 0 else f"candidate {place}"
        calls[name] = round_of([tilewright.prepare(each.arguments(), kernel).run for each in sets])
    for name, benchmark in (("cudnn", False), ("cudnn_best", True)):

        def call(each, benchmark=benchmark):
            torch.backends.cudnn.benchmark = benchmark
            each.torch_call()

        calls[name] = round_of([lambda each=each, call=call: call(each) for each in sets])
    return calls


def results_of(case, samples, kernels):
    medians = {name: statistics.median(values) for name, values in samples.items()}
    rows = []
    for name, us in medians.items():
        values = samples[name]
        row = {
            "contender": name,
            "median_us": us,
            "mad_us": statistics.median(abs(value - us) for value in values),
            "samples": len(values),
            "tera_ops": 1e-6 * case.operations() / us,
        }
        if name == "tilewright" or name.startswith("candidate"):
            row["kernel"], row["estimate_us"] = kernels[0 if name == "tilewright" else int(name.split()[1])]
        for reference in ("cudnn", "cudnn_best"):
            if reference in medians:
                row[f"ratio_to_{reference}"] = medians[reference] / us
        rows.append(row)
    return rows


def measure(case, kind, options):
    """The JSON entry of a layer. A failure is recorded in it, so that the others still run."""
    entry = {"id": case.id, "kind": kind, **case.describe(), "missing": "", "results": []}
    try:
        sets = [Tensors(case, kind) for _ in range(set_count(case))]
        found = tilewright.find_kernels(sets[0].arguments())
        kernels = found[: max(1, options.candidates)]
        if not options.unverified and (reason := wrong(case, kind, kernels[0])):
            entry["missing"] = "wrong: " + reason
            return entry
        for each in sets:
            each.fill(lambda tensor: tensor.normal_())
        samples, entry["unmeasured"] = samples_of(contenders_of(sets, kernels), options.rounds)
        named = [(kernel.name, found.estimate_us(place)) for place, kernel in enumerate(kernels)]
        entry["results"] = results_of(case, samples, named)
    except Exception as error:  # an error of the compiler or the driver, or out of memory
        entry["missing"] = f"failed: {error}"
    return entry


def line(entry):
    """The line that is printed for an entry."""
    if entry["missing"]:
        return f"{entry['id']} {entry['kind']} missing: {entry['missing']}"
    by_name = {row["contender"]: row for row in entry["results"]}
    ours = by_name["tilewright"]
    best = min(row["median_us"] for row in by_name.values() if "kernel" in row)
    ratios = "".join(f"{ours.get('ratio_to_' + name, math.nan):9.3f}" for name in ("cudnn", "cudnn_best"))
    return (
        f"{entry['id']} {entry['kind']}{ours['median_us']:10.1f}{ours['tera_ops']:9.1f}{ratios}"
        f"{ours['median_us'] / best:9.3f}{ours['median_us'] / ours['estimate_us']:8.2f}  {ours['kernel']}"
    )


def ratio_of(entry):
    """cuDNN's best time divided by that of our kernel; infinite where only ours was measured, 0 if ours was not."""
    by_name = {row["contender"]: row for row in entry["results"]}
    if entry["missing"] or "tilewright" not in by_name:
        return 0.0
    return by_name["tilewright"].get("ratio_to_cudnn_best", math.inf)


def sorted_report(entries):
    """A line for each entry, those with the least ratio first, with the numbers of its layer."""
    lines = []
    for entry in sorted(entries, key=ratio_of):
        numbers = "{n}x{h}x{w}x{c} k{k} {r}x{s} s{stride} p{padding} d{dilation} g{groups} {type}".format(**entry)
        by_name = {row["contender"]: row for row in entry["results"]}
        place = f"{ratio_of(entry):7.3f} {entry['id']} {entry['kind']} {entry['group']:<12} {numbers:<52}"
        if ratio_of(entry) == 0:
            lines.append(place + (entry["missing"] or entry["unmeasured"].get("tilewright", "not measured")))
            continue
        ours = by_name["tilewright"]
        cudnn_us = by_name.get("cudnn_best", {}).get("median_us", math.nan)
        predicted = ours["median_us"] / ours["estimate_us"]
        lines.append(f"{place}{ours['median_us']:9.1f} us, cuDNN {cudnn_us:9.1f}, /pred {predicted:5.2f}  {ours['kernel']}")
    return lines


def seed_and_count(text):
    """The layers of "100:60", which are numbers 0 to 59 of seed 100."""
    seed, _, count = text.partition(":")
    if not (seed.isdigit() and count.isdigit() and int(count) > 0):
        raise argparse.ArgumentTypeError(f"expected SEED:COUNT, two numbers, got {text!r}")
    return list(random_layers(int(seed), int(count)))


def summary(entries):
    """Geometric means of the ratios to cuDNN's best algorithm, by group and kind."""
    lines = []
    groups = [*dict.fromkeys(entry["group"] for entry in entries), "all"]
    for group in groups:
        cells = []
        for kind in KINDS:
            ratios = [
                row["ratio_to_cudnn_best"]
                for entry in entries
                if entry["kind"] == kind and group in (entry["group"], "all")
                for row in entry["results"]
                if row["contender"] == "tilewright" and "ratio_to_cudnn_best" in row
            ]
            mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan
            cells.append(f"{mean:7.3f} (least {min(ratios, default=math.nan):6.3f}, {len(ratios):2})")
        lines.append(f"{group:<12}" + "".join(f"  {kind} {cell}" for kind, cell in zip(KINDS, cells, strict=True)))
    return lines


def precompile(cases, count):
    """Compiles the kernels of all layers in parallel. Only shapes are needed, so that no memory is taken."""
    kernels = {}
    target = torch.cuda.get_device_capability()
    for case, kind in cases:
        found = tilewright.find_kernels(
            Tensors(case, kind, device="meta").arguments(), target=10 * target[0] + target[1]
        )
        kernels |= {kernel.name: kernel for kernel in found[: max(1, count)]}
    tilewright.compile_kernels(list(kernels.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file for the figures")
    parser.add_argument("--only", nargs="+", help="measure only these layers")
    parser.add_argument("--groups", nargs="+", help="measure only the layers of these groups")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--candidates", type=int, default=1, help="how many of our kernels are timed")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--random", type=seed_and_count, metavar="SEED:COUNT", help="layers drawn at random")
    parser.add_argument("--seconds", type=float, default=math.inf, help="do not begin a pass of a layer after this time")
    parser.add_argument("--unverified", action="store_true", help="do not compare our results first")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cudnn.allow_tf32 = True  # for the layers in tf32
    torch.backends.cudnn.benchmark_limit = 0  # try all algorithms
    chosen = [
        (case, kind)
        for case in options.random or LAYERS
        for kind in case.kinds
        if kind in options.kinds
        and (not options.only or case.id in options.only)
        and (not options.groups or case.group in options.groups)
    ]
    setting = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "tilewright": tilewright.__version__,
    }
    print(f"{setting['gpu']}, torch {setting['torch']}, cuDNN {setting['cudnn']}; ratios are cuDNN's time by ours")
    print(f"{'layer':<9}{'us':>10}{'TFLOP/s':>9}{'cudnn':>9}{'best':>9}{'regret':>9}{'/pred':>8}  kernel")
    entries = []
    for place, (case, kind) in enumerate(chosen):
        if time.monotonic() > end:
            print(f"{len(chosen) - place} passes of {len(chosen)} were not begun within {options.seconds:.0f} seconds")
            break
        if place % COMPILED_TOGETHER == 0:
            precompile(chosen[place : place + COMPILED_TOGETHER], options.candidates)
        entries.append(measure(case, kind, options))
        print(line(entries[-1]), flush=True)
        options.json.write_text(json.dumps({"setting": setting, "layers": entries}, indent=2) + "\n")
        torch.cuda.empty_cache()
    if options.random:
        print("\n".join(sorted_report(entries)))
    print("\n".join(summary(entries)))


if __name__ == "__main__":
    main()
