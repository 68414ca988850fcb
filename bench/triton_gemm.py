#!/usr/bin/env python3
"""Times a Triton kernel against torch.mm (cuBLASLt) on the dense TN cases of a suite, as tilewright_bench times ours.

  bench/triton_gemm.py bench/problems/hopper.txt --json triton.json [--only G03-TN ...]

This needs a GPU of compute capability 9.0, torch, and Triton 3.6 (tl.make_tensor_descriptor exists since 3.4). The
kernel is persistent, loads and stores through TMA descriptors that it creates, and is autotuned for every case.
Operands are random, in several sets so that no call finds its own in L2. Calls of both contenders are in random order
and are enqueued while the GPU is busy; times are medians of event time. bench/plot.py --beside takes the JSON.
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

import torch
import triton
import triton.language as tl

from suite import dense_tn

LEAST_SAMPLES, MOST_SAMPLES, TARGET_MS = 10, 40, 600
WARMUP_ROUNDS = 20
HELD_CALLS = 16  # calls that are enqueued while the GPU spins
HOLD_CYCLES = 4_000_000  # about 2 ms of spinning; torch and Triton take up to 50 us to enqueue a call and its events
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def configurations():
    """Tiles for problems from large ones to decoding, each also with D stored in two halves, which needs less shared
    memory. The autotuner skips configurations that do not fit."""
    tiles = [
        # m, n, k, stages, warps
        (128, 256, 64, 3, 8),
        (128, 256, 64, 4, 8),
        (256, 128, 64, 3, 8),
        (256, 128, 64, 4, 8),
        (128, 256, 128, 2, 8),
        (128, 128, 64, 4, 4),
        (128, 128, 64, 4, 8),
        (128, 128, 128, 3, 8),
        (128, 64, 64, 6, 4),
        (64, 256, 64, 4, 4),
        (64, 128, 64, 5, 4),
        (64, 128, 128, 4, 4),
        (64, 64, 64, 8, 4),
        (64, 64, 128, 5, 4),
        (16, 128, 128, 5, 4),
        (16, 64, 256, 4, 4),
    ]
    for (m, n, k, stages, warps), halves in itertools.product(tiles, [False, True]):
        if halves and n < 128:
            continue
        yield triton.Config(
            {"TILE_M": m, "TILE_N": n, "TILE_K": k, "BAND": 8, "HALVES": halves}, num_stages=stages, num_warps=warps
        )


@triton.jit
def place(tile, rows, columns, BAND: tl.constexpr):
    """Row and column of a tile. Bands of BAND tile rows are traversed column by column, so that they share B in L2."""
    in_band = BAND * columns
    first = tile // in_band * BAND
    height = min(rows - first, BAND)
    return first + tile % in_band % height, tile % in_band // height


def time_briefly(call, quantiles):
    return triton.testing.do_bench(call, warmup=10, rep=40, quantiles=quantiles)


@triton.autotune(configs=list(configurations()), key=["M", "N", "K"], do_bench=time_briefly)
@triton.jit(do_not_specialize=["M"])
def matmul_tn(
    a_pointer,  # (M, K), row-major
    b_pointer,  # (N, K), row-major
    d_pointer,  # (M, N), row-major
    M,
    N,
    K,
    PROGRAMS: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    BAND: tl.constexpr,
    HALVES: tl.constexpr,
):
    a = tl.make_tensor_descriptor(a_pointer, shape=[M, K], strides=[K, 1], block_shape=[TILE_M, TILE_K])
    b = tl.make_tensor_descriptor(b_pointer, shape=[N, K], strides=[K, 1], block_shape=[TILE_N, TILE_K])
    d = tl.make_tensor_descriptor(
        d_pointer, shape=[M, N], strides=[N, 1], block_shape=[TILE_M, TILE_N // 2 if HALVES else TILE_N]
    )
    element = d_pointer.dtype.element_ty
    rows = tl.cdiv(M, TILE_M)
    columns = tl.cdiv(N, TILE_N)
    steps = tl.cdiv(K, TILE_K)
    first = tl.program_id(0)
    stored = first - PROGRAMS  # not taken from the loads' tile, so that loads of the next tile can overtake the store
    for tile in tl.range(first, rows * columns, PROGRAMS, flatten=True):
        row, column = place(tile, rows, columns, BAND)
        sums = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
        for step in range(steps):
            left = a.load([row * TILE_M, step * TILE_K])
            right = b.load([column * TILE_N, step * TILE_K])
            sums = tl.dot(left, right.T, sums)
        stored += PROGRAMS
        store_row, store_column = place(stored, rows, columns, BAND)
        if HALVES:
            both = tl.permute(tl.reshape(sums, (TILE_M, 2, TILE_N // 2)), (0, 2, 1))
            near, far = tl.split(both)
            d.store([store_row * TILE_M, store_column * TILE_N], near.to(element))
            d.store([store_row * TILE_M, store_column * TILE_N + TILE_N // 2], far.to(element))
        else:
            d.store([store_row * TILE_M, store_column * TILE_N], sums.to(element))


def run_triton(a, b, d):
    (m, k), n = a.shape, b.shape[0]
    sm_count = torch.cuda.get_device_properties(a.device).multi_processor_count

    def grid(meta):
        return (min(sm_count, triton.cdiv(m, meta["TILE_M"]) * triton.cdiv(n, meta["TILE_N"])),)

    matmul_tn[grid](a, b, d, m, n, k, PROGRAMS=sm_count)


def run_torch(a, b, d):
    torch.mm(a, b.T, out=d)


CONTENDERS = {"cublaslt": run_torch, "triton": run_triton}


def operand_sets(case):
    """The number of operand sets that together have at least three times the size of the L2 cache."""
    dtype = DTYPES[case.dtype]
    all_bytes = 2 * (case.m * case.k + case.n * case.k + case.m * case.n)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    return [
        (
            torch.randn(case.m, case.k, device="cuda", dtype=dtype),
            torch.randn(case.n, case.k, device="cuda", dtype=dtype),
            torch.full((case.m, case.n), float("nan"), device="cuda", dtype=dtype),
        )
        for _ in range(1 + math.ceil(2 * l2_bytes / all_bytes))
    ]


def disagreement(case, a, b, d):
    """Describes where two results differ; empty if they agree. Both round sums of K products of N(0,1) to 16 bits, so
    that elements may differ by a few units in the last place."""
    d.fill_(float("nan"))
    run_triton(a, b, d)
    expected = torch.mm(a, b.T)
    bound = 2.0**-6 * expected.float().abs() + 1e-3 * math.sqrt(case.k)
    wrong = ~((d.float() - expected.float()).abs() <= bound)  # negated, so that NaN counts as wrong
    if not wrong.any():
        return ""
    row, column = wrong.nonzero()[0].tolist()
    return f"D[{row},{column}] is {d[row, column].item()}, torch's {expected[row, column].item()}"


def timed(calls):
    """Microseconds of each call. Calls are enqueued while the GPU spins, so that the host's time is not measured."""
    marks = []
    for number, call in enumerate(calls):
        if number % HELD_CALLS == 0:
            torch.cuda._sleep(HOLD_CYCLES)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        marks.append((start, stop))
    torch.cuda.synchronize()
    return [1000.0 * start.elapsed_time(stop) for start, stop in marks]


def samples_of(sets):
    """Microseconds of every contender's calls, which are interleaved in random order and rotate over the operand sets."""
    turn = itertools.cycle(sets)

    def calls(names):
        return [lambda run=CONTENDERS[name], operands=next(turn): run(*operands) for name in names]

    warm = timed(calls(list(CONTENDERS) * WARMUP_ROUNDS))
    round_ms = statistics.median(warm) * len(CONTENDERS) / 1000.0
    count = min(max(int(TARGET_MS / round_ms), LEAST_SAMPLES), MOST_SAMPLES)
    order = [name for _ in range(count) for name in random.sample(list(CONTENDERS), len(CONTENDERS))]
    samples = {name: [] for name in CONTENDERS}
    for name, us in zip(order, timed(calls(order))):
        samples[name].append(us)
    return samples


def rows_of(case, samples):
    medians = {name: statistics.median(values) for name, values in samples.items()}
    details = {"cublaslt": "torch.mm", "triton": str(matmul_tn.best_config)}
    return [
        {
            "contender": name,
            "detail": details[name],
            "right": True,
            "median_us": medians[name],
            "mad_us": statistics.median(abs(value - medians[name]) for value in values),
            "samples": len(values),
            "tera_ops": 2e-6 * case.m * case.n * case.k / medians[name],
            "ratio_to_cublaslt": medians["cublaslt"] / medians[name],
        }
        for name, values in samples.items()
    ]


def measure(case):
    """The JSON entry of one problem. A failure is recorded in the entry, so that the other problems still run."""
    entry = {"id": case.id, "missing": case.why_not_tma(), "rows": []}
    if entry["missing"]:
        return entry
    try:
        sets = operand_sets(case)
        wrong = disagreement(case, *sets[0])
        if wrong:
            entry["missing"] = f"wrong: {wrong}"
        else:
            entry["rows"] = rows_of(case, samples_of(sets))
    except Exception as error:  # an error of the compiler or the driver, or out of memory
        entry["missing"] = f"failed: {error}"
    return entry


def line(entry):
    """The line that is printed for an entry."""
    if entry["missing"]:
        return f"{entry['id']:<14} missing: {entry['missing']}"
    reference, ours = entry["rows"]
    return (
        f"{entry['id']:<14} cublaslt {reference['tera_ops']:7.1f} Top/s, triton {ours['tera_ops']:7.1f}, "
        f"ratio {ours['ratio_to_cublaslt']:.3f}  {ours['detail']}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", type=pathlib.Path, help="problem file whose problems have ids")
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file for the figures")
    parser.add_argument("--only", action="append", help="measure only the problem with this id; repeatable")
    options = parser.parse_args()

    random.seed(1)
    torch.manual_seed(1)
    torch.backends.cuda.preferred_blas_library("cublaslt")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))

    setting = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": " ".join(sys.argv),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    entries = []
    for case in dense_tn(options.problems):
        if options.only and case.id not in options.only:
            continue
        entries.append(measure(case))
        print(line(entries[-1]), flush=True)
        content = {"contender": "triton", "setting": setting, "problems": entries}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
