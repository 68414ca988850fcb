#!/usr/bin/env bash
# What this machine measures: the host side always, kernels against cuBLASLt where there is a GPU: bench.sh BIN
set -euo pipefail
bin=$1
"$bin/host_bench"
if "$bin/tilewright" doctor | grep '^ok  *GPU' >/dev/null; then
  "$bin/tilewright_bench" bench/problems/*.txt
else
  echo 'No GPU here: kernels were not measured. On a GPU: tilewright_bench bench/problems/hopper.txt'
fi
