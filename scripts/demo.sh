#!/usr/bin/env bash
# Walks one GEMM through every step, with the command's own output: demo.sh BIN
set -euo pipefail
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_CACHE_DIR=$work/cache  # empty, so that the first run compiles

step() { printf '\n== %s\n' "$1"; }
show() {
  printf '$ tilewright %s\n' "$*"
  "$bin/tilewright" "$@"
}
problem=(--m 512 --n 384 --k 256 --dtype f16 --transpose-b --epilogue relu)

step 'What this machine has'
show doctor

step 'Describe a problem, find and rank the kernels that can compute it'
show find "${problem[@]}" | sed -n 1,12p

step 'Emit: the numbers of the best one, as CUDA C++'
show emit "${problem[@]}" | sed -n 1,46p
echo '...'

step 'Compile with NVRTC, in this process'
show emit "${problem[@]}" --stats

step 'Execute, and verify against the reference: the cache has the kernel now'
show gemm "${problem[@]}" --verify

step 'Random numbers in place of integers: within the error bound'
show gemm "${problem[@]}" --fill normal --seed 7 --verify

step 'The cache: content-addressed, checked before use'
show cache ls
show cache verify

step 'The same from C++: examples/00_gemm.cpp'
"$bin/example_00_gemm"

device=$("$bin/tilewright" gemm --m 1 --n 1 --k 1 | sed -n 's/^device *//p')
printf '\nThe demo ran on %s. Every result above was verified.\n' "$device"
