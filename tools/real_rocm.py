#!/usr/bin/env python3
"""Runs programs on AMD's own HIP and ROCr without a card: wick's emulator is the GPU behind ROCr's simulator hook.

  real_rocm.py fetch                      fetches and unpacks AMD's packages (Debian's), 118 MB in all
  real_rocm.py run -- PROGRAM ARGUMENTS   runs any program with them
  real_rocm.py test [NAME...]             runs wick's suites, by name or a selection, and prints what became of each
  real_rocm.py token                      times a token behind AMD's runtime and on the emulator's own
  real_rocm.py page [--check]             writes docs/amd.md from the recorded results, also those of tools/amd_suites.py

The packages are pinned by SHA-256 in tools/rocm/packages.txt and unpacked into ${XDG_CACHE_HOME:-~/.cache}/wick/rocm;
nothing is installed. WICK_DEBIAN_MIRROR names another mirror. Needs `make emu`, and for the suites
`ninja -C build/release wick_tests`. Exits with 1 if a test failed or a suite was left out, 2 if something is missing, and
128 + its number after a signal.
"""

import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402
from rocm import options as types  # noqa: E402
from rocm import page, processes, report, suites, token_time  # noqa: E402
from rocm.errors import RocmError, need  # noqa: E402
from rocm.machine import CHIPS, Machine  # noqa: E402
from rocm.packages import RELEASES, prepare, prepare_groups  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "amd-runtime.json"
SUITES = ROOT / "bench" / "results" / "amd-suites.json"
TOKENS = ROOT / "bench" / "results" / "amd-token.json"
PAGE = ROOT / "docs" / "amd.md"


def check_emulator(folder):
    for name in ("libwick_emu_model.so", "libdrm.so.2", "libdrm_amdgpu.so.1"):
        need(folder / "lib" / "model" / name, "make emu")


def fetch(options):
    for release in options.releases:
        print(prepare(release, options.cache)[0])
    return 0


def run(options):
    check_emulator(options.emulator)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise RocmError("run needs a program")
    folders = prepare(options.release, options.cache, libraries=options.libraries)
    with Machine(folders, options.emulator, [options.chip], [options.build / "lib"]) as machine:
        return processes.run(machine.command(command[0], command[1:]), machine.environment())


def test(options):
    work = suites.chosen(options.names, options.releases, options.chips, options.all)
    if options.list:
        print("\n".join(dict.fromkeys(suite.name for suite, _, _ in work)))
        return 0
    check_emulator(options.emulator)
    need(options.build / "bin", "make, or --build FOLDER")
    report.check_record(options.record)
    model = options.model
    if model is None and any(suites.needs_model(suite) for suite, _, _ in work):
        model = report.default_model()
    with_model = [job for job in work if suites.needs_model(job[0])] if model is None else []
    if with_model:
        fetch_model.say("generate is left out: it needs a model, which tools/fetch_model.py fetches")
        work = [job for job in work if job not in with_model]
    libraries = {release: prepare(release, options.cache) for release in options.releases}
    prepare_groups(dict.fromkeys(group for suite, _, _ in work for group in suite.groups), options.cache)
    threads = options.threads or (1 if options.jobs > 1 else 2)
    runner = suites.Runner(options.build, options.emulator, libraries, threads, model, options.cache, options.patience)
    rows, left_out = report.run(runner, work, options.jobs, options.seconds, options.record)
    return report.summary(rows, left_out + len(with_model))


def time_token(options):
    check_emulator(options.emulator)
    wick = options.build.resolve() / "bin" / "wick"
    need(wick, "make, or --build FOLDER")
    report.check_record(options.record)
    model = options.model or report.default_model()
    if model is None:
        raise RocmError("it needs a model, which tools/fetch_model.py fetches")
    folders = {release: prepare(release, options.cache) for release in options.releases}
    for row in token_time.run(folders, options.chips, wick, options.emulator.resolve(), model, options.rounds):
        print(token_time.line(row), flush=True)
        if options.record:
            page.record(options.record, [row])
    return 0


def write_page(options):
    text = page.page(page.read(options.results, page.RESULT), page.read(options.suites, page.RESULT),
                     page.read(options.tokens, page.TOKEN))
    if options.check:
        if options.out.read_text(encoding="utf-8") != text:
            raise RocmError(f"{options.out.name} isn't what {options.results.name} gives: tools/real_rocm.py page")
        return 0
    options.out.write_text(text, encoding="utf-8")
    return 0


def add_machine_options(command, releases):
    command.add_argument("--releases", type=types.some_of(RELEASES, "release"), default=releases, help="default: %(default)s")
    command.add_argument("--chips", type=types.some_of(CHIPS, "chip"), default=",".join(CHIPS), help="default: %(default)s")
    command.add_argument("--model", type=types.existing, default=os.environ.get("WICK_TEST_MODEL") or None,
                         help="default: that of tools/fetch_model.py")


def parse():
    parser = types.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, help="the folder of the packages")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--emulator", type=pathlib.Path, default=ROOT / "build" / "emu")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    every = ",".join(RELEASES)
    command = commands.add_parser("fetch", help="fetches and unpacks the packages")
    command.add_argument("--releases", type=types.some_of(RELEASES, "release"), default=every)
    command.set_defaults(work=fetch)
    command = commands.add_parser("run", help="runs a program")
    command.add_argument("--release", choices=RELEASES, default=RELEASES[0], help="of HIP")
    command.add_argument("--chip", choices=CHIPS, default="gfx1100")
    command.add_argument("--libraries", action="store_true", help="with rocBLAS and hipBLASLt (576 MB)")
    command.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments, after --")
    command.set_defaults(work=run)
    command = commands.add_parser("test", help="runs suites of wick")
    command.add_argument("names", nargs="*", help="their names (default: a selection)")
    add_machine_options(command, every)
    report.add_options(command, RESULTS)
    command.add_argument("--all", action="store_true", help="every suite under both releases, not the shorter selection")
    command.add_argument("--patience", type=types.duration, default=1.0,
                         help="a factor of the suites' time limits, for a busy machine")
    command.add_argument("--threads", type=types.positive,
                         help="of the emulator for each suite (default: 2, 1 if suites run at once)")
    command.set_defaults(work=test)
    command = commands.add_parser("token", help="times a token, also on the emulator's own runtime")
    add_machine_options(command, RELEASES[0])
    command.add_argument("--rounds", type=types.positive, default=5)
    command.add_argument("--record", action="store_const", const=TOKENS, help=f"writes {TOKENS.relative_to(ROOT)}")
    command.set_defaults(work=time_token)
    command = commands.add_parser("page", help="writes docs/amd.md")
    command.add_argument("--results", type=pathlib.Path, default=RESULTS)
    command.add_argument("--suites", type=pathlib.Path, default=SUITES, help="the results of tools/amd_suites.py")
    command.add_argument("--tokens", type=pathlib.Path, default=TOKENS, help="the results of the command token")
    command.add_argument("--out", type=pathlib.Path, default=PAGE)
    command.add_argument("--check", action="store_true", help="fails if the page isn't up to date")
    command.set_defaults(work=write_page)
    return parser.parse_args()


def main():
    options = parse()
    return processes.guarded("real_rocm", lambda: options.work(options))


if __name__ == "__main__":
    sys.exit(main())
