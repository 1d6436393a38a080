# make run  [PROMPT="…"] [ARGS="…"]   builds wick and generates text with a small model
# make test                           builds and runs all tests
# make sanitize-sample                builds and runs a sample of the tests under sanitizers; part of make test
# make soak   [DEVICE=cpu] [SECONDS=60] [SEED=today]   calls every op at random and checks the results
# make aarch64                        builds wick for aarch64 and runs the tests of CPU kernels by qemu-user
# make emulated                       runs all cases of the GPU tests on both emulated architectures; takes an hour or two
# make amd  [ALL=--all]               runs wick on AMD's own runtime, and AMD's libraries on the emulator; writes docs/amd.md
# make parity                         runs the whole parity suite and writes its summary, build/parity.md
BUILD  := build/release
PROMPT ?= The three most important rules of good engineering are
# In the environment, a prompt may contain quotes and dollars.
export PROMPT
ARGS   ?= -n 128 --seed 1
JOBS   ?= $(shell nproc)

# Kernels for the cards of this machine are enough to run a model. Tests need those of the emulated chips, too.
GPUS := $(if $(filter-out run,$(MAKECMDGOALS)),here,cards)

SOAK_DEVICE  := $(or $(DEVICE),cpu)
SOAK_SECONDS := $(or $(SECONDS),60)
SOAK_SEED    := $(or $(SEED),today)

.PHONY: run test soak sanitize-sample aarch64 emulated amd parity build configure emu deps cuda asan tsan clean help

help:
	@sed -n '1,8s/^# //p' Makefile

run: configure
	@ninja -C $(BUILD) -j $(JOBS) wick_cli
	@model=$$(python3 tools/fetch_model.py | tail -n 1) && \
	  $(BUILD)/bin/wick generate -m "$$model" -p "$$PROMPT" $(ARGS)

test: build emu
	@ninja -C $(BUILD) -j $(JOBS) wick_tests
	@model=$$(python3 tools/fetch_model.py | tail -n 1) && \
	  WICK_TEST_MODEL="$$model" ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
	@$(MAKE) --no-print-directory sanitize-sample

sanitize-sample: deps
	@tools/sanitize_sample.sh $(JOBS)

# To use hip:0 without an AMD GPU, set WICK_HIP_LIBRARY=build/emu/lib/libamdhip64.so.6, which names
# the emulator.
soak: build
	@ninja -C $(BUILD) -j $(JOBS) op_soak
	$(BUILD)/bin/op_soak --device $(SOAK_DEVICE) --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED)

aarch64: build
	@tools/aarch64.sh $(JOBS)

# ctest runs each case on one of the two.
emulated: build emu
	@ninja -C $(BUILD) -j $(JOBS) wick_tests
	@tools/emulated.sh $(BUILD)

# Runs a selection of the suites, or every one with ALL=--all. Fetches packages (3 GB) the first time.
amd: build emu
	@ninja -C $(BUILD) -j $(JOBS) wick_tests
	@python3 tools/real_rocm.py --build $(BUILD) test $(ALL) --jobs $(JOBS) --record; failed=$$?; \
	  python3 tools/amd_suites.py --build $(BUILD) test $(ALL) --jobs $(JOBS) --record; libraries=$$?; \
	  python3 tools/real_rocm.py page && exit $$((failed + libraries))

parity: build
	@ninja -C $(BUILD) -j $(JOBS) wick_tests
	python3 tools/parity.py --build $(BUILD) --jobs $(JOBS) --out build/parity.md

build: configure
	@ninja -C $(BUILD) -j $(JOBS)

configure: deps cuda $(BUILD)/build.ninja
	@if [ $(GPUS) = here ] && grep -q '^WICK_GPU_ARCHITECTURES:STRING=cards$$' $(BUILD)/CMakeCache.txt; then \
	  cmake -S . -B $(BUILD) -DWICK_GPU_ARCHITECTURES=here >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }; fi

# The AMD emulator is a project of its own: see emu/README.md.
emu: deps build/emu/build.ninja
	@ninja -C build/emu -j $(JOBS)

build/emu/build.ninja:
	@mkdir -p build && cmake -S emu -B build/emu -G Ninja -DCMAKE_C_COMPILER=clang-19 \
	  -DCMAKE_CXX_COMPILER=clang++-19 >build/emu.log 2>&1 || { cat build/emu.log; exit 1; }

# Installs what is missing. Prints nothing and asks nothing if all is installed.
deps:
	@tools/install_deps.sh

# If NVIDIA's driver is installed and nvcc isn't, fetches the compilers for NVIDIA's kernels. Prints
# nothing otherwise.
cuda: deps
	@python3 tools/install_cuda.py --for-build $(BUILD)

$(BUILD)/build.ninja: | cuda
	@mkdir -p build && cmake --preset release -DWICK_GPU_ARCHITECTURES=$(GPUS) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

# Tests on emulated devices run without leak detection, which their memory and forks crash, and
# without checks of the emulator itself, which is built without a sanitizer.
asan tsan: export TSAN_OPTIONS := suppressions=$(CURDIR)/tools/tsan.supp
asan tsan: deps
	cmake --preset $@
	ninja -C build/$@ -j $(JOBS) all wick_tests
	@model=$$(python3 tools/fetch_model.py | tail -n 1) && export WICK_TEST_MODEL="$$model" && \
	  { ctest --test-dir build/$@ --output-on-failure -j $(JOBS) -E '^gpu/'; first=$$?; } && \
	  ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build/$@ --output-on-failure -j $(JOBS) -R '^gpu/' && \
	  exit $$first

clean:
	rm -rf build
