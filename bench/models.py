#!/usr/bin/env python3
"""Makes the models of the benchmarks: SmolLM2-135M-Instruct as Q4_1 (as fetched), F32, F16, BF16,
Q4_0, Q5_0, Q8_0, Q4_K_M and Q6_K, with the peer's llama-quantize, in
${XDG_CACHE_HOME:-~/.cache}/wick/models/.

All of them are made from the Q4_1 file and have its values. They serve to compare two programs on the
same file, and say nothing about a type's quality. The rows of 576 aren't whole superblocks, so most of
Q4_K_M and Q6_K becomes Q5_0 and Q8_0. Existing files are kept. Prints JSON: {type: path}.
"""

import argparse
import json
import os
import struct

import harness

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K_M", "Q6_K"]


def looks_whole(path):
    """Returns whether the file has a GGUF header. Complete files are renamed into place, so it is complete then."""
    try:
        with open(path, "rb") as file:
            return struct.unpack("<4sI", file.read(8)) in ((b"GGUF", 2), (b"GGUF", 3))
    except (OSError, struct.error):
        return False


def ensure(types=None):
    """Makes the missing files. Returns {type: path}."""
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
