#!/usr/bin/env python3
"""Makes a code object for gfx942 one for gfx950, which has nearly all of its instructions.

  retarget.py FROM TO

clang 19 doesn't know gfx950. The ELF header and the metadata name the chip.
"""

import pathlib
import struct
import sys

FLAGS_AT = 48  # e_flags of a 64-bit ELF file
MACH_MASK, GFX942, GFX950 = 0xff, 0x4c, 0x4f


def main():
    code = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
    flags, = struct.unpack_from("<I", code, FLAGS_AT)
    if flags & MACH_MASK != GFX942:
        sys.exit(f"{sys.argv[1]} isn't for gfx942")
    struct.pack_into("<I", code, FLAGS_AT, flags & ~MACH_MASK | GFX950)
    name = b"amdgcn-amd-amdhsa--gfx942"
    if name not in code:
        sys.exit(f"the metadata of {sys.argv[1]} names no chip")
    pathlib.Path(sys.argv[2]).write_bytes(code.replace(name, name.replace(b"gfx942", b"gfx950")))


if __name__ == "__main__":
    main()
