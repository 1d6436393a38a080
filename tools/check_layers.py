#!/usr/bin/env python3
"""Checks the architecture: includes follow layers.txt, vendor names only occur in their folders, and
public headers include no expensive headers. Prints each violation and exits with 1 if there is any."""
import argparse
import pathlib
import re
import sys

SOURCES = {".h", ".cpp", ".gpu", ".def", ".in"}
INCLUDE = re.compile(r'#include "(wick/[^"]+)"')
VENDOR = re.compile(r"\bcu[A-Z]\w*|\bhip[A-Z]\w*|__shfl|\bwarpSize\b|amdgcn")
VENDOR_HOMES = ("wick/backend/gpu/cuda/", "wick/backend/gpu/hip/",
                "wick/ir/print_", "emu/", "tests/emu/",
                "tests/backend/stand_in_", "bench/peers/", "wick/backend/gpu/kernels/device/")
HEAVY = re.compile(r"#include\s+[<\"](fmt/|nlohmann/|CLI/|pcre2)")


def read_layers(path):
    layers = {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            layers[words[0]] = set(words[1:])
    return layers


def layer_of(path, layers):
    """Returns the longest entry of layers.txt that contains this path in wick/, or the top folder."""
    parts = path.split("/")
    if parts[0] != "wick":
        return parts[0]
    for end in range(len(parts) - 1, 1, -1):
        name = "/".join(parts[1:end])
        if name in layers:
            return name
    return None


def is_public(path):
    return (path.startswith("wick/") and path.endswith(".h")
            and not path.startswith(("wick/backend/gpu/", "wick/models/hf/", "wick/io/json.h", "wick/text/json/"))
            and not (path.startswith("wick/backend/cpu/") and path != "wick/backend/cpu/cpu.h"))


def breaches(root):
    layers = read_layers(root / "layers.txt")
    for top in ("wick", "apps", "python", "bench", "tests", "examples", "emu"):
        for file in sorted((root / top).rglob("*")) if (root / top).exists() else []:
            if file.suffix not in SOURCES:
                continue
            path = file.relative_to(root).as_posix()
            layer = layer_of(path, layers)
            if layer is None and path.count("/") > 1:
                yield f"{path}: folder has no line in layers.txt"
                continue
            allowed = layers.get(layer, {"*"} if path.count("/") == 1 else set())
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                where = f"{path}:{number}"
                if match := INCLUDE.search(line):
                    target = layer_of(match[1], layers)
                    if target and "*" not in allowed and target != layer and target not in allowed:
                        yield f"{where}: {layer} must not include {match[1]}"
                if VENDOR.search(line) and not path.startswith(VENDOR_HOMES):
                    yield f"{where}: vendor name '{VENDOR.search(line)[0]}' outside its folders"
                if is_public(path) and HEAVY.search(line):
                    yield f"{where}: public headers include standard headers only"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(breaches(parser.parse_args().root))
    print("\n".join(found) if found else "layers: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
