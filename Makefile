# The front door. Each target installs what it lacks on Debian 12 (scripts/bootstrap.sh) and says what it does.
BUILD := build
JOBS := $(shell nproc)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_ABSSTDERR := 1

.DEFAULT_GOAL := help
# For lint, sanitize and threads: which part of their work, as 1/4 is the first of four.
SHARD := 1/1
# nvcc and ptxas of the tests' wheels, where no toolkit has them.
CTEST = PATH="$$PATH:$$(echo $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/cu13/bin)" \
  ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

.PHONY: help configure build demo check test sanitize threads format lint bench docs clean

help:
	@echo "make demo      from a fresh Debian 12 to a verified GEMM: on the GPU if there is one, else on the emulator"
	@echo "make check     after each edit: build what changed, then the unit tests, format, room arrows, and a sample of the"
	@echo "               conformance and Python tests: under 3 minutes on two cores where ccache has what did not change"
	@echo "make test      what CI runs: build everything, every test that this machine can run, and clang-tidy on a 32nd of"
	@echo "               the files, another one with each commit: at most 25 minutes on two cores with nothing cached"
	@echo "make sanitize  the host tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make threads   the tests of many threads under ThreadSanitizer"
	@echo "make format    rewrite the C++ and CUDA sources in the project's format"
	@echo "make lint      check the format, the room arrows and clang-tidy"
	@echo "               lint, sanitize and threads take SHARD=2/6: the second of six parts of their work"
	@echo "make bench     measure this machine: compile, cache, find, emulator, and cuBLASLt side by side on a GPU"
	@echo "make docs      the reference of the headers, in build/docs/html"

configure:
	@scripts/bootstrap.sh build
	@cmake --preset default -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DTILEWRIGHT_PYTHON=ON >/dev/null

build: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

demo: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target tilewright_cli example_00_gemm
	@scripts/demo.sh $(BUILD)/bin

check: build
	@scripts/bootstrap.sh test
	@$(CTEST) --label-regex '^(unit|lint|smoke)$$'

test: build
	@scripts/bootstrap.sh test lint
	@$(CTEST)

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
