#!/usr/bin/env python3
"""Times convolutions and their gradients against cuDNN, which torch calls, on layers of common networks.

  bench/conv2d.py --json conv2d.json [--only V01 ...] [--kinds fprop dgrad wgrad] [--candidates 4] [--rounds 15]

This needs a GPU of compute capability 9.0, torch, and the package tilewright. Our contender is the kernel that the
ranking puts first, without tuning; --candidates also times the kernels behind it. "cudnn" is the algorithm that cuDNN's
heuristic puts first, "cudnn_best" the fastest that torch.backends.cudnn.benchmark finds. All tensors are channels-last
and packed. Each contender is captured in a CUDA graph of many calls, which go round several sets of tensors that are
together larger than L2; the graphs are replayed in random order in each round, and times are medians.

Before, our results on integers are compared with torch's own convolution without cuDNN in float32, bit for bit.
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import math
import pathlib
import random
import statistics
import sys

import torch
from graph_timing import samples_of

import tilewright

KINDS = ("fprop", "dgrad", "wgrad")
L2_BYTES = 50e6  # of an H200; the sets of tensors have at least twice as many
MOST_SETS = 8
VERIFIED_OPERATIONS = 1e11  # layers with more are verified on fewer images


@dataclasses.dataclass(frozen=True)
class Layer:
    """x (n, c, h, w) and w (k, c / groups, r, s), with a padding on both sides of x."""

    id: str
    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int
    stride: int
    padding: int
    dilation: int
    groups: int
    type: str
    group: str  # of layers whose ratios are averaged
    kinds: tuple = KINDS

    def shapes(self):
        p, q = (
            (extent + 2 * self.padding - (taps - 1) * self.dilation - 1) // self.stride + 1
            for extent, taps in ((self.h, self.r), (self.w, self.s))
        )
        w = (self.k, self.c // self.groups, self.r, self.s)
        return {"x": (self.n, self.c, self.h, self.w), "w": w, "y": (self.n, self.k, p, q)}

    def operations(self):
        shapes = self.shapes()
        return 2.0 * math.prod(shapes["y"]) * math.prod(shapes["w"][1:])

    def element_bytes(self):
        return {"tf32": 4}.get(self.type, 2)

    def moved_bytes(self):
        """Each tensor once."""
        return self.element_bytes() * sum(math.prod(shape) for shape in self.shapes().values())

    def describe(self):
        fields = dataclasses.asdict(self)
        return {name: fields[name] for name in fields if name not in ("id", "kinds")}


def layer(text, group, type="bf16", dilation=1, groups=1, kinds=KINDS):
    """A layer from "V01 32 56x56 64 64 3x3 s1 p1": name, images, pixels, channels, filters, taps, stride, padding."""
    name, n, pixels, c, k, taps, stride, padding = text.split()
    h, w = map(int, pixels.split("x"))
    r, s = map(int, taps.split("x"))
    numbers = (int(stride[1:]), int(padding[1:]), dilation, groups)
    return Layer(name, int(n), h, w, int(c), int(k), r, s, *numbers, type, group, kinds)


LAYERS = [
    layer("V01 32 56x56 64 64 3x3 s1 p1", "middle"),
    layer("V02 32 28x28 128 128 3x3 s1 p1", "middle"),
    layer("V03 32 14x14 256 256 3x3 s1 p1", "middle"),
    layer("V04 32 7x7 512 512 3x3 s1 p1", "middle"),
    layer("V05 32 56x56 64 256 1x1 s1 p0", "1x1"),
    layer("V06 32 28x28 512 128 1x1 s1 p0", "1x1"),
    layer("V07 32 56x56 256 512 1x1 s2 p0", "strided"),
    layer("V08 32 56x56 128 128 3x3 s2 p1", "strided"),
    layer("V09 32 14x14 512 512 3x3 s2 p1", "strided"),
    layer("V10 256 56x56 64 64 3x3 s1 p1", "large"),
    layer("V11 256 14x14 256 256 3x3 s1 p1", "large"),
    layer("V12 1 56x56 64 64 3x3 s1 p1", "few images"),
    layer("V13 1 7x7 512 512 3x3 s1 p1", "few images"),
    layer("V14 8 28x28 128 128 3x3 s1 p1", "few images"),
    layer("V15 32 224x224 3 64 7x7 s2 p3", "stem", kinds=("fprop", "wgrad")),
    layer("V16 256 224x224 3 64 7x7 s2 p3", "stem", kinds=("fprop", "wgrad")),
    layer("V17 32 224x224 3 96 4x4 s4 p0", "stem", kinds=("fprop", "wgrad")),
    layer("V18 32 224x224 3 32 3x3 s2 p1", "stem", kinds=("fprop", "wgrad")),
    layer("V19 8 640x640 3 32 6x6 s2 p2", "stem", type="f16", kinds=("fprop", "wgrad")),
    layer("V20 32 56x56 96 192 2x2 s2 p0", "strided"),
    layer("V21 32 56x56 96 96 7x7 s1 p3", "depthwise", groups=96),
    layer("V22 32 14x14 384 384 7x7 s1 p3", "depthwise", groups=384),
    layer("V23 256 56x56 144 144 5x5 s2 p2", "depthwise", groups=144),
    layer("V24 256 112x112 32 16 1x1 s1 p0", "1x1"),
    layer("V25 256 14x14 112 672 1x1 s1 p0", "1x1"),
    layer("V26 8 64x64 320 320 3x3 s1 p1", "large"),
    layer("V27 8 32x32 1280 1280 3x3 s1 p1", "large"),
    layer("V28 2 64x64 960 640 3x3 s1 p1", "large"),
    layer("V29 8 128x128 320 320 3x3 s2 p1", "strided"),
    layer("V30 1 1024x1024 128 128 3x3 s1 p1", "large", kinds=("fprop",)),
    layer("V31 1 512x512 512 256 3x3 s1 p1", "large", kinds=("fprop",)),
    layer("V32 1 1024x1024 128 3 3x3 s1 p1", "few filters", kinds=("fprop",)),
    layer("V33 8 284x284 128 128 3x3 s1 p0", "large"),
    layer("V34 32 80x80 64 128 3x3 s2 p1", "strided", type="f16"),
    layer("V35 32 20x20 512 255 1x1 s1 p0", "1x1", type="f16"),
    layer("V36 8 65x65 2048 256 3x3 s1 p12", "large", dilation=12),
    layer("V37 32 35x35 48 64 5x5 s1 p2", "few channels"),
    layer("V38 32 14x14 512 512 3x3 s1 p1", "groups", groups=32),
    layer("V40 32 14x14 256 256 3x3 s1 p1", "middle", type="tf32"),
]


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
    parser.add_argument("--unverified", action="store_true", help="do not compare our results first")
    options = parser.parse_args()

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cudnn.allow_tf32 = True  # for the layers in tf32
    torch.backends.cudnn.benchmark_limit = 0  # try all algorithms
    chosen = [
        (case, kind)
        for case in LAYERS
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
    precompile(chosen, options.candidates)
    print(f"{setting['gpu']}, torch {setting['torch']}, cuDNN {setting['cudnn']}; ratios are cuDNN's time by ours")
    print(f"{'layer':<9}{'us':>10}{'TFLOP/s':>9}{'cudnn':>9}{'best':>9}{'regret':>9}{'/pred':>8}  kernel")
    entries = []
    for case, kind in chosen:
        entries.append(measure(case, kind, options))
        print(line(entries[-1]), flush=True)
        options.json.write_text(json.dumps({"setting": setting, "layers": entries}, indent=2) + "\n")
        torch.cuda.empty_cache()
    print("\n".join(summary(entries)))


if __name__ == "__main__":
    main()
