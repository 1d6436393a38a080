#!/usr/bin/env python3
"""Runs programs on AMD's own HIP and ROCr without a card: wick's emulator is the GPU behind ROCr's simulator hook.

  real_rocm.py fetch                      fetches and unpacks AMD's packages (Debian's), 160 MB in all
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
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402
from rocm import page, report, suites, token_time  # noqa: E402
from rocm.machine import CHIPS, Machine  # noqa: E402
from rocm.packages import RELEASES, RocmError, prepare, prepare_groups  # noqa: E402
from rocm.processes import guarded, positive  # noqa: E402
from rocm.report import words  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "amd-runtime.json"
SUITES = ROOT / "bench" / "results" / "amd-suites.json"
TOKENS = ROOT / "bench" / "results" / "amd-token.json"
PAGE = ROOT / "docs" / "amd.md"


def check_emulator(folder):
    for name in ("libwick_emu_model.so", "libdrm.so.2", "libdrm_amdgpu.so.1"):
        if not (folder / "lib" / "model" / name).exists():
            raise RocmError(f"{folder}/lib/model/{name} is missing: make emu")


def fetch(options):
    for release in words(options.releases, RELEASES, "release"):
        folders = prepare(release, options.cache)
        print(folders[0])
    return 0


def run(options):
    check_emulator(options.emulator)
    release = words(options.release, RELEASES, "release")[0]
    chips = words(options.chip, CHIPS, "chip")
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise RocmError("run needs a program")
    folders = prepare(release, options.cache, libraries=options.libraries)
    with Machine(folders, options.emulator, chips, [options.build / "lib"]) as machine:
        return subprocess.run(machine.command(command[0], command[1:]), env=machine.environment(), check=False).returncode


def default_model():
    """The model of tools/fetch_model.py if it is in the cache; None otherwise. Downloads nothing."""
    model = fetch_model.MODELS["smollm2"]
    path = fetch_model.models_dir() / model.target
    return str(path) if fetch_model.is_right(model, path) else None


def test(options):
    releases, chips = words(options.releases, RELEASES, "release"), words(options.chips, CHIPS, "chip")
    work = list(suites.chosen(options.names, releases, chips, options.all))
    if options.list:
        print("\n".join(dict.fromkeys(suite.name for suite, _, _ in work)))
        return 0
    check_emulator(options.emulator)
    model = options.model or os.environ.get("WICK_TEST_MODEL")
    if model is None and any(suites.needs_model(suite) for suite, _, _ in work):
        model = default_model()
    with_model = [job for job in work if suites.needs_model(job[0])] if model is None else []
    if with_model:
        fetch_model.say("generate is left out: it needs a model, which tools/fetch_model.py fetches")
        work = [job for job in work if job not in with_model]
    libraries = {release: prepare(release, options.cache) for release in releases}
    prepare_groups(dict.fromkeys(group for suite, _, _ in work for group in suite.groups), options.cache)
    threads = options.threads or (1 if options.jobs > 1 else 2)
    runner = suites.Runner(options.build, options.emulator, libraries, threads, model, options.cache, options.patience)
    rows, left_out = report.run(runner, work, options.jobs, options.seconds, options.record)
    return report.summary(rows, left_out + len(with_model))


def time_token(options):
    check_emulator(options.emulator)
    releases, chips = words(options.releases, RELEASES, "release"), words(options.chips, CHIPS, "chip")
    model = options.model or os.environ.get("WICK_TEST_MODEL") or default_model()
    if model is None:
        raise RocmError("it needs a model, which tools/fetch_model.py fetches")
    folders = {release: prepare(release, options.cache) for release in releases}
    wick = options.build.resolve() / "bin" / "wick"
    for row in token_time.run(folders, chips, wick, options.emulator.resolve(), model, options.rounds):
        print(token_time.line(row), flush=True)
        if options.record:
            page.record(options.record, [row])
    return 0


def write_page(options):
    text = page.page(page.read(options.results), page.read(options.suites), page.read(options.tokens))
    if options.check:
        if options.out.read_text(encoding="utf-8") != text:
            raise RocmError(f"{options.out.name} isn't what {options.results.name} gives: tools/real_rocm.py page")
        return 0
    options.out.write_text(text, encoding="utf-8")
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, help="the folder of the packages")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--emulator", type=pathlib.Path, default=ROOT / "build" / "emu")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    every = ",".join(RELEASES)
    command = commands.add_parser("fetch", help="fetches and unpacks the packages")
    command.add_argument("--releases", default=every)
    command.set_defaults(work=fetch)
    command = commands.add_parser("run", help="runs a program")
    command.add_argument("--release", default=RELEASES[0], help=f"of HIP: {', '.join(RELEASES)}")
    command.add_argument("--chip", default="gfx1100", help=", ".join(CHIPS))
    command.add_argument("--libraries", action="store_true", help="with rocBLAS and hipBLASLt (600 MB)")
    command.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments, after --")
    command.set_defaults(work=run)
    command = commands.add_parser("test", help="runs suites of wick")
    command.add_argument("names", nargs="*", help="their names (default: a selection)")
    command.add_argument("--releases", default=every)
    command.add_argument("--chips", default=",".join(CHIPS))
    command.add_argument("--all", action="store_true", help="every suite under both releases, not the shorter selection")
    command.add_argument("--jobs", type=positive, default=2, help="suites that run at once")
    command.add_argument("--seconds", type=float, default=float("inf"),
                         help="suites that haven't begun by then are left out (default: none)")
    command.add_argument("--patience", type=float, default=1.0, help="a factor of the suites' time limits, for a busy machine")
    command.add_argument("--threads", type=positive, help="of the emulator for each suite (default: 2, 1 if suites run at once)")
    command.add_argument("--model", help="a model for the suite generate")
    command.add_argument("--record", action="store_const", const=RESULTS, help=f"writes {RESULTS.relative_to(ROOT)}")
    command.add_argument("--record-to", dest="record", type=pathlib.Path, metavar="FILE", help="writes FILE instead")
    command.add_argument("--list", action="store_true", help="prints the names of the suites")
    command.set_defaults(work=test)
    command = commands.add_parser("token", help="times a token, also on the emulator's own runtime")
    command.add_argument("--releases", default=RELEASES[0])
    command.add_argument("--chips", default=",".join(CHIPS))
    command.add_argument("--rounds", type=positive, default=5)
    command.add_argument("--model", help="default: that of tools/fetch_model.py")
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
    return guarded("real_rocm", lambda: options.work(options))


if __name__ == "__main__":
    sys.exit(main())
