"""The results of tools/real_rocm.py as JSON, and docs/amd.md, which is generated from them."""

import datetime
import json

from rocm.machine import CHIPS
from rocm.packages import RELEASES
from rocm.suites import all_suites

HEAD = """# wick on AMD's own runtime

`tools/real_rocm.py` runs wick on AMD's HIP, hiprtc and ROCr as AMD wrote them, without a card. ROCr has a hook for
simulators; behind it, [the emulator's core](../emu/README.md#behind-amds-own-runtime) processes the packets of AMD's
queues and runs the kernels. AMD's software judges wick's use of the runtime, the code objects and the sources of the
kernels; the machine code runs on wick's emulator, not on a chip.

```
make amd                                                # every suite; writes the results and this page
tools/real_rocm.py test gpu_test --chips gfx1100        # a suite by name
tools/real_rocm.py run -- build/release/bin/wick devices    # any program
```

The packages are Debian's (sid and experimental), pinned by SHA-256 in `tools/rocm/packages.txt`. They are unpacked into the
cache folder; nothing is installed. HIP 6.4.3 runs above ROCr 7.2.4 too, since the hook of ROCr 6.4 doesn't start without a
driver. One byte of ROCr is changed, because it would bind a trap handler on gfx9 by a call that its hook lacks.

What the hook doesn't have, and these tests therefore don't show: more than one GPU, copies by SDMA engines, memory of the
program that kernels access (`hipHostRegister`), managed memory, times of events. A kernel that fails gives an error to
its queue. ROCr then suspends the queue by a call that its hook lacks, which ends the process.

## Results

"""


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def key(row):
    return row["suite"], row["release"], row["chip"]


def row_of(suite, release, chip, outcome, seconds):
    return {"suite": suite.name, "release": release, "chip": chip, "date": str(datetime.date.today()),
            "passed": outcome.passed, "failed": outcome.failed, "skipped": outcome.skipped,
            "seconds": round(seconds), "why": outcome.why}


def record(path, rows):
    """Replaces the rows of the same suite, release and chip, and writes the file."""
    merged = {key(row): row for row in read(path)}
    merged.update({key(row): row for row in rows})
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in sorted(merged.values(), key=key)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def cell(row):
    if row is None:
        return "not run"
    text = f"{row['passed']}"
    if row["skipped"]:
        text += f", {row['skipped']} skipped"
    if row["failed"]:
        text += f", **{row['failed']} failed**"
    return text


def escape(text):
    return text.replace("|", "\\|").replace("\n", " ")


def names(hiprtc):
    """The names of the suites in their order: those of the hiprtc table, or the others."""
    return list(dict.fromkeys(suite.name for suite in all_suites() if suite.name.startswith("hiprtc ") == hiprtc))


def compiled_cell(row):
    if row is None:
        return "not run"
    if row["failed"]:
        return "**no**"
    if row["skipped"]:
        return "skipped"
    return "yes" if row["passed"] else "nothing ran"


def compiled(rows):
    """The table of architectures that hiprtc compiles all kernels for."""
    suites = names(hiprtc=True)
    text = "\nWhether hiprtc compiles all kernels from their sources:\n\n| architecture | "
    text += " | ".join(f"hiprtc {release}" for release in RELEASES) + " |\n" + "|---" * (len(RELEASES) + 1) + "|\n"
    for suite in suites:
        found = [next((row for row in rows if row["suite"] == suite and row["release"] == release), None)
                 for release in RELEASES]
        cells = [compiled_cell(row) for row in found]
        text += f"| {suite.split()[-1]} | " + " | ".join(cells) + " |\n"
    return text


def page(rows):
    by_key = {key(row): row for row in rows}
    columns = [(release, chip) for release in RELEASES for chip in CHIPS]
    text = HEAD
    if rows:
        dates = sorted({row["date"] for row in rows})
        text += f"Tests that passed ({dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") + "):\n\n"
    text += "| program | " + " | ".join(f"HIP {release}, {chip}" for release, chip in columns) + " |\n"
    text += "|---" * (len(columns) + 1) + "|\n"
    for suite in names(hiprtc=False):
        cells = [cell(by_key.get((suite, *column))) for column in columns]
        text += f"| {suite} | " + " | ".join(cells) + " |\n"
    text += compiled(rows)
    failures = [row for row in rows if row["failed"]]
    if failures:
        text += "\n## Failures\n\n"
        for row in failures:
            text += f"- {row['suite']}, HIP {row['release']}, {row['chip']}: {row['failed']} failed.\n"
            text += "".join(f"  - {escape(why)}\n" for why in row["why"][:5])
    return text
