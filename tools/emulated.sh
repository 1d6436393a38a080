#!/bin/sh
# emulated.sh BUILD [PROGRAM...]: runs all cases of the tests for GPUs on both emulated architectures, with all checks of the
# emulator. Each tensor has memory of its own, so that the checks see where it ends; WICK_GPU_POOL=shared runs the tests with
# the usual blocks. A report of the emulator is a failure. ctest takes each case on one of the two architectures, a sample of
# parity_test, and samples with blocks of both kinds. Takes an hour or two.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
export WICK_GPU_POOL="${WICK_GPU_POOL:-exact}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
programs=${*:-gpu_ops_test gpu_layouts_test gpu_linear_test matmul_test linear_float_test graph_test models_test captured_rows_test \
  attention_bound_test parity_test}
failed=0

# on ARCHITECTURE PROGRAM FILTER
on() {
  echo "$2 on $1"
  WICK_TEST_DEVICES=hip:0 sh tests/backend/on_emulator.sh "$PWD/build/emu/lib/libamdhip64.so.6" "$1" "$build/bin/$2" \
    --gtest_brief=1 --gtest_filter="$3" >"$log" 2>&1 || failed=1
  cat "$log"
  if grep -q '^wick-emu: ' "$log"; then failed=1; fi
}
for program in $programs; do
  case $program in
  # Those left out store twice in one place on purpose, which is a race.
  parity_test | attention_bound_test)
    filter='Parity/*hip*:Parity.*-*.paged_attention.outside:*.store_in_pages.errors' ;;
  matmul_test | linear_float_test) filter='Parity/*hip*:Matmul.*:LinearFloat.*' ;;
  # WrongTablesAndPositions names positions on purpose that nothing wrote.
  models_test) filter='ModelOnDevice.*:BatchTest.*:LogitSource.*:PeftAdapters.OfMagnitudes:PeftAdapters.OfSavedModules-*Spans*'
    if [ "$WICK_GPU_POOL" = exact ]; then filter="$filter:*WrongTablesAndPositions"; fi ;;
  # With exact blocks, allocations during a capture reach the driver.
  captured_rows_test) if [ "$WICK_GPU_POOL" = exact ]; then filter='-*ForbiddenWork*'; else filter='*'; fi ;;
  *) filter='*' ;;
  esac
  for architecture in gfx1100 gfx90a; do on $architecture "$program" "$filter"; done
done
exit $failed
