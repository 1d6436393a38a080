#!/usr/bin/env python3
"""Adds an architecture to copies of the sources, following docs/adding-a-model.md: GLM-4, in one file, and a tiny
model of it in the tests. The build of tests/models compiles the code that uses these copies and runs it.

Usage: add_model.py SOURCE_FOLDER OVERLAY_FOLDER"""

import pathlib
import sys

# (file, the line before which the text is added, the text)
PLACES = [
    ("wick/models/registry.cpp",
     "constexpr TensorNames kQueryKeyNorm",
     """DecoderConfig glm4(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.qkv_biases = true;
  return c;
}

constexpr TensorNames kGlm4{.attention_post_norm = "post_attention_norm",
                            .mlp_post_norm = "post_ffw_norm",
                            .gate_up = "ffn_up"};
"""),
    ("wick/models/registry.cpp",
     '    {"llama", ',
     '    {"glm4", "GLM 4", glm4, kGlm4},\n'),
    # The reference for the tests.
    ("tests/models/tiny_families.cpp",
     '      {"llama", ',
     """      {"glm4",
       {.rope_dims = 8,
        .architecture = "glm4",
        .qkv_biases = true,
        .post_norms = true,
        .fused_gate_up = true}},
"""),
]


def main():
    source, overlay = (pathlib.Path(p) for p in sys.argv[1:])
    files = {}
    for name, anchor, added in PLACES:
        lines = files.setdefault(
            name, (source / name).read_text(encoding="utf-8").splitlines(keepends=True))
        at = [i for i, line in enumerate(lines) if line.startswith(anchor)]
        if len(at) != 1:
            sys.exit(f"add_model: {name} has {len(at)} lines that begin with {anchor!r}")
        lines.insert(at[0], added)
    for name, lines in files.items():
        path = overlay / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
