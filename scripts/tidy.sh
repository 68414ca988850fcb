#!/usr/bin/env bash
# clang-tidy over what the build compiles: tidy.sh BUILD JOBS [PATTERN...]. Any finding fails.
# Version 16 is the first whose clang knows g++ 12's std::source_location.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 jobs=$2
shift 2
[ $# -gt 0 ] || set -- "$PWD/(tilewright|tools|bench|examples|python)/.*[.]cpp"
exec run-clang-tidy-16 -quiet -clang-tidy-binary clang-tidy-16 -p "$build" -j "$jobs" \
  -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-unknown-pragmas "$@"
