#!/usr/bin/env bash
# Demonstrates every step of one GEMM with the command in the folder BIN. Usage: demo.sh BIN
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

step 'Check this machine'
show doctor

step 'Describe a problem, find and rank the kernels that can compute it'
show find "${problem[@]}" | sed -n 1,12p

step 'Emit the best kernel as CUDA C++'
show emit "${problem[@]}" | sed -n 1,46p
echo '...'

step 'Compile with NVRTC'
show emit "${problem[@]}" --stats

step 'Execute the kernel, now from the cache, and verify the result against the reference'
show gemm "${problem[@]}" --verify

step 'Use random numbers instead of integers: the result is within the error bound'
show gemm "${problem[@]}" --distribution normal --seed 7 --verify

step 'List and verify the content-addressed cache'
show cache ls
show cache verify

step 'Do the same in C++: examples/00_gemm.cpp'
"$bin/example_00_gemm"

device=$("$bin/tilewright" gemm --m 1 --n 1 --k 1 | sed -n 's/^device *//p')
printf '\nThe demo ran on %s. Every result above was verified.\n' "$device"
