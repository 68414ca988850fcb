#!/usr/bin/env python3
"""Times kernels that are programs of atoms: their two lowerings, their compiles, and narrow weights.

  bench/programs.py --json programs.json [--parts mixes compiles weights] [--random 20] [--rounds 15]

This needs a GPU of compute capability 9.0, torch, and the package tilewright with MLIR.

"mixes": every design of the families cuda_program and mlir, which are the same programs by two lowerings, beside the
kernel that the ranking puts first among sm90_gemm's. "compiles": the same programs compiled by NVRTC and by MLIR, in turn
and without the cache. "weights": weight_matmul with s4, s8 and e4m3 weights beside our GEMM with bf16 weights.

Each contender is captured in a CUDA graph of many calls, which go round several sets of operands that are together larger
than L2; the graphs are replayed in random order in each round, and times are medians. Before, the results of each kernel
on integers are compared bit for bit with torch's. --smoke does the same for tiny problems; without a GPU it compares the
results on the emulator, and times only compiles.
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import math
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import torch
from graph_timing import samples_of

import tilewright

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
MIXES = ("tma_wgmma", "cp_async_wgmma", "tma_mma", "tma_register_wgmma")
LOWERINGS = ("cuda_program", "mlir")
L2_BYTES = 50e6  # of an H200; the sets of operands have at least twice as many
MOST_SETS = 16
LEAST_MIX_TO_SM90 = 0.97
# The least ratio of bf16's time to that of s4 that issue 21 asks for, by the number of tokens.
LEAST_S4_RATIOS = {1: 2.5, 16: 2.5, 64: 2.0, 256: 1.1, 4096: 0.85}


@dataclasses.dataclass(frozen=True)
class Shape:
    """D (m, n) = A (m, k) times B, which is stored as n x k."""

    dtype: str
    m: int
    n: int
    k: int

    @property
    def id(self):
        return f"{self.dtype}-{self.m}x{self.n}x{self.k}"

    def operations(self):
        return 2.0 * self.m * self.n * self.k

    def moved_bytes(self):
        return 2.0 * (self.m * self.k + self.n * self.k + self.m * self.n)


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def fixed_shapes(smoke):
    extents = [(192, 264, 136)] if smoke else [(8192, 8192, 8192), (4096, 4096, 4096), (4096, 14336, 4096)]
    return [Shape(dtype, *each) for dtype in DTYPES for each in extents]


def random_shapes(count):
    """Extents whose logarithms are uniform, multiples of 8 so that TMA can load all rows."""
    generator = random.Random(21)

    def extent(least, most):
        return 8 * round(math.exp(generator.uniform(math.log(least / 8), math.log(most / 8))))

    return [
        Shape(generator.choice(list(DTYPES)), extent(256, 12288), extent(256, 12288), extent(256, 12288))
        for _ in range(count)
    ]


def sets_for(moved_bytes):
    return max(1, min(MOST_SETS, math.ceil(2 * L2_BYTES / moved_bytes))) if torch.cuda.is_available() else 1


def integers(dtype, *shape):
    return torch.randint(-2, 3, shape, device=device()).to(dtype)


def difference(out, expected):
    """Where two results differ; empty if they are equal bit for bit."""
    differs = (out != expected) | out.isnan()
    if not differs.any():
        return ""
    place = differs.nonzero()[0].tolist()
    return f"out{place} is {out[*place].item()}, not {expected[*place].item()}"


def in_turn(calls):
    order = itertools.cycle(calls)
    return lambda: next(order)()


def median_rows(samples, unmeasured):
    rows = {}
    for name, values in samples.items():
        us = statistics.median(values)
        rows[name] = {"median_us": us, "mad_us": statistics.median(abs(value - us) for value in values)}
    return rows | {name: {"missing": reason} for name, reason in unmeasured.items()}


def timed(calls, rounds):
    """The median of each call; nothing without a GPU."""
    return median_rows(*samples_of(calls, rounds)) if torch.cuda.is_available() else {}


# The four mixes.


def operands(shape, fill):
    dtype = DTYPES[shape.dtype]
    a, b = fill(dtype, shape.m, shape.k), fill(dtype, shape.n, shape.k)
    return a, b, torch.full((shape.m, shape.n), math.nan, dtype=dtype, device=device())


def gemm_arguments(a, b, out):
    return tilewright.GemmArguments(a, b.T, out)


def design_name(kernel):
    design = kernel.metadata.design
    cluster = "x".join(map(str, design.cluster_shape[:2]))
    return f"{design.mix} {'x'.join(map(str, design.tile_shape))}" + (f" c{cluster}" if cluster != "1x1" else "")


def kernels_of_mixes(args, mixes=MIXES, sm90=1):
    """The kernels by the names of contenders: "sm90_gemm", and "mlir tma_wgmma 128x256x64" for each design."""
    found = tilewright.find_kernels(args, providers=["sm90_gemm"])
    kernels = {"sm90_gemm" + (f" {place}" if place else ""): found[place] for place in range(min(sm90, len(found)))}
    for family in LOWERINGS:
        for kernel in tilewright.find_kernels(args, providers=[family]):
            if kernel.metadata.design.mix in mixes:
                kernels[f"{family} {design_name(kernel)}"] = kernel
    return kernels


def measure_mixes(shape, mixes, options):
    entry = {"id": shape.id, "shape": dataclasses.asdict(shape), "wrong": {}, "kernels": {}, "times": {}}
    a, b, out = operands(shape, integers)
    kernels = kernels_of_mixes(gemm_arguments(a, b, out), mixes, options.sm90)
    entry["kernels"] = {name: kernel.name for name, kernel in kernels.items()}
    tilewright.compile_kernels(list(kernels.values()))
    expected = (a.float() @ b.float().T).to(out.dtype)
    for name, kernel in kernels.items():
        out.fill_(math.nan)
        kernel.run(gemm_arguments(a, b, out))
        if reason := difference(out, expected):
            entry["wrong"][name] = reason
    del a, b, out, expected
    sets = [
        gemm_arguments(*operands(shape, lambda dtype, *of: torch.randn(of, device=device()).to(dtype)))
        for _ in range(sets_for(shape.moved_bytes()))
    ]
    entry["times"] = timed(
        {
            name: in_turn([tilewright.prepare(args, kernel).run for args in sets])
            for name, kernel in kernels.items()
            if name not in entry["wrong"]
        },
        options.rounds,
    )
    us = {name: row["median_us"] for name, row in entry["times"].items() if "median_us" in row}
    best_sm90 = min((value for name, value in us.items() if name.startswith("sm90_gemm")), default=math.nan)
    for name, row in entry["times"].items():
        if name not in us or name.startswith("sm90_gemm"):
            continue
        row["tera_ops"] = 1e-6 * shape.operations() / us[name]
        row["ratio_to_sm90"] = best_sm90 / us[name]
        family, design = name.split(" ", 1)
        if family == "mlir" and (other := us.get(f"cuda_program {design}")):
            row["ratio_to_cuda"] = other / us[name]
    return entry


def lines_of_mixes(entry):
    if not entry["times"]:
        return [f"{entry['id']:<24} {len(entry['kernels'])} kernels, wrong: {entry['wrong'] or 'none'}"]
    lines = [f"{entry['id']}, wrong: {entry['wrong'] or 'none'}"]
    for name, row in entry["times"].items():
        if "missing" in row:
            lines.append(f"  {name:<42} missing: {row['missing']}")
            continue
        numbers = "".join(f"{row.get(key, math.nan):10.3f}" for key in ("ratio_to_sm90", "ratio_to_cuda"))
        lines.append(f"  {name:<42}{row['median_us']:10.1f} us{numbers}")
    return lines


def summary_of_mixes(entries):
    """Of each mix: its best design's ratios to sm90_gemm, and how far the lowerings of its designs lie apart."""
    lines = []
    for mix in MIXES:
        best, apart = [], []
        for entry in entries:
            rows = [row for name, row in entry["times"].items() if f" {mix} " in name and "ratio_to_sm90" in row]
            if rows:
                best.append(max(row["ratio_to_sm90"] for row in rows))
            apart += [row["ratio_to_cuda"] for row in rows if "ratio_to_cuda" in row]
        if best:
            lines.append(
                f"{mix:<20} best design to sm90_gemm: {statistics.geometric_mean(best):.3f}, least {min(best):.3f}, "
                f"{sum(each < LEAST_MIX_TO_SM90 for each in best)} of {len(best)} below {LEAST_MIX_TO_SM90}; mlir to "
                f"cuda: {min(apart, default=math.nan):.3f} to {max(apart, default=math.nan):.3f}"
            )
    wrong = [f"{entry['id']} {name}: {reason}" for entry in entries for name, reason in entry["wrong"].items()]
    return [*lines, *(f"WRONG {each}" for each in wrong)]


# Compiles.


def measure_compiles(options):
    """Milliseconds of cold compiles of the same program in CUDA C++ and in MLIR, by the names of designs."""
    found = {}
    for dtype in ("bf16",) if options.smoke else DTYPES:
        args = gemm_arguments(*operands(Shape(dtype, 256, 256, 256), integers))
        for name in kernels_of_mixes(args, MIXES, 0):
            family, design = name.split(" ", 1)
            if not options.smoke or design.startswith(("tma_wgmma 64", "tma_mma")):
                found.setdefault(f"{dtype} {design}", {})[family] = args
    times = {name: {family: {"wall": [], "compiler": []} for family in of} for name, of in found.items()}
    for number in range(options.compile_rounds + 1):
        order = [(name, family) for name, of in found.items() for family in of]
        for name, family in random.sample(order, len(order)):
            with cold_cache():
                kernel = kernels_of_mixes(found[name][family], MIXES, 0)[f"{family} {name.split(' ', 1)[1]}"]
                wall, artifact = wall_ms(kernel.compile)
            if number > 0:  # the first round starts the compilers and loads their libraries
                times[name][family]["wall"].append(wall)
                times[name][family]["compiler"].append(artifact.compile_ms)
    entries = []
    for name, of in times.items():
        row = {"id": name}
        for family, samples in of.items():
            row[family] = {key: statistics.median(values) for key, values in samples.items()}
        if all(family in row for family in LOWERINGS):
            row["ratio"] = row["mlir"]["wall"] / row["cuda_program"]["wall"]
        entries.append(row)
    return {"cores": os.cpu_count(), "rounds": options.compile_rounds, "kernels": entries, "together": together(found)}


class cold_cache:
    """The cache of kernels is an empty folder."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        tilewright.configure(cache_dir=self.folder.name)

    def __exit__(self, *_):
        tilewright.configure(cache_dir=KEPT_CACHE.name)
        self.folder.cleanup()


def wall_ms(call):
    started = time.perf_counter()
    result = call()
    return 1000 * (time.perf_counter() - started), result


def together(found):
    """Milliseconds of compiling all programs of a lowering at once, and one after another."""
    result = {}
    for family in LOWERINGS:
        for way in ("at once", "one by one"):
            with cold_cache():
                kernels = [
                    kernels_of_mixes(of[family], MIXES, 0)[f"{family} {name.split(' ', 1)[1]}"]
                    for name, of in list(found.items())[:4]
                    if family in of
                ]
                compile_all = tilewright.compile_kernels if way == "at once" else lambda all: [x.compile() for x in all]
                result.setdefault(family, {"kernels": len(kernels)})[way] = wall_ms(lambda: compile_all(kernels))[0]
    return result


def lines_of_compiles(result):
    lines = [f"cold compiles in ms, medians of {result['rounds']}, {result['cores']} cores"]
    for row in result["kernels"]:
        both = ", ".join(f"{family} {row[family]['wall']:.0f}" for family in LOWERINGS if family in row)
        lines.append(f"  {row['id']:<42} {both}, ratio {row.get('ratio', math.nan):.3f}")
    for family, row in result["together"].items():
        lines.append(
            f"  {row['kernels']} kernels of {family}: {row['at once']:.0f} at once, {row['one by one']:.0f} one by one"
        )
    return lines


# Narrow weights.


def quantised(kind, outputs, inputs):
    """Random weights as pack_weights() takes them, and the same as numbers."""
    if kind == "s8":
        weights = torch.randint(-128, 128, (outputs, inputs), device=device(), dtype=torch.int8)
        return weights, weights
    weights = torch.randint(-8, 8, (outputs, inputs), device=device(), dtype=torch.int8)
    return (weights.to(torch.float8_e4m3fn) if kind == "e4m3" else weights), weights


def wrong_weights(kind, outputs, inputs, tokens, group, fewest=1):
    """Why kernels are wrong, by their names. Scales are powers of two, so that results are exact."""
    rows = min(outputs, 4096)  # a part of the outputs is enough to see every thread's work
    weights, numbers = quantised(kind, rows, inputs)
    scales = (2.0 ** torch.randint(-1, 2, (inputs // group, rows), device=device())).to(torch.bfloat16)
    packed = tilewright.pack_weights(weights, scales, None if kind == "e4m3" else kind, group=group)
    x = torch.randint(-1, 2, (tokens, inputs), device=device()).to(torch.bfloat16)
    scaled = (numbers.double().view(rows, -1, group) * scales.double().T[:, :, None]).view(rows, inputs)
    expected = (x.double() @ scaled.T).to(torch.bfloat16)
    out = torch.empty(tokens, rows, dtype=torch.bfloat16, device=device())
    wrong = {}
    for kernel in tilewright.find_kernels(packed.arguments(x, out)):
        out.fill_(math.nan)
        kernel.run(packed.arguments(x, out))
        if reason := difference(out, expected):
            wrong[kernel.name] = reason
    return wrong


def measure_weights(outputs, inputs, tokens, kinds, options):
    group = 128
    entry = {"id": f"{outputs}x{inputs}-{tokens}", "outputs": outputs, "inputs": inputs, "tokens": tokens, "wrong": {}}
    of_io = 2.0 * tokens * (outputs + inputs)

    def io():
        x = torch.randn(tokens, inputs, device=device()).to(torch.bfloat16)
        return x, torch.empty(tokens, outputs, dtype=torch.bfloat16, device=device())

    calls, entry["kernels"] = {}, {}
    sets = []
    for _ in range(sets_for(2.0 * outputs * inputs + of_io)):
        x, out = io()
        sets.append(tilewright.GemmArguments(x, torch.randn(outputs, inputs, device=device()).bfloat16().T, out))
    # The few best of the ranking, so that narrow weights are compared with the best of ours.
    for place, kernel in enumerate(tilewright.find_kernels(sets[0])[: options.candidates]):
        calls[f"bf16 {place}"] = in_turn([tilewright.prepare(args, kernel).run for args in sets])
        entry["kernels"][f"bf16 {place}"] = kernel.name
    for kind in kinds:
        entry["wrong"] |= wrong_weights(kind, outputs, inputs, min(tokens, 300), group)
        weights, _ = quantised(kind, outputs, inputs)
        scales = torch.ones(-(-inputs // group), outputs, device=device(), dtype=torch.bfloat16)
        first = tilewright.pack_weights(weights, scales, None if kind == "e4m3" else kind, group=group)
        del weights
        packed_sets = []
        for _ in range(sets_for(first.data.numel() * first.data.element_size() + of_io)):
            packed = tilewright.PackedWeights(
                first.data.clone(), first.scales, first.dtype, first.shape, first.group
            )
            packed_sets.append(packed.arguments(*io()))
        for place, kernel in enumerate(tilewright.find_kernels(packed_sets[0])):
            calls[f"{kind} {place}"] = in_turn([tilewright.prepare(args, kernel).run for args in packed_sets])
            entry["kernels"][f"{kind} {place}"] = kernel.name
    entry["times"] = timed(calls, options.rounds)
    best = {}
    for name, row in entry["times"].items():
        if "median_us" in row:
            kind = name.split()[0]
            best[kind] = min(best.get(kind, math.inf), row["median_us"])
    entry["best_us"] = best
    entry["ratios"] = {kind: best["bf16"] / us for kind, us in best.items() if kind != "bf16" and "bf16" in best}
    entry["first_ratios"] = {
        kind: entry["times"]["bf16 0"]["median_us"] / entry["times"][f"{kind} 0"]["median_us"]
        for kind in entry["ratios"]
        if "median_us" in entry["times"].get(f"{kind} 0", {}) and "median_us" in entry["times"]["bf16 0"]
    }
    return entry


def line_of_weights(entry):
    least = LEAST_S4_RATIOS.get(entry["tokens"], 0)
    cells = []
    for kind, ratio in entry["ratios"].items():
        mark = " (too little)" if kind == "s4" and ratio < least else ""
        cells.append(f"{kind} {entry['best_us'][kind]:9.1f} us {ratio:6.3f}{mark}, first {entry['first_ratios'].get(kind, 0):.3f}")
    us = entry["best_us"].get("bf16", math.nan)
    return f"{entry['id']:<20} bf16 {us:9.1f} us; {'; '.join(cells)}; wrong: {entry['wrong'] or 'none'}"


KEPT_CACHE = tempfile.TemporaryDirectory()  # of the kernels that are timed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file for the figures")
    parser.add_argument("--parts", nargs="+", choices=("mixes", "compiles", "weights"))
    parser.add_argument("--random", type=int, default=20, help="how many random shapes are timed with mix tma_wgmma")
    parser.add_argument("--sm90", type=int, default=1, help="how many of sm90_gemm's kernels are timed")
    parser.add_argument("--candidates", type=int, default=3, help="how many of the kernels with bf16 weights are timed")
    parser.add_argument("--kinds", nargs="+", choices=("s4", "s8", "e4m3"), default=("s4", "s8"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--compile-rounds", type=int, default=7)
    parser.add_argument("--smoke", action="store_true", help="tiny problems; needs no GPU")
    options = parser.parse_args()
    parts = options.parts or ("mixes", "compiles", "weights")

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False  # the expected results of integers are exact
    tilewright.configure(cache_dir=KEPT_CACHE.name)
    if not torch.cuda.is_available():
        if not options.smoke:
            parser.error("there is no GPU: only --smoke can run")
        tilewright.configure(device="emulator:sm_90a")
    if options.smoke:
        options.random = min(options.random, 1)
        options.compile_rounds = min(options.compile_rounds, 1)
    setting = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "torch": torch.__version__,
        "tilewright": tilewright.__version__,
    }
    result = {"setting": setting, "mixes": [], "compiles": {}, "weights": []}

    def keep(lines):
        print("\n".join(lines), flush=True)
        options.json.write_text(json.dumps(result, indent=2) + "\n")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    if "mixes" in parts:
        print("ratios: to the time of sm90_gemm, and of mlir to cuda_program")
        every = [(shape, MIXES) for shape in fixed_shapes(options.smoke)]
        if options.smoke:
            every += [(Shape("bf16", 64, 128, 72), MIXES[:1])] * options.random
        else:
            every += [(shape, MIXES[:1]) for shape in random_shapes(options.random)]
        for shape, mixes in every:
            result["mixes"].append(measure_mixes(shape, mixes, options))
            keep(lines_of_mixes(result["mixes"][-1]))
        keep(summary_of_mixes(result["mixes"]))
    if "compiles" in parts:
        result["compiles"] = measure_compiles(options)
        keep(lines_of_compiles(result["compiles"]))
    if "weights" in parts:
        print("ratios: the best bf16 kernel's time by that of the best kernel with narrow weights; of both first ones")
        layers = [(128, 256)] if options.smoke else [(4096, 4096), (14336, 4096), (28672, 8192)]
        for (outputs, inputs), tokens in itertools.product(layers, (1, 40) if options.smoke else LEAST_S4_RATIOS):
            result["weights"].append(measure_weights(outputs, inputs, tokens, options.kinds, options))
            keep([line_of_weights(result["weights"][-1])])
    wrong = [entry["id"] for entry in (*result["mixes"], *result["weights"]) if entry["wrong"]]
    sys.exit(f"wrong results: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
