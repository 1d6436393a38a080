"""Programs that run on AMD's own runtime by name, and what became of each."""

import collections
import pathlib
import queue
import re
import threading
import time

from rocm.errors import RocmError
from rocm.machine import CHIPS, Machine
from rocm.packages import RELEASES, prepare_groups
from rocm.processes import Process

# What the release's binary has images for: hiprtc must be able to compile the kernels for each of them.
ARCHITECTURES = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150",
                 "gfx1151", "gfx1200", "gfx1201")
# The default selection has all suites under the newest release, on the chips that are named here or else on all of their chips.
# Under the older release it has the suites of OLDER.
SHORT = {"gpu_layouts_test": ("gfx90a",), "gpu_custom_test": ("gfx90a",), "models_test": ("gfx1100",),
         "parity_test": ("gfx1100",), "gpu_libraries_test": ("gfx90a",), "gpu_conv_library_test": ("gfx90a",),
         "gpu_probe, compiled by hiprtc": ("gfx1100",)}
OLDER = ("gpu_test", "gpu_probe", "gpu_ops_test", "generate")
MOST_RESTARTS = 10
PARITY = ("Parity/silu*:Parity/add.*:Parity/div.i16.*:Parity/cast.f32.*:Parity/copy.*:Parity/sum.bf16.*:Parity/argmax.f32.*:"
          "Parity/softmax.f16.*:Parity/rms_norm.f32.*:Parity/rope.f32.*:Parity/attention.f32.*:*cached_attention.f16*:"
          "Parity/sort.i64.*:Parity/gather.f32.*:Parity/scatter_add.f32.*:Parity/conv2d.f16.*:Parity/uniform.f32.*-"
          "*quantize*:*f16_stream*")
# Of the 1,400 cases, those of types that differ in their kernels.
LINEAR = {"gfx1100": "*/q4_0_f32:*/q8_0_f32:*/q4_k_f32:*/q6_k_f32:*/tq2_0_f32:*/q4_0_f16-*LongRows*:*ManyRows*",
          "gfx90a": "*/q4_1_bf16:*/q8_0_bf16:*/q5_k_bf16:*/nvfp4_bf16:*FusedLinear*/q4_1_f32:*FusedLinear*/q5_k_f32"
                    "-*LongRows*:*ManyRows*"}
PRODUCTS = "*f16*hip*:*f32*hip*:Matmul.*:LinearFloat.*"

# Packages of AMD's libraries, and of what they need. They belong to the first of RELEASES.
LIBRARIES = ("libraries-7.2.4", "programs-7.2.4", "rocrand-6.4.3", "suites")
# The kernels in assembly are left out of Debian's MIOpen.
MIOPEN_ENVIRONMENT = {"MIOPEN_DEBUG_GCN_ASM_KERNELS": "0", "MIOPEN_FIND_MODE": "FAST"}

# A named program. kind: gtest; probe, see run_probe; or tokens, see run_tokens. `chips`: one run for each.
# environment: a dictionary; None removes a variable. groups: of packages, besides those of the release.
Suite = collections.namedtuple("Suite", "name kind program arguments chips environment minutes groups", defaults=[()])


def tests(name, program=None, pattern="*", minutes=10, chips=tuple(CHIPS), groups=(), **environment):
    return Suite(name, "gtest", program or name, [f"--gtest_filter={pattern}"], chips, environment, minutes, groups)


def all_suites():
    probe = ["hip:0", "--small"]
    suites = [
        tests("gpu_test", minutes=5),
        Suite("gpu_probe", "probe", "gpu_probe", probe, tuple(CHIPS), {}, 5),
        tests("gpu_ops_test"),
        tests("gpu_layouts_test", pattern="GpuLayouts*.*"),
        tests("gpu_custom_test", pattern="Devices/GpuCustom.*"),
        tests("models_test", pattern="ModelOnDevice.*:BatchTest.*"),
        tests("parity_test", pattern=PARITY),
        tests("matmul_test", pattern=PRODUCTS),
        tests("linear_float_test", pattern=PRODUCTS),
        tests("gpu_libraries_test", pattern="GpuLibraries.*", groups=LIBRARIES),
        tests("gpu_conv_library_test", pattern="GpuConvLibrary.*:GpuConvBackend.*", groups=LIBRARIES, minutes=20,
              **MIOPEN_ENVIRONMENT),
    ]
    suites += [tests("gpu_linear_test", pattern=LINEAR[chip], chips=(chip,)) for chip in CHIPS]
    suites.append(Suite("generate", "tokens", "wick", ["12"], tuple(CHIPS), {}, 5))
    suites.append(Suite("gpu_probe, compiled by hiprtc", "probe", "gpu_probe", probe, tuple(CHIPS),
                        {"WICK_GPU_IMAGES": "off"}, 30))
    for architecture in ARCHITECTURES:
        suites.append(Suite(f"hiprtc for {architecture}", "gtest", "gpu_compile_test",
                            ["--gtest_filter=GpuCompile.KernelsOfEveryFileForAmd"], ("gfx1100",),
                            # Compiling needs no GPU. With one, two threads of ROCr spin.
                            {"WICK_TEST_HIPRTC": architecture, "HSA_MODEL_LIB": None, "HSA_MODEL_TOPOLOGY": None}, 30))
    return suites


class Outcome:
    """What became of a suite on a chip under a release."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.why = []  # a line for each failure

    def fail(self, why):
        self.failed += 1
        self.why.append(why)


class TestLog:
    """What a test program prints. wanted and ran: the numbers of tests in its first and last line; None before them."""

    def __init__(self, outcome, done):
        self.outcome, self.done = outcome, done
        self.test, self.said, self.between = None, [], []  # between: lines outside of tests
        self.wanted, self.ran, self.finished, self.failed = None, None, 0, False

    def read(self, line):
        mark = re.match(r"\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] (\S+?),?( |$)", line)
        count = re.search(r"\[=+\] (Running )?(\d+) tests? from .*?( ran\.|\.$)", line)
        if mark and mark[1] == "RUN":
            self.test, self.said = mark[2], []
        elif mark and self.test is not None and mark[2] == self.test:
            self.end(mark[1])
        elif count and count[1]:
            self.wanted = int(count[2])
        elif count:
            self.ran = int(count[2])
        else:
            (self.said if self.test is not None else self.between).append(line)

    def end(self, how):
        self.done.add(self.test)
        self.finished += 1
        self.failed |= how == "FAILED"
        if how == "FAILED" or complaint(self.said):
            self.outcome.fail(f"{self.test}: {reason(self.said)}")
        elif how == "OK":
            self.outcome.passed += 1
        else:
            self.outcome.skipped += 1
        self.test = None

    def incomplete(self, process, first):
        """Why a program that ended outside of its tests didn't run all of them; None if it did. first: it is the first
        process of its suite, which must have tests."""
        if process.out_of_time or process.child.returncode not in ((0, 1) if self.failed else (0,)):
            return process.end()
        if self.wanted is None or self.ran != self.wanted or self.finished != self.wanted:
            return f"{process.end()} after {self.finished} of {self.wanted or 'no'} tests"
        if self.wanted == 0 and first:
            return "no test ran"
        return process.end() if complaint(self.between) else None


def run_gtest(command, env, seconds, outcome):
    """Runs a test program. If a test ends the process, the others run in another one."""
    done, until = set(), time.monotonic() + seconds
    pattern = command[-1].partition("=")[2]
    for attempt in range(MOST_RESTARTS):
        negative = "" if not done else (":" if "-" in pattern else "-") + ":".join(sorted(done))
        process = Process([*command[:-1], f"--gtest_filter={pattern}{negative}", "--gtest_color=no"], env,
                          max(1.0, until - time.monotonic()))
        log = TestLog(outcome, done)
        for line in process.lines():
            log.read(line)
        if log.test is None:
            why = log.incomplete(process, attempt == 0)
            if why:
                outcome.fail(f"{why}: {reason(log.between)}")
            return
        done.add(log.test)
        outcome.fail(f"{log.test}: {process.end()}: {reason(log.said)}")
        if process.out_of_time:
            return
    outcome.fail(f"left out after {MOST_RESTARTS} tests that ended the process")


def complaint(lines):
    """What the emulator or the hook complained about first; None if they didn't. A program's own output, without an end of
    its line, may come before it."""
    for start in ("wick-emu: ", "model: "):
        for line in lines:
            if start in line:
                return line[line.index(start):]
    return None


def reason(lines):
    """The line that says most about a failure."""
    if complaint(lines):
        return complaint(lines)
    words = [line.strip() for line in lines if line.strip() and not line.startswith("[")]
    return " | ".join(words[:4])[:300] or "no reason was given"


def run_probe(command, env, seconds, outcome):
    """gpu_probe prints, for each op, how many elements differ from each instruction set of the CPU."""
    process = Process(command, env, seconds)
    lines = list(process.lines())
    for line in lines:
        found = re.search(r'"op": "([^"]+)", "differ": \{(.*?)\}', line)
        if not found:
            continue
        counts = [int(count) for count in re.findall(r": (\d+)", found[2])]
        if counts and not any(counts):
            outcome.passed += 1
        else:
            outcome.fail(f"{found[1]}: {max(counts, default=0)} elements differ from the CPU's")
    if complaint(lines) or process.child.returncode not in (0, 1) or outcome.passed + outcome.failed == 0:
        outcome.fail(f"{process.end()}: {reason(lines)}")


def run_tokens(machine, program, tokens, model, env, seconds, outcome):
    """Compares the tokens that a chip generates with the CPU's."""
    texts = []
    for device in ("cpu", "hip:0"):
        arguments = ["generate", "-m", model, "--device", device, "-n", tokens, "--temp", "0", "--ctx", "64", "--json",
                     "-p", "The three most important rules of good engineering are"]
        process = Process(machine.command(program, arguments), {**env, "WICK_REPRODUCIBLE": "1"}, seconds)
        lines = list(process.lines())
        if process.child.returncode != 0 or complaint(lines):
            outcome.fail(f"{device}: {process.end()}: {reason(lines)}")
            return
        found = re.search(r'"tokens": \[([^]]*)\]', "".join(lines))
        texts.append(found[1].replace(" ", "") if found else "")
    if texts[0] and texts[0] == texts[1]:
        outcome.passed += 1
    else:
        outcome.fail(f"the CPU's tokens are {texts[0]}, the chip's {texts[1]}")


def library_variables(trees):
    """The variables that name AMD's libraries for wick, if they are in these folders."""
    found = {}
    for variable, name in (("WICK_ROCBLAS_LIBRARY", "librocblas.so.5"), ("WICK_HIPBLASLT_LIBRARY", "libhipblaslt.so.1"),
                           ("WICK_MIOPEN_LIBRARY", "libMIOpen.so.1")):
        found.update({variable: str(tree / name) for tree in trees if (tree / name).exists()})
    return found


class Runner:
    """libraries: the folders of each release, from prepare(). patience: a factor of the suites' time limits."""

    def __init__(self, build, emulator, libraries, threads=1, model=None, cache=None, patience=1.0):
        self.build, self.emulator, self.libraries = pathlib.Path(build), pathlib.Path(emulator), libraries
        self.threads, self.model, self.cache, self.patience = threads, model, cache, patience

    def run(self, suite, release, chip):
        """Returns the outcome of a suite and the seconds that it took."""
        started, outcome = time.monotonic(), Outcome()
        program = self.build / "bin" / suite.program
        if not program.is_file():
            outcome.fail(f"{suite.program} isn't built (ninja wick_tests)")
            return outcome, 0.0
        trees = prepare_groups(suite.groups, self.cache, quiet=True)
        own = self.libraries[release]
        with Machine([own[0], *trees, *own[1:]], self.emulator, [chip], [self.build / "lib"]) as machine:
            temporary = pathlib.Path(machine.folder.name) / "tmp"
            temporary.mkdir()
            env = machine.environment({"WICK_TEST_DEVICES": "hip:0", "WICK_EMU_THREADS": str(self.threads),
                                       "TMPDIR": str(temporary), "MIOPEN_USER_DB_PATH": str(temporary),
                                       "MIOPEN_CUSTOM_CACHE_DIR": str(temporary), **library_variables(trees),
                                       # AMD's compiler has a cache of its own.
                                       "WICK_KERNEL_CACHE": "off", "AMD_COMGR_CACHE": "0", **suite.environment})
            if self.model:
                env["WICK_TEST_MODEL"] = str(self.model)
            limit = suite.minutes * 60 * self.patience
            if suite.kind == "tokens":
                run_tokens(machine, program, suite.arguments[0], self.model, env, limit, outcome)
            else:
                run_one = run_gtest if suite.kind == "gtest" else run_probe
                run_one(machine.command(program, suite.arguments), env, limit, outcome)
        return outcome, time.monotonic() - started


def is_short(suite, release, chip):
    """Whether the default selection has a suite for a release and a chip."""
    if suite.name.startswith("hiprtc "):
        return False
    return chip in SHORT.get(suite.name, suite.chips) if release == RELEASES[0] else suite.name in OLDER


def chosen(names, releases, chips, everything=False):
    """The suites to run, each with a release and a chip: those that are named, all, or the default selection."""
    work = [(suite, release, chip) for release in releases for suite in all_suites() for chip in suite.chips
            if chip in chips and has(suite, release)]
    if names:
        return named(names, all_suites(), work, fits, f"on {', '.join(chips)} under HIP {', '.join(releases)}")
    return [job for job in work if everything or is_short(*job)]


def named(names, suites, work, fits_name, where):
    """The jobs whose suites have one of these names. suites: all; where: what `work` was chosen for, in words."""
    for name in names:
        if not any(fits_name(name, suite) for suite in suites):
            raise RocmError(f"there is no suite {name}; --list shows their names")
        if not any(fits_name(name, suite) for suite, _, _ in work):
            raise RocmError(f"{name} doesn't run {where}")
    return [job for job in work if any(fits_name(name, job[0]) for name in names)]


def has(suite, release):
    """Whether a suite runs on a release."""
    return not suite.groups or release == RELEASES[0]


def needs_model(suite):
    return suite.kind == "tokens"


def fits(name, suite):
    return suite.name == name or suite.name.startswith((name + " ", name + ","))


def run_all(runner, work, jobs, seconds, finished):
    """Runs suites in parallel. Calls finished(suite, release, chip, outcome, seconds) for each; the outcome is None for
    those that hadn't begun when the time was over."""
    until = time.monotonic() + seconds
    waiting, ended = iter(work), queue.SimpleQueue()
    lock = threading.Lock()

    def run_some():
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            try:
                late = time.monotonic() > until
                ended.put((job, None, 0.0) if late else (job, *runner.run(*job)))
            except BaseException as error:  # the main thread raises it
                ended.put(error)
                return

    # Daemons, because a signal may come at any time and nothing but killed programs must keep this process.
    threads = [threading.Thread(target=run_some, daemon=True) for _ in range(jobs)]
    try:
        for thread in threads:
            thread.start()
        for _ in work:
            result = ended.get()
            if isinstance(result, BaseException):
                raise result
            job, outcome, took = result
            finished(*job, outcome, took)
    except BaseException:
        Process.kill_all()
        for thread in threads:
            if thread.ident is not None:
                thread.join(10)  # it removes its temporary files
        raise


def line(suite, release, chip, outcome, took):
    """The line that says what became of a suite."""
    head = f"{release} {chip} {suite.name}: "
    if outcome is None:
        return head + "left out, the time was over"
    words = f"{outcome.passed} passed" + (f", {outcome.skipped} skipped" if outcome.skipped else "")
    if outcome.failed:
        words += f", {outcome.failed} FAILED: {outcome.why[0]}"
    return f"{head}{words} ({took:.0f} s)"
