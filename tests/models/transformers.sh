#!/bin/sh
# transformers.sh WRITER...: compares the logits in data/ with those that transformers gives for the
# models that these programs write. WICK_TRANSFORMERS names a Python with the packages torch,
# transformers and gguf. Without it the test exits with 77 (skip).
set -eu
if [ -z "${WICK_TRANSFORMERS:-}" ]; then
  echo "skipped: WICK_TRANSFORMERS names no Python with torch, transformers and gguf"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for writer; do "$writer" --families "$folder"; done
HF_HUB_OFFLINE=1 "$WICK_TRANSFORMERS" "$(dirname "$0")/transformers_logits.py" "$folder"
