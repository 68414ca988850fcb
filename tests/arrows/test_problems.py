#!/usr/bin/env python3
"""Rooms above op/ and plan/ work on any problem, not only on GEMMs: only the listed files may use op::Gemm.

A new kind of problem must not need code of its own in engine, registry, cache, tuning, bindings and command.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("registry", "kernels", "engine", "tune", "compile", "cache", "runtime", "emulator", "lower")
GEMM = re.compile(r"\bop::Gemm\b")

# Front ends that make a GEMM from a user's input, and lists of GEMMs for a family.
ALLOWED = {
    "tilewright/kernels/listed_kernels.cpp": "the problems whose kernels a listing without arguments has",
    "tilewright/kernels/listed_kernels.hpp": "the same",
    "python/bindings/arguments.cpp": "GemmArguments of the Python package",
    "python/bindings/arguments.hpp": "the same",
    "tools/cli/problem.cpp": "the options of `tilewright gemm`",
    "tools/cli/problem.hpp": "the same",
    "tools/cli/problem_file.cpp": "a JSON file whose operation is gemm",
    "tools/cli/find_command.cpp": "prints the problem of the options",
    "tools/cli/tune_command.cpp": "prints the problem of the options",
}


def main() -> int:
    files = [file for room in ROOMS for file in (ROOT / "tilewright" / room).rglob("*.[ch]pp")]
    files += [file for folder in ("python/bindings", "tools/cli") for file in (ROOT / folder).rglob("*.[ch]pp")]
    found = {str(file.relative_to(ROOT)): len(GEMM.findall(file.read_text())) for file in files}
    named = {file for file, count in found.items() if count > 0}
    for file in sorted(named - ALLOWED.keys()):
        print(f"{file} uses op::Gemm {found[file]} times: use op::Problem or op::GemmView instead")
    for file in sorted(ALLOWED.keys() - named):
        print(f"{file} no longer uses op::Gemm: remove it from the list in {pathlib.Path(__file__).name}")
    print(f"{len(files)} files, {len(named)} front ends use op::Gemm")
    return 0 if named == ALLOWED.keys() else 1


if __name__ == "__main__":
    sys.exit(main())
