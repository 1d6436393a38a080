#!/usr/bin/env python3
"""Runs AMD's libraries, by their own test programs, and other software for AMD's GPUs on wick's emulated HIP runtime.

  amd_suites.py fetch [NAME...]           fetches and unpacks what the suites need: 3.1 GB for all, 11 GB unpacked
  amd_suites.py test [NAME...]            runs suites, by name or a selection, and prints what became of each

The programs are Debian's (rocBLAS, hipBLASLt, MIOpen, rocFFT, rocRAND, rocPRIM, rocSPARSE, RCCL; 2.28 GB), and Triton's wheels
and the ROCm build of llama.cpp, whisper.cpp and stable-diffusion.cpp from PyPI (0.82 GB). Debian's packages are pinned in
tools/rocm/packages.txt, as those of tools/real_rocm.py, which also writes the results to docs/amd.md; wheels are pinned in
tools/rocm/wheels.py. Nothing is installed. Needs `make emu`. Exits with 1 if a suite was left out, or a test failed and docs/amd.md
doesn't explain why, 2 if something is missing, 77 if nothing can run because PyPI can't be reached, and 128 + its number after a
signal.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402
from rocm import amd_suites, options as types, report  # noqa: E402
from rocm.errors import need  # noqa: E402
from rocm.processes import guarded  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "amd-suites.json"


def suites_of(work):
    return {(suite.name, suite.release): suite for suite, _, _ in work}.values()


def fetch(options):
    work = amd_suites.chosen(options.names, amd_suites.CHIPS, everything=True)
    amd_suites.Runner(options.emulator, options.cache).prepare(suites_of(work))
    return 0


def test(options):
    work = amd_suites.chosen(options.names, options.chips, options.all)
    if options.list:
        print("\n".join(dict.fromkeys(suite.name for suite, _, _ in work)))
        return 0
    need(options.emulator / "lib" / "libwick_emu.so", "make emu")
    if any(suite.kind == "wick" for suite, _, _ in work):
        need(options.build / "bin", "make, or --build FOLDER")
    report.check_record(options.record)
    model = options.model or report.default_model()
    without = [job for job in work if job[0].kind == "llama"] if model is None else []
    if without:
        fetch_model.say(f"{without[0][0].name} is left out: it needs a model, which tools/fetch_model.py fetches")
        work = [job for job in work if job not in without]
    runner = amd_suites.Runner(options.emulator, options.cache, 1 if options.jobs > 1 else 2, model, options.build)
    found = runner.reachable(work)
    rows, left_out = report.run(runner, found, options.jobs, options.seconds, options.record)
    return report.summary(rows, left_out + len(without) + len(work) - len(found))


def parse():
    parser = types.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, help="the folder of the packages")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="of wick, for its own tests")
    parser.add_argument("--emulator", type=pathlib.Path, default=ROOT / "build" / "emu")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("fetch", help="fetches and unpacks the packages")
    command.add_argument("names", nargs="*", help="the starts of the names of suites (default: all)")
    command.set_defaults(work=fetch)
    command = commands.add_parser("test", help="runs suites")
    command.add_argument("names", nargs="*", help="the starts of their names (default: a selection)")
    command.add_argument("--chips", type=types.some_of(amd_suites.CHIPS, "chip"), default=",".join(amd_suites.CHIPS),
                         help="default: %(default)s")
    report.add_options(command, RESULTS)
    command.add_argument("--all", action="store_true", help="every suite, also older versions of the programs")
    command.add_argument("--model", type=types.existing, help="a model for llama.cpp")
    command.set_defaults(work=test)
    return parser.parse_args()


def main():
    options = parse()
    return guarded("amd_suites", lambda: options.work(options))


if __name__ == "__main__":
    sys.exit(main())
