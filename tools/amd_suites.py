#!/usr/bin/env python3
"""Runs AMD's libraries, by their own test programs, and other software for AMD's GPUs on wick's emulated HIP runtime.

  amd_suites.py fetch [NAME...]           fetches and unpacks what the suites need: 3.2 GB for all, 11 GB unpacked
  amd_suites.py test [NAME...]            runs suites, by name or a selection, and prints what became of each

The programs are Debian's (rocBLAS, hipBLASLt, MIOpen, rocFFT, rocRAND, rocPRIM, rocSPARSE, RCCL), Triton's wheels and
llama.cpp's ROCm build from PyPI. Debian's packages are pinned in tools/rocm/packages.txt, as those of tools/real_rocm.py,
which also writes the results to docs/amd.md. Nothing is installed. Needs `make emu`. Exits with 1 if a test failed or a
suite was left out, 2 if something is missing, 77 if nothing can run because PyPI can't be reached, and 128 + its number
after a signal.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402
from rocm import amd_suites, report  # noqa: E402
from rocm.packages import RocmError  # noqa: E402
from rocm.processes import guarded, positive  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "amd-suites.json"


def check_emulator(folder):
    library = folder / "lib" / "libwick_emu.so"
    if not library.exists():
        raise RocmError(f"{library} is missing: make emu")


def default_model():
    """The model of tools/fetch_model.py if it is in the cache; None otherwise. Downloads nothing."""
    model = fetch_model.MODELS["smollm2"]
    path = fetch_model.models_dir() / model.target
    return path if fetch_model.is_right(model, path) else None


def suites_of(work):
    return {(suite.name, suite.release): suite for suite, _, _ in work}.values()


def fetch(options):
    work = amd_suites.chosen(options.names, amd_suites.CHIPS, everything=True)
    amd_suites.Runner(options.emulator, options.cache).prepare(suites_of(work))
    return 0


def test(options):
    chips = report.words(options.chips, amd_suites.CHIPS, "chip")
    work = list(amd_suites.chosen(options.names, chips, options.all))
    if options.list:
        print("\n".join(dict.fromkeys(suite.name for suite, _, _ in work)))
        return 0
    check_emulator(options.emulator)
    model = options.model or default_model()
    without = [job for job in work if job[0].kind == "llama"] if model is None else []
    if without:
        fetch_model.say(f"{without[0][0].name} is left out: it needs a model, which tools/fetch_model.py fetches")
        work = [job for job in work if job not in without]
    runner = amd_suites.Runner(options.emulator, options.cache, 1 if options.jobs > 1 else 2, model, options.build)
    found = runner.reachable(work)
    rows, left_out = report.run(runner, found, options.jobs, options.seconds, options.record)
    return report.summary(rows, left_out + len(without) + len(work) - len(found))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, help="the folder of the packages")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="of wick, for its own tests")
    parser.add_argument("--emulator", type=pathlib.Path, default=ROOT / "build" / "emu")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("fetch", help="fetches and unpacks the packages")
    command.add_argument("names", nargs="*", help="the starts of the names of suites (default: all)")
    command.set_defaults(work=fetch)
    command = commands.add_parser("test", help="runs suites")
    command.add_argument("names", nargs="*", help="the starts of their names (default: a selection)")
    command.add_argument("--chips", default=",".join(amd_suites.CHIPS), help="default: %(default)s")
    command.add_argument("--all", action="store_true", help="also older versions of the programs")
    command.add_argument("--jobs", type=positive, default=2, help="suites that run at once")
    command.add_argument("--seconds", type=float, default=float("inf"),
                         help="suites that haven't begun by then are left out (default: none)")
    command.add_argument("--model", type=pathlib.Path, help="a model for llama.cpp")
    command.add_argument("--record", action="store_const", const=RESULTS, help=f"writes {RESULTS.relative_to(ROOT)}")
    command.add_argument("--record-to", dest="record", type=pathlib.Path, metavar="FILE", help="writes FILE instead")
    command.add_argument("--list", action="store_true", help="prints the names of the suites")
    command.set_defaults(work=test)
    return parser.parse_args()


def main():
    options = parse()
    return guarded("amd_suites", lambda: options.work(options))


if __name__ == "__main__":
    sys.exit(main())
