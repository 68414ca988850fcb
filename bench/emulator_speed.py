#!/usr/bin/env python3
"""Measures how many warp instructions a second the emulator executes.

    bench/emulator_speed.py [--command build/bin/tilewright] [--only NAME]

Each row is a loop of one kind of instruction that one CTA of four warps executes, on one core. The time of an empty loop
is subtracted; times are CPU times, so that other work on the machine matters little. The checks are those of `tilewright emulate`, all switched on.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

# name: (instructions, repetitions in the loop's body, iterations, operations of an instruction or 1)
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%f0,%f1,%f2,%f3};"
WGMMA = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
    + ",".join(f"%g{i}" for i in range(32))
    + "}, %desc, %desc, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
)
ROWS = {
    "fma.rn.f32": ("fma.rn.f32 %f0, %f1, %f2, %f0;", 16, 100000, 1),
    "fma.rn.ftz.f32": ("fma.rn.ftz.f32 %f0, %f1, %f2, %f0;", 16, 100000, 1),
    "add.ftz.f32": ("add.ftz.f32 %f0, %f1, %f0;", 16, 100000, 1),
    "mul.ftz.sat.f32": ("mul.ftz.sat.f32 %f0, %f1, %f2;", 16, 100000, 1),
    "fma.rz.f32": ("fma.rz.f32 %f0, %f1, %f2, %f0;", 16, 50000, 1),
    "max.ftz.f32": ("max.ftz.f32 %f0, %f1, %f0;", 16, 100000, 1),
    "ex2.approx.ftz.f32": ("ex2.approx.ftz.f32 %f0, %f1;", 16, 50000, 1),
    "lg2.approx.ftz.f32": ("lg2.approx.ftz.f32 %f0, %f1;", 16, 50000, 1),
    "sin.approx.ftz.f32": ("sin.approx.ftz.f32 %f0, %f1;", 16, 50000, 1),
    "tanh.approx.f32": ("tanh.approx.f32 %f0, %f1;", 16, 20000, 1),
    "selp.b32": ("selp.b32 %r4, %r5, %r6, %p1;", 16, 100000, 1),
    "setp.lt.s64": ("setp.lt.s64 %p1, %from, %wide;", 16, 50000, 1),
    "sqrt.approx.ftz.f32": ("sqrt.approx.ftz.f32 %f0, %f1;", 16, 100000, 1),
    "rcp.approx.ftz.f32": ("rcp.approx.ftz.f32 %f0, %f1;", 16, 100000, 1),
    "fma.rn.f16x2": ("fma.rn.f16x2 %r4, %r5, %r6, %r4;", 16, 10000, 1),
    "setp.lt.ftz.f32": ("setp.lt.ftz.f32 %p1, %f0, %f1;", 16, 50000, 1),
    "mad.lo.s32": ("mad.lo.s32 %r4, %r5, %r6, %r4;", 16, 100000, 1),
    "ld.shared.f32": ("ld.shared.f32 %f3, [%at];", 16, 20000, 1),
    "st.shared.f32": ("st.shared.f32 [%at], %f3;", 16, 20000, 1),
    "ld.shared.v4.f32": ("ld.shared.v4.f32 {%f3,%f4,%f5,%f6}, [%at4];", 16, 20000, 1),
    "ld.global.f32": ("ld.global.f32 %f3, [%from];", 16, 20000, 1),
    "st.global.f32": ("st.global.f32 [%from], %f3;", 16, 20000, 1),
    "shfl.sync": ("shfl.sync.bfly.b32 %r4, %r5, 1, 31, -1;", 16, 20000, 1),
    "mma f16, integers": (MMA, 8, 20000, 2 * 16 * 8 * 16),
    "mma f16, fractions": ("FRACTIONS" + MMA, 8, 10000, 2 * 16 * 8 * 16),
    "wgmma m64n64k16 f16, integers": (WGMMA, 4, 4000, 2 * 16 * 64 * 16),
    "wgmma m64n64k16 f16, fractions": ("FRACTIONS" + WGMMA, 4, 2000, 2 * 16 * 64 * 16),
}

KERNEL = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 memory)
{
.reg .pred %p<4>; .reg .b32 %r<16>, %n, %at, %at4, %t; .reg .b64 %from, %wide, %desc; .reg .f32 %f<8>, %g<32>;
.shared .align 1024 .b8 tile[8192];
mov.u32 %t, %tid.x; ld.param.u64 %from, [memory]; mad.wide.u32 %from, %t, 4, %from;
mov.u32 %at, tile; mad.lo.u32 %at4, %t, 16, %at; mad.lo.u32 %at, %t, 4, %at;
mov.f32 %f0, 0f3F000000; mov.f32 %f1, 0f3F000000; mov.f32 %f2, 0f3F000000; mov.f32 %f3, 0f3F800000;
mov.b32 %r4, VALUE; mov.b32 %r5, VALUE; mov.b32 %r6, VALUE; mov.b32 %r7, VALUE; mov.b32 %r8, VALUE; mov.b32 %r9, VALUE;
ZERO
st.shared.v4.b32 [%at4], {%r4, %r4, %r4, %r4};
st.shared.v4.b32 [%at4+2048], {%r4, %r4, %r4, %r4};
fence.proxy.async; bar.sync 0;
mov.u32 %n, tile; and.b32 %n, %n, 0x3ffff; shr.u32 %n, %n, 4; cvt.u64.u32 %desc, %n;
or.b64 %desc, %desc, 0x1000080000;
st.global.f32 [%from], %f3;
mov.u32 %n, 0;
loop:
BODY
add.u32 %n, %n, 1; setp.lt.u32 %p0, %n, COUNT; @%p0 bra loop;
ret;
}
"""


def seconds(command: str, body: str, repetitions: int, count: int, folder: str) -> float:
    value = "0x3c003c00"  # 1 and 1 as f16x2
    if body.startswith("FRACTIONS"):
        body, value = body.removeprefix("FRACTIONS"), "0x35553955"  # 0.333 and 0.667
    # Accumulators begin at 0, so that sums of integers are integers.
    zero = " ".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4)) + "\n" if "mma" in body else ""
    text = KERNEL.replace("BODY", zero + "\n".join([body] * repetitions)).replace("COUNT", str(count)).replace("VALUE", value)
    text = text.replace("ZERO", " ".join(f"mov.f32 %g{i}, 0f00000000;" for i in range(32)))
    path = Path(folder) / "loop.ptx"
    path.write_text(text)
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = subprocess.run(
            [command, "emulate", str(path), "--grid", "1", "--block", "128", "--args", "memory:f32[256]=0", "--steps", str(10**15)],
            capture_output=True, text=True, cwd=folder,
        )  # fmt: skip
        if run.returncode != 0:
            sys.exit(f"{body}: {run.stdout}{run.stderr}")
        best = min(best, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/bin/tilewright")
    parser.add_argument("--only", help="rows whose name contains this")
    options = parser.parse_args()
    command = str(Path(options.command).resolve())
    print(f"{'instruction':<34} {'M warp instructions/s':>22} {'GFLOP/s':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (body, repetitions, count, flops) in ROWS.items():
            if options.only and options.only not in name:
                continue
            empty = seconds(command, "", 1, count, folder)
            spent = max(seconds(command, body, repetitions, count, folder) - empty, 1e-9)
            rate = 4 * repetitions * count / spent
            print(f"{name:<34} {rate / 1e6:>22.2f} {rate * flops / 1e9 if flops > 1 else 0:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
