#!/usr/bin/env bash
# Runs clang-tidy on the sources of a build folder; any finding is an error.
# Usage: tidy.sh [--shard I/N] BUILD JOBS [PATTERN...]
# With --shard, only the I-th of N parts of the files is checked; parts are counted from 1. If I is `of-commit`, the time
# of the last commit determines the part, so that all parts are checked over time and a commit always has the same one.
# Version 16 is the first one that supports std::source_location of g++ 12.
set -euo pipefail
cd "$(dirname "$0")/.."
shard=1/1
if [ "${1:-}" = --shard ]; then
  shard=$2
  shift 2
fi
build=$1 jobs=$2
shift 2
part=${shard%/*} parts=${shard#*/}
if [ "$part" = of-commit ]; then
  seconds=$(git -c safe.directory='*' log -1 --format=%ct 2>/dev/null || date +%s)
  part=$((seconds % parts + 1))
fi
if [ $# -eq 0 ]; then
  mapfile -t files < <(find tilewright tools bench examples python -name '*.cpp' | sort)
  for ((i = part - 1; i < ${#files[@]}; i += parts)); do set -- "$@" "^$PWD/${files[i]//./[.]}\$"; done
fi
echo "clang-tidy: part $part of $parts, $# files"
[ $# -gt 0 ] || exit 0
exec run-clang-tidy-16 -quiet -clang-tidy-binary clang-tidy-16 -p "$build" -j "$jobs" \
  -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-unknown-pragmas "$@"
