#!/usr/bin/env bash
# Runs small kernels of sm90_gemm on the first GPU under compute-sanitizer: every schedule, cluster shape and kind of
# split-K, on ragged problems of each element size, with D stored by TMA and by plain stores; then a few random problems,
# some of them with operands that are loaded by plain loads.
#   tests/gpu/sanitizer.sh [BIN_DIR [TOOL...]]     default: build/bin memcheck racecheck; other tools: synccheck initcheck
# FILTER, a filter of googletest, selects other tests of test_conformance. Exit status: 0 when nothing was found, 1 when
# there are findings, 2 when the tests could not be run. Logs are written to BIN_DIR/../sanitizer.
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${1:-build/bin}
tools=("${@:2}")
[ ${#tools[@]} -gt 0 ] || tools=(memcheck racecheck)
filter=${FILTER:-*Sm90Designs.AreExactForEveryType*:*Sm90Designs.StoreAnyWidth*:*RandomProblems*}
logs=$bin/../sanitizer

for candidate in "$(command -v compute-sanitizer)" "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
  [ -x "$candidate" ] && sanitizer=$candidate && break
done
if [ -z "${sanitizer:-}" ]; then
  echo "sanitizer.sh: no compute-sanitizer on the PATH or below CUDA_HOME: install cuda-sanitizer-13-0" >&2
  exit 2
fi

mkdir -p "$logs"
export TILEWRIGHT_DEVICES=cuda:0 TILEWRIGHT_CACHE_DIR=$logs/cache
export TILEWRIGHT_RANDOM_PROBLEMS=${TILEWRIGHT_RANDOM_PROBLEMS:-12}
tests=("$bin/test_conformance" --gtest_brief=1 "--gtest_filter=$filter")

# A first run without a tool compiles the kernels and shows that the tests pass by themselves.
if ! "${tests[@]}" >"$logs/plain.log" 2>&1 || grep -q SKIPPED "$logs/plain.log" ||
   ! grep -Eq 'PASSED  \] [1-9]' "$logs/plain.log"; then
  tail -n 20 "$logs/plain.log"
  echo "sanitizer.sh: the tests do not pass without a tool either: there is no GPU, or see $logs/plain.log" >&2
  exit 2
fi
echo "without a tool: $(grep -F '[  PASSED  ]' "$logs/plain.log")"

worst=0
for tool in "${tools[@]}"; do
  log=$logs/$tool.log
  "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 1000 --log-file "$log" "${tests[@]}" >"$logs/$tool.out" 2>&1
  status=$?
  summary=$(grep -hE '(ERROR|RACECHECK) SUMMARY' "$log" | sed 's/^=* *//')
  echo "$tool: exit status $status, ${summary:-no summary}"
  [ $status -eq 0 ] && [ -n "$summary" ] && ! grep -qE 'SUMMARY: [1-9]' "$log" && continue
  worst=1
  # Prints the kernels with findings, their numbers, and the first findings.
  grep -ohE '(sm90|sm80|simt)_gemm_[a-z0-9_]+' "$log" | sort | uniq -c | sort -rn | head -n 20
  grep -vE 'SUMMARY|Host Frame|^=*$' "$log" | head -n 40
  tail -n 5 "$logs/$tool.out"
done
[ $worst -eq 0 ] && echo "nothing found"
exit $worst
