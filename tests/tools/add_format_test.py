#!/usr/bin/env python3
"""Adds the block format of docs/adding-a-format.md to a copy of the sources, with the code on that page, and compares the
values of random blocks with the page's reference. Fails if this takes more than three files, the test included.

Usage: add_format_test.py ROOT COMPILER"""
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_FILES = 3
CHECK = """
#include <cstdint>
#include <cstdio>
#include <random>

#include "tests/backend/block_reference.h"
#include "wick/math/quants.h"

int main() {
  using namespace wick;
  std::mt19937 random(1);
  int wrong = 0;
  for (int n = 0; n < 200; ++n) {
    math::BlockEX2 block;
    auto* bytes = reinterpret_cast<uint8_t*>(&block);
    for (size_t i = 0; i < sizeof block; ++i) bytes[i] = static_cast<uint8_t>(random());
    bytes[65] &= 0x3b;  // a finite scale
    float out[256];
    math::dequantize(block, out);
    for (int j = 0; j < 256; ++j) {
      const float expected = reference::block_value(DType::ex2, bytes, j);
      wrong += expected != out[j] || expected != math::value_of(block, j);
    }
  }
  std::printf("%s: %d of %d values are wrong\\n", name(DType::ex2).data(), wrong, 200 * 256);
  return wrong != 0 || info(DType::ex2).block_bytes != sizeof(math::BlockEX2);
}
"""


def insert(text, anchor, code):
    if text.count(anchor) != 1:
        sys.exit(f"add_format_test: {anchor!r} stands {text.count(anchor)} times")
    return text.replace(anchor, code + anchor)


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    block, row, case = re.findall(r"```cpp\n(.*?)```", (root / "docs/adding-a-format.md").read_text(encoding="utf-8"), re.DOTALL)
    edits = {
        "wick/math/code_blocks.h": [("/// Value j of a block, and all values", block + "\n"),
                                    ("#undef WICK_CODE_BLOCK", "WICK_CODE_BLOCK(BlockEX2)\n")],
        "wick/math/quants.def": [("#undef WICK_QUANT", row)],
        "tests/backend/block_reference.h": [("    default:\n      return std::numeric_limits", case)],
    }
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name)
        for path, changes in edits.items():
            text = (root / path).read_text(encoding="utf-8")
            for anchor, code in changes:
                text = insert(text, anchor, code)
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_text(text, encoding="utf-8")
        (copy / "check.cpp").write_text(CHECK, encoding="utf-8")
        subprocess.run([compiler, "-std=c++20", "-I", copy, "-I", root, copy / "check.cpp", root / "wick/base/dtype.cpp", "-lfmt", "-o",
                        copy / "check"], check=True)
        checked = subprocess.run([copy / "check"], check=False).returncode
    print(f"{len(edits)} files: {' '.join(edits)}")
    return 1 if checked or len(edits) > MOST_FILES else 0


if __name__ == "__main__":
    sys.exit(main())
