#!/bin/sh
# aarch64_test.sh SOURCE BUILD: compiles wick's library for aarch64, without tests and command, to
# check that it doesn't depend on x86. Nothing is linked or optimized, so this machine's packages
# suffice: only their headers are read, which are the same on all architectures. See aarch64_compile.sh.
set -eu
command -v aarch64-linux-gnu-g++ >/dev/null || {
  echo "skipped: no aarch64-linux-gnu-g++ here"
  exit 77
}
cmake -S "$1" -B "$2" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$1/tests/tools/aarch64_compile.sh" -DWICK_PCH=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -Dfmt_DIR="/usr/lib/$(g++ -dumpmachine)/cmake/fmt" \
  -DWICK_BUILD_TESTS=OFF -DWICK_BUILD_APPS=OFF -DWICK_BUILD_BENCH=OFF >/dev/null
targets="wick_objects wick_kernels"
if command -v qemu-aarch64 >/dev/null && test -e /usr/src/googletest; then
  export WICK_AARCH64_RUN=1
  targets=wick_objects  # tools/aarch64_run compiles the CPU's kernels
fi
# shellcheck disable=SC2086
ninja -C "$2" -k 0 $targets
