#!/usr/bin/env python3
"""Writes docs/emulator_coverage.md: which instructions of the PTX ISA the emulator executes.

    scripts/emulator_coverage.py            # rewrites the page
    scripts/emulator_coverage.py --check    # fails if the page is not what it would write

The instructions that are executed are the rows of tilewright/emulator/instructions/*.cpp. The list below has all
instructions of PTX ISA 9.0 that are valid for sm_80, sm_90 or sm_90a (chapter 9, "Instruction Set"), with the forms that
are refused and why.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/emulator_coverage.md"

TEXTURES = "textures and surfaces are not emulated"
VIDEO = "SIMD video instructions are emulated in software on these targets, and compilers do not emit them"
DEBUG = "the performance monitor is not emulated"

# section, instructions of the ISA, what is refused: {instruction: (form, reason)}; an empty form stands for all.
SECTIONS = [
    ("Integer arithmetic", "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi bmsk "
     "szext dp4a dp2a", {"mul24": (".hi", "compilers do not emit it"), "mad24": (".hi", "compilers do not emit it"),
                         "mad": (".hi.sat", "compilers do not emit it")}),
    ("Extended-precision integer arithmetic", "add.cc addc sub.cc subc mad.cc madc", {}),
    ("Floating point", "testp copysign add sub mul fma mad div abs neg min max rcp sqrt rsqrt sin cos lg2 ex2 tanh",
     {"min": (".xorsign.abs, three operands", "not implemented"), "max": (".xorsign.abs, three operands", "not implemented"),
      "fma": (".oob", "not implemented")}),
    ("Comparison and selection", "set setp selp slct", {"set": ("of f16x2 and bf16x2", "not implemented"),
                                                       "setp": ("of f16x2 and bf16x2", "not implemented")}),
    ("Logic and shift", "and or xor not cnot lop3 shf shl shr", {}),
    ("Data movement and conversion", "mov shfl.sync prmt ld ldu ld.global.nc st st.async st.bulk multimem.ld_reduce "
     "multimem.st multimem.red prefetch prefetchu applypriority discard createpolicy isspacep cvta cvt cvt.pack mapa "
     "getctarank cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk "
     "cp.reduce.async.bulk cp.async.bulk.prefetch cp.async.bulk.tensor cp.reduce.async.bulk.tensor "
     "cp.async.bulk.prefetch.tensor cp.async.bulk.commit_group cp.async.bulk.wait_group tensormap.replace tensormap.cp_fenceproxy",
     {"ld": (".b128", "not implemented"), "st": (".b128", "not implemented"), "mov": (".b128", "not implemented"),
      "isspacep": (".const", "constant variables have generic addresses of global memory here"),
      "cvt.pack": ("to s4, u4, s2 and u2", "not implemented"),
      "st.bulk": ("", "valid for sm_100 and later"), "st.async": ("", "not implemented"),
      "multimem.ld_reduce": ("", "there is one GPU"), "multimem.st": ("", "there is one GPU"),
      "multimem.red": ("", "there is one GPU")}),
    ("Textures and surfaces", "tex tld4 txq istypep suld sust sured suq",
     {name: ("", TEXTURES) for name in "tex tld4 txq istypep suld sust sured suq".split()}),
    ("Control flow", "bra brx.idx call ret exit", {"call": ("recursion", "calls are inlined")}),
    ("Synchronisation", "bar.sync bar.arrive bar.red barrier.sync barrier.arrive barrier.red bar.warp.sync "
     "barrier.cluster.arrive barrier.cluster.wait membar fence fence.proxy fence.mbarrier_init atom red red.async "
     "vote.sync match.sync activemask redux.sync griddepcontrol elect.sync",
     {"red.async": ("", "not implemented"), "atom": ("vectors (.v2, .v4, .v8) and .b128", "not implemented"), "red": ("vectors (.v2, .v4, .v8)", "not implemented"),
      "fence.proxy": ("proxies other than .async, .alias and .tensormap", "not implemented")}),
    ("mbarrier", "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive "
     "mbarrier.arrive_drop cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait mbarrier.pending_count", {}),
    ("Matrices of a warp", "wmma.load.a wmma.load.b wmma.load.c wmma.store.d wmma.mma mma mma.sp ldmatrix stmatrix "
     "movmatrix",
     {"mma": ("types e4m3, e5m2, s4, u4, b1; m8n8k4 of f16; m8n8k16", "not implemented"),
      "mma.sp": ("", "sparse matrices are not emulated"), "wmma.mma": ("types s4, u4, b1", "not implemented")}),
    ("Matrices of a warpgroup", "wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group wgmma.wait_group",
     {"wgmma.mma_async": ("type b1", "not implemented"), "wgmma.mma_async.sp": ("", "sparse matrices are not emulated")}),
    ("Stack", "stacksave stackrestore alloca",
     {name: ("", "local memory has a fixed size") for name in "stacksave stackrestore alloca".split()}),
    ("Video", "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 "
     "vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
     {name: ("", VIDEO) for name in "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 "
      "vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4".split()}),
    ("Other", "brkpt nanosleep pmevent trap setmaxnreg", {}),
]  # fmt: skip


def rows_of_the_emulator() -> set[str]:
    rows: set[str] = set()
    for path in sorted((ROOT / "tilewright/emulator/instructions").glob("*.cpp")):
        rows |= set(re.findall(r'OpcodeRow\{"([\w.:]+)"', path.read_text()))
    return rows


def is_executed(name: str, rows: set[str]) -> bool:
    """Whether a row has the instruction: the row's opcode is the name or more of it, or the name without modifiers."""
    parts = name.split(".")
    prefixes = {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
    return name in rows or any(row.startswith(name + ".") for row in rows) or bool(prefixes & rows)


def page() -> str:
    rows = rows_of_the_emulator()
    lines = [
        "# Instructions that the emulator executes",
        "",
        "`scripts/emulator_coverage.py` writes this page. It lists the instructions of PTX ISA 9.0 that are valid for sm_80,",
        "sm_90 or sm_90a. An instruction that is refused is a finding `unsupported_instruction` when it is executed; a kernel",
        "that has it in a branch which is not taken runs.",
        "",
    ]
    executed_total = refused_total = 0
    for section, names, refused in SECTIONS:
        lines += [f"## {section}", "", "| instruction | executed | refused |", "|---|---|---|"]
        for name in names.split():
            form, reason = refused.get(name, (None, ""))
            executed = is_executed(name, rows)
            if form == "":
                executed = False
            elif not executed:
                form, reason = "", "not implemented"
            executed_total += executed
            refused_total += not executed
            mark = "yes" if executed else "no"
            why = "" if form is None else (f"{form}: {reason}" if form else reason)
            lines.append(f"| `{name}` | {mark} | {why} |")
        lines.append("")
    lines.append(f"Executed: {executed_total} instructions. Refused in all forms: {refused_total}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("docs/emulator_coverage.md is not what scripts/emulator_coverage.py writes: run it")


if __name__ == "__main__":
    main()
