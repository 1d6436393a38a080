#!/bin/sh
# aarch64_run.sh SOURCE BUILD: builds tests/aarch64 with the cross compiler and runs a sample of it on processors that
# qemu-user emulates: one without dot products, one with them, and one with products of matrices, too. `make aarch64`
# runs all tests of CPUs.
set -eu
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $program >/dev/null || {
    echo "skipped: no $program here"
    exit 77
  }
done
test -e /usr/src/googletest || {
  echo "skipped: no /usr/src/googletest here"
  exit 77
}
cmake -S "$1" -B "$2" -G Ninja --toolchain "$1/cmake/aarch64.cmake" -DWICK_ONLY_BACKENDS=ON -DWICK_GPU=OFF \
  -DWICK_PCH=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" \
  -Dfmt_DIR="/usr/lib/$(g++ -dumpmachine)/cmake/fmt" >/dev/null
ninja -C "$2" aarch64_sample

# on PROCESSOR ISAS COUNT FILTER: runs tests, of which at least COUNT must exist and pass.
on() {
  echo "$1: $2"
  out=$(WICK_TEST_ISAS=$2 qemu-aarch64 -cpu "$1" -L /usr/aarch64-linux-gnu "$BUILD/bin/aarch64_sample" \
    --gtest_filter="Isas.*$4") || {
    echo "$out" | grep -v '^\[ *\(RUN\|OK\|-*\) *\]'
    exit 1
  }
  passed=$(echo "$out" | sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*.$/\1/p')
  echo "$passed tests"
  test "$passed" -ge "$3" || {
    echo "aarch64_run.sh: there should be $3 tests or more" >&2
    exit 1
  }
}
BUILD=$2
# linear ISA [TYPE...]: the tests of gemms with weights of these types, or of all.
linear() {
  isa=$1
  shift
  for type in "${@:-*}"; do
    for case in f32.50x288 f32.33x1280 f16.parts bf16.special f32.extreme; do
      printf ':Parity/linear.%s.%s.cpu?%s' "$type" $case "$isa"
    done
  done
}
# Decoded types use the kernels of the first processor on the others, too.
own=$(sed -n 's/^WICK_QUANT(\([a-z0-9_]*\),.* own,.*/\1/p' "$1/wick/math/quants.def")
on cortex-a53 neon 110 "$(linear neon)"
# shellcheck disable=SC2086
on neoverse-n1 'neon neon-dotprod' 55 "$(linear neon?dotprod $own)"
others=
for row in add exp matmul softmax sum rms_norm; do
  others="$others:Parity/$row.f16.stepped.cpu?neon"
done
# shellcheck disable=SC2086
on max 'neon neon-dotprod neon-i8mm' 60 "$(linear neon?i8mm $own)$others"
