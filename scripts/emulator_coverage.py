#!/usr/bin/env python3
"""Writes docs/emulator_coverage.md: which instructions of the PTX ISA the emulator executes.

    scripts/emulator_coverage.py            # rewrites the page
    scripts/emulator_coverage.py --check    # fails if the page is not what it would write

The instructions that are executed are the rows of tilewright/emulator/instructions/*.cpp. The list below has all
instructions of PTX ISA 9.0 that are valid for sm_80, sm_90 or sm_90a (chapter 9, "Instruction Set"), with the forms that
are refused and why. The forms that are compared with a GPU are those of tests/differential/instruction_forms.txt.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/emulator_coverage.md"
FORMS = ROOT / "tests/differential/instruction_forms.txt"

TEXTURES = "textures and surfaces are not emulated"
DEBUG = "the performance monitor is not emulated"

# section, instructions of the ISA, what is refused: {instruction: (form, reason)}; an empty form stands for all.
SECTIONS = [
    ("Integer arithmetic", "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi bmsk "
     "szext dp4a dp2a", {}),
    ("Extended-precision integer arithmetic", "add.cc addc sub.cc subc mad.cc madc", {}),
    ("Floating point", "testp copysign add sub mul fma mad div abs neg min max rcp sqrt rsqrt sin cos lg2 ex2 tanh",
     {}),
    ("Comparison and selection", "set setp selp slct", {}),
    ("Logic and shift", "and or xor not cnot lop3 shf shl shr", {}),
    ("Data movement and conversion", "mov shfl.sync prmt ld ldu ld.global.nc st st.async st.bulk multimem.ld_reduce "
     "multimem.st multimem.red prefetch prefetchu applypriority discard createpolicy isspacep cvta cvt cvt.pack mapa "
     "getctarank cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk "
     "cp.reduce.async.bulk cp.async.bulk.prefetch cp.async.bulk.tensor cp.reduce.async.bulk.tensor "
     "cp.async.bulk.prefetch.tensor cp.async.bulk.commit_group cp.async.bulk.wait_group tensormap.replace tensormap.cp_fenceproxy",
     {"isspacep": (".const", "constant variables have generic addresses of global memory here"),
      "st.bulk": ("", "valid for sm_100 and later"),
      "multimem.ld_reduce": ("", "there is one GPU"), "multimem.st": ("", "there is one GPU"),
      "multimem.red": ("", "there is one GPU")}),
    ("Textures and surfaces", "tex tld4 txq istypep suld sust sured suq",
     {name: ("", TEXTURES) for name in "tex tld4 txq istypep suld sust sured suq".split()}),
    ("Control flow", "bra brx.idx call ret exit", {"call": ("recursion into many levels", "calls are inlined")}),
    ("Synchronisation", "bar.sync bar.arrive bar.red barrier.sync barrier.arrive barrier.red bar.warp.sync "
     "barrier.cluster.arrive barrier.cluster.wait membar fence fence.proxy fence.mbarrier_init atom red red.async "
     "vote.sync match.sync activemask redux.sync griddepcontrol elect.sync",
     {}),
    ("mbarrier", "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive "
     "mbarrier.arrive_drop cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait mbarrier.pending_count", {}),
    ("Matrices of a warp", "wmma.load.a wmma.load.b wmma.load.c wmma.store.d wmma.mma mma mma.sp ldmatrix stmatrix "
     "movmatrix",
     {"mma.sp": ("types s4, u4", "compilers do not emit it")}),
    ("Matrices of a warpgroup", "wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group wgmma.wait_group",
     {}),
    ("Stack", "stacksave stackrestore alloca",
     {name: ("", "local memory has a fixed size") for name in "stacksave stackrestore alloca".split()}),
    ("Video", "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 "
     "vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
     {name: (forms, "ptxas computes something else than the ISA says") for names, forms in (
         ("vadd", "part .h1 of d, .sat of a part, .sat of u32"),
         ("vabsdiff", "part .h1 of d, .sat of a part, .sat of u32 from s32"),
         ("vsub vmin vmax", "part .h1 of d, .sat of a part"),
         ("vshl", "part .h1 of d, .sat"),
         ("vshr", "part .h1 of d, .sat of a part, .sat of u32"),
         ("vset", "part .h1 of d, .min and .max of s32"),
         ("vmad", ".sat, .shr7 and .shr15 of u32 factors"),
     ) for name in names.split()}),
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


def expanded(line: str, chosen: dict[str, int]) -> list[str]:
    """The forms of a line of FORMS: {a,b} stands for a and for b; groups of one number are chosen together."""
    for group in re.finditer(r"\{([^{}%]*)\}", line):
        number, _, inside = group[1].rpartition(":") if re.match(r"\d:", group[1]) else ("", "", group[1])
        choices = inside.split(",")
        picks = [chosen[number]] if number in chosen else range(len(choices))
        forms = []
        for pick in picks:
            text = line[: group.start()] + choices[pick] + line[group.end() :]
            forms += expanded(text, {**chosen, number: pick} if number else chosen)
        return forms
    return [line]


def compared_opcode(form: str) -> str:
    """The opcode of the atomic operation, or of the statement that writes %d0, or of the first that is no store."""
    body = re.split(r" \| ", form)[2]
    if "%" not in body:
        return body.split()[0]
    statements = [statement.strip() for statement in body.split(";")]
    writers = [each for each in statements if "%d0" in each and not each.startswith("ld.")]
    others = [each for each in statements if not each.startswith("st.")]
    atomics = [each for each in statements if each.startswith("atom.")]
    return (atomics or writers or others)[0].split()[0]


def is_instruction(name: str, section: str, opcode: str) -> bool:
    """Whether the opcode is the instruction `name` of a section; add, sub, ... are in several sections."""
    types = opcode.replace("::ordered_metadata", "").split(".")[1:]
    is_float = any(re.fullmatch(r"b?f\d+(x2)?", each) for each in types)
    if name == "mad" and "cc" in types:
        return False
    if section in ("Integer arithmetic", "Floating point") and name not in ("testp", "copysign"):
        if is_float != (section == "Floating point") or (name in ("add", "sub") and "cc" in types):
            return False
    parts = name.split(".")
    if ("sp" in types) != ("sp" in parts):
        return False
    if parts[0] == "cvt" and ("pack" in types) != ("pack" in parts):
        return False
    modifiers = [part for part in parts[1:] if part not in ("sync", "a", "b")]
    return opcode.split(".")[0] == parts[0] and all(part in types for part in modifiers)


def page() -> str:
    rows = rows_of_the_emulator()
    lines_of_forms = [line for line in FORMS.read_text().split("\n") if line.strip() and not line.startswith("#")]
    compared = [compared_opcode(form) for line in lines_of_forms for form in expanded(line, {})]
    lines = [
        "# Instructions that the emulator executes",
        "",
        "`scripts/emulator_coverage.py` writes this page. It lists the instructions of PTX ISA 9.0 that are valid for sm_80,",
        "sm_90 or sm_90a. An instruction that is refused is a finding `unsupported_instruction` when it is executed; a kernel",
        "that has it in a branch which is not taken runs.",
        "",
        "The column \"compared\" is the number of forms (modifiers, types and kinds of values) whose results are compared with",
        f"a GPU, with special values and random bit patterns: `test_gpu --gtest_filter='*Differential*'`. There are {len(compared)}.",
        "",
    ]
    executed_total = refused_total = compared_total = 0
    for section, names, refused in SECTIONS:
        lines += [f"## {section}", "", "| instruction | executed | compared | refused |", "|---|---|---|---|"]
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
            forms = sum(is_instruction(name, section, opcode) for opcode in compared)
            compared_total += forms
            lines.append(f"| `{name}` | {mark} | {forms or ''} | {why} |")
        lines.append("")
    if compared_total != len(compared):
        sys.exit(f"{len(compared)} forms of {FORMS} belong to {compared_total} instructions of the list")
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
