#!/usr/bin/env bash
# Runs clang-tidy on the sources of a build folder; any finding is an error. Usage: tidy.sh BUILD JOBS [PATTERN...]
# Version 16 is the first one that supports std::source_location of g++ 12.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 jobs=$2
shift 2
[ $# -gt 0 ] || set -- "$PWD/(tilewright|tools|bench|examples|python)/.*[.]cpp"
exec run-clang-tidy-16 -quiet -clang-tidy-binary clang-tidy-16 -p "$build" -j "$jobs" \
  -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-unknown-pragmas "$@"
