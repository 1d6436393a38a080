#!/bin/sh
# sanitize_sample.sh [JOBS]: runs a sample of the tests under sanitizers, for CI; `make asan` and `make tsan` run all.
# ASan and UBSan: malformed files and texts, files that change, errors, graphs, and the CPU's reductions, norms and
# indexing with all their layouts. TSan: the thread pool, kernels that share it, and sessions, files and graphs that
# several threads use. The build takes most of the time, so it isn't optimized, has one instruction set and is done by
# clang, which takes half of g++'s time.
set -eu
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}

sample() {
  preset=$1-sample
  build=build/$preset
  test -e "$build/build.ninja" || cmake --preset "$preset" >"$build.log" 2>&1 || {
    cat "$build.log"
    exit 1
  }
  ninja -C "$build" -j "$jobs" sanitizer_sample
  # Without this check, a filter that no longer matches any test would pass.
  count=$("$build/bin/sanitizer_sample" --gtest_list_tests --gtest_filter="$2" | grep -c '^  ' || true)
  test "$count" -ge "$3" || {
    echo "sanitize_sample.sh: only $count tests are called $2; $3 or more should be" >&2
    exit 1
  }
  "$build/bin/sanitizer_sample" --gtest_brief=1 --gtest_filter="$2"
}

mkdir -p build
# Random calls of every op (tests/soak) run on one core while the TSan sample is built on the other.
soak() {
  ninja -C build/asan-sample -j "$jobs" op_soak
  build/asan-sample/bin/op_soak --seconds "${WICK_SOAK_SECONDS:-30}" --elems 3000
}

# All tests but the rows of the parity tests, and two layouts of each of these rows.
sample asan '*-Parity/*' 50
sample asan 'Parity/*.f16.stepped.cpu-v3:Parity/*.f32.sliced.cpu-v3' 30
soak &
soaking=$!
sample tsan 'ThreadPool*:Memory.ManyThreads:Parity.*threads*:SessionThreads.*:ChangingFile.ManyThreads*:*/Compile.*Threads*' 22
wait "$soaking"
