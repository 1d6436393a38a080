"""What the tools share: words of the command line, running suites, and their lines and results."""

from rocm import page, suites
from rocm.packages import RocmError


def words(text, known, what):
    """The words of a list with commas, which must be known."""
    chosen = [word for word in text.split(",") if word]
    for word in chosen:
        if word not in known:
            raise RocmError(f"there is no {what} {word}; known are {', '.join(known)}")
    if not chosen:
        raise RocmError(f"no {what} was chosen; known are {', '.join(known)}")
    return chosen


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
    """Prints the sum of the results and returns the exit status."""
    failed = sum(row["failed"] for row in rows)
    print(f"{sum(row['passed'] for row in rows)} passed, {failed} failed" +
          (f"; {left_out} suites were left out" if left_out else ""))
    return 1 if failed or left_out or not rows else 0
