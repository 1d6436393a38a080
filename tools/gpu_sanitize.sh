#!/bin/sh
# gpu_sanitize.sh [BUILD [TOOL...]]
# Runs samples of the GPU tests under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck and
# synccheck, or the given tools. Prints a line for each. Exits with 1 if a tool found something, a
# run failed or took too long, and with 77 (skip) if compute-sanitizer is missing.
# WICK_SANITIZE_SECONDS: limit for one run, 600 by default. COMPUTE_SANITIZER names the program, and
# WICK_SANITIZE_LOGS the folder for its output.
set -u
build=${1:-build/release}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
limit=${WICK_SANITIZE_SECONDS:-600}
logs=${WICK_SANITIZE_LOGS:-$build/sanitize}
sanitizer=${COMPUTE_SANITIZER:-}
for place in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
    /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
  if [ -z "$sanitizer" ] && [ -x "$place" ]; then sanitizer=$place; fi
done
if [ -z "$sanitizer" ]; then
  echo "skipped: no compute-sanitizer (COMPUTE_SANITIZER names one)"
  exit 77
fi
export WICK_TEST_DEVICES=${WICK_TEST_DEVICES:-cuda:0}
mkdir -p "$logs"
failed=0

# check TOOL PROGRAM FILTER: does one run and prints one line.
check() {
  log=$logs/$1.$2.log
  started=$(date +%s)
  # synccheck counts the barriers that threads of a block wait at, and never discards them. With a
  # lower limit it aborts a kernel, and with four times this limit it runs out of memory.
  [ "$1" = synccheck ] && more="--num-cuda-barriers 1024" || more=
  # The exit code for findings must differ from those of tests.
  timeout -k 10 "$limit" "$sanitizer" --tool "$1" $more --error-exitcode 99 --print-limit 20 \
    "$build/bin/$2" --gtest_filter="$3" >"$log" 2>&1
  code=$?
  seconds=$(($(date +%s) - started))
  summary=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY' "$log" | tail -n 1 | sed 's/^=* *//')
  tests=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?.*/\1/p' "$log" | tail -n 1)
  case $code in
    0) verdict=clean ;;
    99) verdict=FOUND ;;
    124 | 137) verdict="TIME" ;;
    *) verdict="FAILED ($code)" ;;
  esac
  # A run without tests isn't clean.
  if [ "$verdict" = clean ] && { [ -z "$summary" ] || [ "${tests:-0}" = 0 ]; }; then verdict="NOTHING RAN"; fi
  [ "$verdict" = clean ] || failed=1
  printf '%-10s %-16s %-12s %3s tests %4d s  %s (%s)\n' "$1" "$2" "$verdict" "${tests:-0}" "$seconds" "$summary" "$log"
}

# Only the rows on the GPU run: the CPU's would take most of the time, and the tool can't check
# them. A colon separates filters.
rows='iota.bf16.* silu* add.* div.i16.* gelu_erf.* cast.f8e4m3.* cast.f32.* copy.* index_select.u8.* index_select.q* sum.bf16.*'
rows=$rows' sum.f32.* argmax.f32.* softmax.f16.* softmax.f32.* rms_norm.f32.* layer_norm.f32.* group_norm.f32.*'
rows=$rows' batch_norm.f32.* rope.f32.* attention.f32.*'
rows=$rows' conv2d.f16.* conv2d.f32.* conv2d_input.f16.* conv2d_input.f32.* conv2d_weight.f16.* conv2d_weight.f32.*'
rows=$rows' conv_transpose2d.bf16.* max_pool2d.f32.* max_pool2d_grad.f32.* avg_pool2d.f16.* avg_pool2d_grad.f32.*'
rows=$rows' upsample_nearest2d_grad.f32.* upsample_bilinear2d.f16.* upsample_bilinear2d_grad.f32.*'
rows=$rows' gather.f16.* scatter.f32.* scatter_add.bf16.* scatter_add.f32.* index_add.f32.* one_hot.f32.*'
rows=$rows' sort.bf16.* sort.f32.* argsort.i64.* topk.f32.* topk.bf16.* cumsum.f32.* cumsum.i16.* cumprod.f32.* cumprod.u8.*'
rows=$rows' prod.f32.* uniform.* normal.*'
parity='*cached_attention*:*quantize*:Parity.sample*:*paged_attention*:*scan_streams*:*channel_norm_streams*'
set -f
for row in $rows; do parity="$parity:Parity/$row$(echo "${WICK_TEST_DEVICES%%,*}" | tr : '?')"; done
set +f
for tool in "$@"; do
  check "$tool" parity_test "$parity"
  check "$tool" gpu_linear_test '*'
  check "$tool" models_test 'ModelOnDevice.*'
  check "$tool" gpu_ops_test '*'
  check "$tool" matmul_test '*f16.contiguous*cuda*:*f32.contiguous*cuda*'
  check "$tool" linear_float_test '*contiguous*cuda*'
done
exit $failed
