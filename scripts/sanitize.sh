#!/usr/bin/env bash
# Tests under sanitizers: sanitize.sh address|thread I/N JOBS runs the I-th of N parts of the test programs, counted from 1.
# address: runs the unit tests, the fault tests and the fuzzing corpora under AddressSanitizer and
# UndefinedBehaviorSanitizer. thread: runs the tests that start threads under ThreadSanitizer.
# Only the programs of the part and the libraries that they link are built.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizer=$1 part=${2%/*} parts=${2#*/} jobs=$3
case $sanitizer in
  # In the order of importance: first the programs that read untrusted files, then the rooms that most code depends on.
  address) preset=sanitize filter='*'
    programs=(fault cache compile layout op base cli registry plan arch lower runtime kernels engine tune emulator) ;;
  thread) preset=threads filter='*Thread*:*AtOnce*'
    programs=(cache engine tune registry kernels conformance) ;;
  *) echo "sanitize: unknown sanitizer '$sanitizer'" >&2; exit 2 ;;
esac
build=build/$preset
cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
for ((i = part - 1; i < ${#programs[@]}; i += parts)); do
  program=test_${programs[i]}
  target=$program
  [ "$sanitizer" = thread ] || target="$program $(case ${programs[i]} in
    layout) echo expression_replay ;; op) echo epilogue_replay problem_replay ;; compile) echo artifact_replay ;;
    cache) echo bundle_replay tuning_records_replay ;; emulator) echo ptx_replay ;; cli) echo npy_replay ;; esac)"
  # shellcheck disable=SC2086  # several targets
  cmake --build "$build" --parallel "$jobs" --target $target
  echo "sanitize: $program"
  "$build/bin/$program" --gtest_filter="$filter" --gtest_brief=1
  for replay in ${target#"$program"}; do "$build/bin/$replay" --mutations 2000 "tests/fuzz/corpus/${replay%_replay}"; done
done
