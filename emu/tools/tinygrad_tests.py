#!/usr/bin/env python3
"""Runs tinygrad's tests of AMD instructions, which come from hardware, on the emulator.

  tinygrad_tests.py --tinygrad FOLDER --library build/emu/lib/libwick_emu.so [--list] [PATTERN ...]

FOLDER holds a checkout of https://github.com/tinygrad/tinygrad. Its tests (test/amd/hw) hand machine
code to tinygrad's emulator through one function, run_asm. This script replaces that function: it puts
the code into a code object and launches it as a kernel. Exits with 1 if a test fails that isn't in
DIFFERENCES, or passes although it is.
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

# tinygrad's "rdna3" is RDNA3.5, and its "cdna" is CDNA4. LLVM 19 assembles gfx942 for gfx950.
CHIPS = {"rdna3": "gfx1151", "rdna4": "gfx1200", "cdna": "gfx950"}
ASSEMBLED_AS = {"gfx950": "gfx942"}
MACHINE = {"gfx950": 0x4f}  # the processor in the flags of an ELF file
CODE_BYTES = 1 << 16

# The tests for CDNA load the address of their results with s_load_dwordx2 s[92:93], s[80:81], s0, although they mean an
# offset of 0: the bit IMM of the first word is missing. tinygrad's emulator ignores s0, which some of the tests write.
WRONG_LOAD, RIGHT_LOAD = bytes.fromhex("281704c0"), bytes.fromhex("281706c0")

# Tests that fail because AMD's published text says otherwise.
ROW_BCAST = "RDNA has no DPP control row_bcast: AMD's documents of gfx10 and later reserve its number"
NAN_ESTIMATE = "V_DIV_FIXUP_F32 returns the estimate with the quotient's sign, which here is NaN, in AMD's pseudocode"
DIFFERENCES = {
    "test_dpp.TestVOPCDPP16.test_row_bcast15_materializes_vcc": ROW_BCAST,
    "test_vop3.TestDivFixup.test_div_fixup_f32_nan_estimate_overflow": NAN_ESTIMATE,
    "test_vop3.TestDivFixup.test_div_fixup_f32_nan_estimate_sign": NAN_ESTIMATE,
}

TEMPLATE = """.text
.globl code
.p2align 8
.type code,@function
code:
.fill {words}, 4, 0x5a5aa5a5
.rodata
.p2align 6
.amdhsa_kernel code
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_group_segment_fixed_size 65536
  .amdhsa_private_segment_fixed_size 65536
  .amdhsa_enable_private_segment 1
{more}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{chip}
amdhsa.kernels:
  - .name: code
    .symbol: code.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 65536
    .private_segment_fixed_size: 65536
    .wavefront_size: {lanes}
    .sgpr_count: 96
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
    .args:
      - {{.offset: 0, .size: 8, .value_kind: by_value}}
...
.end_amdgpu_metadata
"""


def template(chip, folder):
    """Returns a code object with room for code, and the offset of that room."""
    old = chip.startswith("gfx9")
    more = "  .amdhsa_accum_offset 256" if old else "  .amdhsa_wavefront_size32 1"
    assembled = ASSEMBLED_AS.get(chip, chip)
    source = pathlib.Path(folder, chip + ".s")
    source.write_text(TEMPLATE.format(chip=assembled, words=CODE_BYTES // 4, more=more, lanes=64 if old else 32))
    subprocess.run(["llvm-mc-19", "--triple=amdgcn-amd-amdhsa", "-mcpu=" + assembled, "-filetype=obj",
                    str(source), "-o", f"{folder}/{chip}.o"], check=True)
    subprocess.run(["ld.lld-19", "-shared", f"{folder}/{chip}.o", "-o", f"{folder}/{chip}.hsaco"], check=True)
    image = bytearray(pathlib.Path(folder, chip + ".hsaco").read_bytes())
    if chip in MACHINE:
        image[48] = MACHINE[chip]  # the low byte of e_flags
    return image, image.index(b"\xa5\xa5\x5a\x5a" * 16)


class Emulator:
    def __init__(self, library):
        self.chips = list(CHIPS.values())
        os.environ["WICK_EMU_DEVICES"] = ",".join(self.chips)
        self.hip = ctypes.CDLL(library)
        self.hip.hipGetErrorString.restype = ctypes.c_char_p
        with tempfile.TemporaryDirectory() as folder:
            self.images = {chip: template(chip, folder) for chip in self.chips}

    def call(self, name, *arguments):
        error = getattr(self.hip, name)(*arguments)
        if error != 0:
            raise RuntimeError(f"{name}: {self.hip.hipGetErrorString(error).decode()}")

    def run_asm(self, code, size, gx, gy, gz, lx, ly, lz, arguments, rsrc2=0, scratch=0, arch="rdna3", user_data=None):
        """Has the parameters of tinygrad's function; `arguments` is the address of the kernel's arguments."""
        chip = CHIPS[arch]
        self.call("hipSetDevice", self.chips.index(chip))
        image, offset = self.images[chip]
        image = bytearray(image)
        words = ctypes.string_at(code, size)
        image[offset:offset + size] = words.replace(WRONG_LOAD, RIGHT_LOAD) if arch == "cdna" else words
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), bytes(image))
        try:
            self.call("hipModuleGetFunction", ctypes.byref(function), module, b"code")
            parameters = (ctypes.c_void_p * 1)(arguments)
            self.call("hipModuleLaunchKernel", function, gx, gy, gz, lx, ly, lz, 0, None, parameters, None)
            self.call("hipDeviceSynchronize")
        finally:
            self.call("hipModuleUnload", module)
        return 0


class Results(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed, self.reasons = [], {}

    def addSuccess(self, test):
        self.passed.append(name_of(test))

    def failed(self, test, error):
        self.reasons.setdefault(name_of(test), f"{error[0].__name__}: {error[1]}".split("\n")[0][:160])

    def addFailure(self, test, error):
        self.failed(test, error)

    def addError(self, test, error):
        self.failed(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.failed(test, error)


def name_of(test):
    return ".".join(test.id().split(".")[-3:])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tinygrad", required=True, metavar="FOLDER", help="a checkout of tinygrad")
    options.add_argument("--library", required=True, help="the emulator's libwick_emu.so")
    options.add_argument("--list", action="store_true", help="also print what passes")
    options.add_argument("patterns", nargs="*", help="parts of the names of tests to run")
    given = options.parse_args()
    root = pathlib.Path(given.tinygrad).resolve()
    if not (root / "test/amd/hw").is_dir():
        options.error(f"{root} has no folder test/amd/hw")
    if not pathlib.Path(given.library).is_file():
        options.error(f"{given.library} is missing: make emu")
    sys.path.insert(0, str(root))
    emulator = Emulator(str(pathlib.Path(given.library).resolve()))
    replaced = types.ModuleType("test.mockgpu.amd.emu")
    replaced.run_asm = emulator.run_asm
    sys.modules["test.mockgpu.amd.emu"] = replaced
    loader = unittest.TestLoader()
    suite = unittest.TestSuite(loader.loadTestsFromName("test.amd.hw." + path.stem)
                               for path in sorted((root / "test/amd/hw").glob("test_*.py")))
    for error in loader.errors:
        sys.exit(error)

    def cases(tests):
        for test in tests:
            yield from cases(test) if isinstance(test, unittest.TestSuite) else [test]

    results = Results()
    for test in cases(suite):
        if not given.patterns or any(p in test.id() for p in given.patterns):
            test.run(results)
    if not results.testsRun:
        sys.exit(f"no test's name contains {' or '.join(given.patterns)}" if given.patterns else "tinygrad has no tests")
    if given.list:
        print("\n".join(results.passed))
    for name, reason in results.reasons.items():
        print(f"{name}: {DIFFERENCES.get(name, reason)}")
    unknown = set(results.reasons) - set(DIFFERENCES)
    gone = set(DIFFERENCES) & set(results.passed)
    for name in sorted(gone):
        print(f"{name} passes, although it is listed as a difference")
    print(f"{len(results.passed)} of {len(results.passed) + len(results.reasons)} tests agree, "
          f"{len(results.reasons) - len(unknown)} known differences, {len(unknown)} others")
    return 1 if unknown or gone else 0


if __name__ == "__main__":
    sys.exit(main())
