#!/usr/bin/env bash
# Runs the benchmarks in the folder BIN: those of the host code and, on a GPU, kernels against cuBLASLt. Usage: bench.sh BIN
set -euo pipefail
bin=$1
"$bin/host_bench"
if "$bin/tilewright" doctor | grep '^ok  *GPU' >/dev/null; then
  "$bin/tilewright_bench" bench/problems/*.txt
else
  echo 'No GPU here: kernels were not measured. On a GPU: tilewright_bench bench/problems/hopper.txt'
fi
