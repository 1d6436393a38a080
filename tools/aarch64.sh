#!/bin/sh
# aarch64.sh [JOBS]: builds wick for aarch64 and runs all tests of CPU kernels, and a model, on processors that qemu-user
# emulates. The model must generate the text that this machine's build generates. Takes hours.
set -eu
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
root=$PWD/build/aarch64-root
build=build/aarch64
mkdir -p build
tools/aarch64_root.sh "$root"
cmake -S . -B $build -G Ninja --toolchain cmake/aarch64.cmake -DWICK_AARCH64_ROOT="$root" -DWICK_GPU=OFF -DWICK_PCH=OFF \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" >$build.log 2>&1 || {
  cat $build.log
  exit 1
}
programs="linear_quantized_test linear_float_test matmul_test quantize_test parity_test
cpu_runtime_test models_test"
# shellcheck disable=SC2086
ninja -C $build -j "$jobs" wick_cli $programs

qemu="qemu-aarch64 -L /usr/aarch64-linux-gnu \
  -E LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu"

# tests PROCESSOR PROGRAM FILTER: runs a program's tests in shards, JOBS at a time
tests() {
  echo "$2 on $1"
  shards=$((8 * jobs))
  # shellcheck disable=SC2086
  seq 0 $((shards - 1)) | xargs -P "$jobs" -I{} env GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX={} \
    $qemu -cpu "$1" "$build/bin/$2" --gtest_brief=1 --gtest_filter="$3"
}
for program in $programs; do
  case $program in
  # qemu-user ends a child of fork that starts threads ("assertion failed: (cpu == current_cpu)").
  cpu_runtime_test) filter='-*AChildOfForkHasWorkingRegions:*ForkWhileAnotherThreadsRegionRuns' ;;
  *) filter='*' ;;
  esac
  tests max "$program" "$filter"
done
for processor in cortex-a53 cortex-a72 neoverse-n1; do
  tests $processor linear_quantized_test '*'
done

model=$(python3 tools/fetch_model.py | tail -n 1)
generate="generate -m $model --temp 0 -n 24 -p The"
# shellcheck disable=SC2086
expected=$(build/release/bin/wick $generate)
for processor in cortex-a53 neoverse-n1 max; do
  echo "wick generate on $processor"
  # shellcheck disable=SC2086
  text=$($qemu -cpu $processor $build/bin/wick $generate)
  test "$text" = "$expected" || {
    printf 'aarch64.sh: other text on %s:\n%s\nexpected:\n%s\n' "$processor" "$text" "$expected" >&2
    exit 1
  }
done
