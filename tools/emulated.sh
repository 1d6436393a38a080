#!/bin/sh
# emulated.sh BUILD [PROGRAM...]: runs all cases of the tests for GPUs on both emulated architectures, with all checks of the
# emulator. ctest takes each case on one of the two, and a sample of parity_test. Takes hours.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
programs=${*:-gpu_linear_test matmul_test linear_float_test graph_test models_test captured_rows_test attention_bound_test parity_test}
failed=0

# on ARCHITECTURE PROGRAM FILTER
on() {
  echo "$2 on $1"
  WICK_TEST_DEVICES=hip:0 sh tests/backend/on_emulator.sh "$PWD/build/emu/lib/libamdhip64.so.6" "$1" "$build/bin/$2" \
    --gtest_brief=1 --gtest_filter="$3" || failed=1
}
for program in $programs; do
  case $program in
  parity_test | attention_bound_test) filter='Parity/*hip*:Parity.*' ;;
  matmul_test | linear_float_test) filter='Parity/*hip*:Matmul.*:LinearFloat.*' ;;
  models_test) filter='ModelOnDevice.*:BatchTest.*:LogitSource.*:PeftAdapters.OfMagnitudes:PeftAdapters.OfSavedModules-*Spans*' ;;
  *) filter='*' ;;
  esac
  for architecture in gfx1100 gfx90a; do on $architecture "$program" "$filter"; done
done
exit $failed
