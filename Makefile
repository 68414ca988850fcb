# The front door. Each target installs what it lacks on Debian 12 (scripts/bootstrap.sh) and says what it does.
BUILD := build
JOBS := $(shell nproc)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_ABSSTDERR := 1

.DEFAULT_GOAL := help
.PHONY: help configure build demo test sanitize threads format lint bench docs clean

help:
	@echo "make demo      from a fresh Debian 12 to a verified GEMM: on the GPU if there is one, else on the emulator"
	@echo "make test      build everything and run every test that this machine can run"
	@echo "make sanitize  the host tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make threads   the tests of many threads under ThreadSanitizer"
	@echo "make format    rewrite the C++ and CUDA sources in the project's format"
	@echo "make lint      check the format, the room arrows and clang-tidy"
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

test: build
	@scripts/bootstrap.sh test
	@PATH="$$PATH:$$(echo $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/cu13/bin)" \
	  ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

sanitize:
	@scripts/bootstrap.sh build
	@cmake --preset sanitize -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
	@cmake --build $(BUILD)/sanitize --parallel $(JOBS)
	@ctest --test-dir $(BUILD)/sanitize --output-on-failure --parallel $(JOBS) --label-regex unit

threads:
	@scripts/bootstrap.sh build
	@cmake --preset threads -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
	@cmake --build $(BUILD)/threads --parallel $(JOBS) --target test_registry test_kernels test_cache test_engine test_conformance
	@for test in registry kernels cache engine conformance; do \
	  $(BUILD)/threads/bin/test_$$test --gtest_filter='*Thread*:*AtOnce*' --gtest_brief=1 || exit 1; done

format:
	@scripts/bootstrap.sh lint
	@scripts/format.sh

lint: configure
	@scripts/bootstrap.sh lint
	@scripts/format.sh --check
	@python3 tests/arrows/test_arrows.py
	@scripts/tidy.sh $(BUILD) $(JOBS)

bench: build
	@scripts/bench.sh $(BUILD)/bin

docs:
	@scripts/bootstrap.sh docs
	@mkdir -p $(BUILD)/docs
	@doxygen docs/Doxyfile
	@echo "open $(BUILD)/docs/html/index.html"

clean:
	@rm -rf $(BUILD)
