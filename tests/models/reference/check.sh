#!/bin/sh
# Compares the logits in data/ with those that transformers gives. WICK_TRANSFORMERS names a Python with the packages
# torch, transformers, gguf and, for adapters, peft, WICK_CONVERTER a folder with llama.cpp's convert_hf_to_gguf.py. Without them the test
# exits with 77 (skip).
set -eu
if [ -z "${WICK_TRANSFORMERS:-}" ] || [ -z "${WICK_CONVERTER:-}" ]; then
  echo "skipped: WICK_TRANSFORMERS and WICK_CONVERTER aren't set"
  exit 77
fi
HF_HUB_OFFLINE=1 "$WICK_TRANSFORMERS" "$(dirname "$0")/make_models.py" --converter "$WICK_CONVERTER" --check
if "$WICK_TRANSFORMERS" -c "import peft" 2>/dev/null; then
  HF_HUB_OFFLINE=1 "$WICK_TRANSFORMERS" "$(dirname "$0")/make_adapters.py" --check
fi
