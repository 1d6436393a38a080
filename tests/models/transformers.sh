#!/bin/sh
# transformers.sh WRITER...: compares the logits in data/ with those that transformers gives for the
# models that these programs write.
# WICK_TRANSFORMERS names a Python that has the packages torch, transformers and gguf. 77, a skip, without one.
set -eu
if [ -z "${WICK_TRANSFORMERS:-}" ]; then
  echo "skipped: WICK_TRANSFORMERS names no Python with torch, transformers and gguf"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for writer; do "$writer" --families "$folder"; done
HF_HUB_OFFLINE=1 "$WICK_TRANSFORMERS" "$(dirname "$0")/transformers_logits.py" "$folder"
