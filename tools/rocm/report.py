"""What the tools share: a model, running suites, and their lines and results."""

import pathlib

import fetch_model
from rocm import options, page, suites


def add_options(command, results):
    """Options of the tools' command `test`. results: the file that --record writes."""
    command.add_argument("--jobs", type=options.positive, default=2, help="suites that run at once")
    command.add_argument("--seconds", type=options.duration, default=float("inf"),
                         help="suites that haven't begun by then are left out (default: none)")
    command.add_argument("--record", action="store_const", const=results, help=f"writes bench/results/{results.name}")
    command.add_argument("--record-to", dest="record", type=pathlib.Path, metavar="FILE", help="writes FILE instead")
    command.add_argument("--list", action="store_true", help="prints the names of the suites")


def check_record(path):
    """Raises an error, before anything runs, if results couldn't be added to a file. path: None for no file."""
    if path:
        page.record(path, [])


def default_model():
    """The model of tools/fetch_model.py if it is in the cache; None otherwise. Downloads nothing."""
    model = fetch_model.MODELS["smollm2"]
    path = fetch_model.models_dir() / model.target
    return path if fetch_model.is_right(model, path) else None


def run(runner, work, jobs, seconds, record):
    """Runs suites, prints a line for each and writes their results to the file `record`, if there is one. Returns the
    results and the number of suites that hadn't begun when the time was over."""
    rows, left_out = [], 0

    def finished(suite, release, chip, outcome, took):
        nonlocal left_out
        print(f"[{len(rows) + left_out + 1}/{len(work)}] {suites.line(suite, release, chip, outcome, took)}", flush=True)
        if outcome is None:
            left_out += 1
        else:
            rows.append(page.row_of(suite, release, chip, outcome, took))

    try:
        suites.run_all(runner, work, jobs, seconds, finished)
    finally:
        if record and rows:
            page.record(record, rows)
    return rows, left_out


def summary(rows, left_out):
    """Prints the sum of the results and returns the exit status, for which failures that docs/amd.md explains don't count."""
    failed, explained = sum(row["failed"] for row in rows), sum(page.explained(row) for row in rows)
    print(f"{sum(row['passed'] for row in rows)} passed, {failed} failed" +
          (f", of which docs/amd.md explains {explained}" if explained else "") +
          (f"; {left_out} suites were left out" if left_out else ""))
    return 1 if failed > explained or left_out or not rows else 0
