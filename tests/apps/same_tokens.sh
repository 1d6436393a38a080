#!/bin/sh
# same_tokens.sh WICK DEVICE TOKENS: checks that the model that WICK_TEST_MODEL names generates the
# same text on a device as on the CPU. Exits with 77 (skip) without a model.
set -eu
if [ -z "${WICK_TEST_MODEL:-}" ]; then
  echo "skipped: WICK_TEST_MODEL names no model"
  exit 77
fi
say() {
  WICK_REPRODUCIBLE=1 "$1" generate -m "$WICK_TEST_MODEL" -p "The three most important rules of good engineering are" \
    -n "$3" --temp 0 --ctx 64 --device "$2"
}
on_cpu=$(say "$1" cpu "$3")
on_device=$(say "$1" "$2" "$3")
echo "cpu: $on_cpu"
echo "$2: $on_device"
test -n "$on_cpu"
test "$on_cpu" = "$on_device"
