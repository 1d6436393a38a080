#!/bin/sh
# Usage: imatrix_transformers.sh WICK. WICK_TRANSFORMERS names a Python with the packages torch, transformers and gguf.
# Without it the test exits with 77 (skip).
set -eu
if [ -z "${WICK_TRANSFORMERS:-}" ]; then
  echo "skipped: WICK_TRANSFORMERS isn't set"
  exit 77
fi
HF_HUB_OFFLINE=1 "$WICK_TRANSFORMERS" "$(dirname "$0")/imatrix_transformers.py" --wick "$1"
