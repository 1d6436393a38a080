#!/usr/bin/env python3
"""Make the model set of the benchmarks: SmolLM2-135M-Instruct as Q4_1 (as fetched), F32, F16, BF16,
Q4_0, Q5_0, Q8_0, Q4_K_M and Q6_K, by the peer's own llama-quantize, in
${XDG_CACHE_HOME:-~/.cache}/wick/models/.

All come from the Q4_1 file: their values are its values, which for a comparison of two programs on
the same file is as good as any, but says nothing of a type's own quality. Its rows of 576 are no
whole superblocks: most of Q4_K_M and Q6_K becomes Q5_0 and Q8_0. Files already there are kept.
Prints JSON: {type: path}.
"""

import argparse
import json
import os
import struct

import harness

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K_M", "Q6_K"]


def looks_whole(path):
    """Whether a GGUF header is there; files are renamed into place: a header means a whole file."""
    try:
        with open(path, "rb") as file:
            return struct.unpack("<4sI", file.read(8)) in ((b"GGUF", 2), (b"GGUF", 3))
    except (OSError, struct.error):
        return False


def ensure(types=None):
    """Makes what is missing; returns {type: path}."""
    base = harness.fetch_model.fetch()
    paths = {}
    for name in types or TYPES:
        if name == "Q4_1":
            paths[name] = str(base)
            continue
        path = base.with_name(f"SmolLM2-135M-Instruct.{name}.gguf")
        if not looks_whole(path):
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            try:
                harness.Child([harness.peer()["llama-quantize"], "--allow-requantize", base, part,
                               name, os.cpu_count() or 1])
                os.replace(part, path)
            finally:
                part.unlink(missing_ok=True)
        paths[name] = str(path)
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="TYPE", help=f"of {' '.join(TYPES)} (all)")
    options = parser.parse_args()
    unknown = set(options.types) - set(TYPES)
    if unknown:
        parser.error(f"unknown type {', '.join(sorted(unknown))}")
    print(json.dumps(ensure(options.types), indent=2))
    return 0


if __name__ == "__main__":
    harness.run_main(main)
