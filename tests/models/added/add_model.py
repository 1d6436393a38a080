#!/usr/bin/env python3
"""Adds an architecture to a copy of the registry, following docs/adding-a-model.md: Arcee's AFM, whose MLP has no gate
and squares its activation. The build of tests/models compiles the copy and compares the tiny model that arcee.json
describes.

Usage: add_model.py SOURCE_FOLDER OVERLAY_FOLDER"""

import pathlib
import sys

NAME = "wick/models/registry.cpp"
# (the line before which the text is added, the text)
PLACES = [
    ("constexpr Architecture kArchitectures", """DecoderConfig arcee(const Metadata& m) {
  DecoderConfig c = llama_config(m);
  c.gated = false;
  c.activation = Activation::relu_squared;
  return c;
}

"""),
    ('    {"llama", ', '    {"arcee", "Arcee AFM", arcee},\n'),
]


def main():
    source, overlay = (pathlib.Path(p) for p in sys.argv[1:])
    lines = (source / NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    for anchor, added in PLACES:
        at = [i for i, line in enumerate(lines) if line.startswith(anchor)]
        if len(at) != 1:
            sys.exit(f"add_model: {NAME} has {len(at)} lines that begin with {anchor!r}")
        lines.insert(at[0], added)
    path = overlay / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
