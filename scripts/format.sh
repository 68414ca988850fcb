#!/usr/bin/env bash
# Rewrites every C++ and CUDA source in the project's format; with --check, only says which ones differ.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
find tilewright device tools tests examples bench python -regex '.*[.]\(hpp\|cpp\|cuh\)' -print0 |
  xargs --null --no-run-if-empty --max-procs=2 -n 20 clang-format "${mode[@]}"
