#!/usr/bin/env bash
# Formats every C++ and CUDA source with clang-format; with --check, only reports the files that differ.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
find tilewright device tools tests examples bench python -regex '.*[.]\(hpp\|cpp\|cuh\)' -print0 |
  xargs --null --no-run-if-empty --max-procs=2 -n 20 clang-format "${mode[@]}"
