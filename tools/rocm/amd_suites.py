"""AMD's libraries on wick's emulated HIP runtime: programs by name, and what became of each.

The programs are those of Debian's packages of AMD's libraries, Triton's compiler, and llama.cpp, whisper.cpp and
stable-diffusion.cpp as a wheel has them, built for ROCm. HIP is the
emulator's libamdhip64.so; hiprtc, where a library uses it, is AMD's.
"""

import collections
import csv
import os
import pathlib
import re
import sys
import tempfile
import time

import fetch_model
from rocm import wheels
from rocm.errors import RocmError, Unreachable
from rocm.packages import prepare_groups
from rocm.processes import Process, compile_c
from rocm.suites import MIOPEN_ENVIRONMENT, Outcome, complaint, library_variables, named, reason, run_gtest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHIPS = ("gfx1100", "gfx90a", "gfx942", "gfx1200")
LIBRARIES = CHIPS[:3]  # what rocBLAS of ROCm 7.2 and llama.cpp's ROCm build run on here
DEBIANS = ("gfx1100", "gfx90a")  # what Debian builds its packages of ROCm 6.4 for
# The default selection has the newest version of each program, on the chips that are named here or else on all of its chips.
SHORT = {"rocblas-bench": ("gfx1100", "gfx942"), "gpu_libraries_test": ("gfx1100",), "gpu_conv_library_test": ("gfx1100",),
         "rocfft-test": ("gfx1100",), "rocsparse-test": ("gfx90a",), "rocRAND generate": ("gfx1100",),
         "rocRAND generate_uniform": ("gfx90a",), "rocRAND generate_normal": ("gfx1100",), "rocPRIM device_select": ("gfx90a",),
         "rocPRIM intrinsics": ("gfx90a",)}
SUPPORT = ("suites", "base")
ROCR = ("rocr", *SUPPORT)

# groups: of packages.txt, in the order in which libraries are looked up. program: its path below usr/libexec/rocm of the
# groups, or its name in wick's build if the kind is "wick". calls: lists of arguments, a process for each. hiprtc: the file
# of AMD's hiprtc, or None.
Suite = collections.namedtuple("Suite", "name release kind groups program calls chips environment hiprtc minutes")


def suite(name, release, kind, groups, program, calls, chips=DEBIANS, environment=None, hiprtc=None, minutes=10):
    return Suite(name, release, kind, groups, program, calls, chips, environment or {}, hiprtc, minutes)


def tests(name, release, group, program, pattern="*", arguments=(), **options):
    """A program of googletest."""
    folder = f"lib{group.partition('-')[0]}"
    version = {"librocrand": "1", "librocsparse": "1", "librocfft": "0", "libprograms": "0"}.get(folder, "")
    folder = "librocfft" if folder == "libprograms" else folder
    return suite(name, release, "gtest", (group, *options.pop("groups", ()), *ROCR), f"{folder}{version}-tests/{program}",
                 [[*arguments, f"--gtest_filter={pattern}"]], **options)


def gemms(program):
    """Calls with whole numbers, whose products and sums are exact in every precision used."""
    blas = program == "rocblas-bench"
    calls = []
    for precision in ("f32_r", "f16_r", "bf16_r", "i8_r", "f64_r") if blas else ("f32_r", "f16_r", "bf16_r"):
        whole = precision == "i8_r"
        compute = {"i8_r": "i32_r", "f64_r": "f64_r"}.get(precision, "f32_r")
        out = "i32_r" if whole else precision
        sizes = ["-m", "128", "-n", "96", "-k", "64"]
        if blas:
            types = ["-f", "gemm_ex", "--a_type", precision, "--b_type", precision, "--c_type", out, "--d_type", out,
                     "--compute_type", compute, "--lda", "128", "--ldb", "96", "--ldc", "128", "--ldd", "128"]
            calls.append([*types, *sizes, "--transposeA", "N", "--transposeB", "T", "--initialization", "rand_int",
                          "-v", "1", "-i", "1", "-j", "0"])
        else:
            calls.append([*sizes, "--precision", precision, "--compute_type", compute, "--initialization", "rand_int",
                          "-v", "-i", "1", "-j", "0"])
    return calls


MIOPEN = [
    "conv -n 1 -c 4 -H 8 -W 8 -k 4 -y 3 -x 3 -p 1 -q 1 -F 1 -V 1 -i 1",
    "convfp16 -n 1 -c 16 -H 8 -W 8 -k 16 -y 3 -x 3 -p 1 -q 1 -F 1 -V 1 -i 1",
    "softmax -n 2 -c 16 -H 4 -W 4 -V 1 -i 1",
    "bnorm -n 2 -c 8 -H 6 -W 6 -m 1 -F 0 -V 1 -i 1",
]
ROCRAND = ("basic", "generate", "generate_uniform", "generate_normal", "kernel_philox4x32_10", "kernel_xorwow",
           "kernel_sobol64", "kernel_mtgp32")
# A program and the tests of it: of programs that run for minutes, those of two types.
ROCPRIM = {
    "warp_exchange": "*", "warp_load": "*", "warp_store": "*", "warp_reduce": "*", "warp_scan": "*", "warp_sort": "*",
    "block_run_length_decode": "*", "block_shuffle": "*", "block_load_store": "*", "intrinsics": "*",
    "device_select": "*SelectTests/0.*:*SelectTests/5.*", "device_run_length_encode": "*/0.*:*/5.*",
    "device_partition": "*PartitionTests/0.*:*PartitionTests/5.*", "device_binary_search": "*/0.*:*/7.*",
}
ROCSPARSE = "quick/axpyi.*:quick/doti.*:quick/gthr.*:quick/coomv.*:quick/ellmv.*:quick/csr2csc.*"
ROCFFT = ("pow2_1D/accuracy*complex_forward_len_64_*batch_2*CI*CI*:mix_1D/accuracy*forward_len_15_*op_batch_1_*:"
          "prime_1D/accuracy*complex_forward_len_31_single_op_batch_1_*:prime_1D/accuracy*real_forward_len_53_single_op_*:"
          "pow5_1D/accuracy*complex_forward_len_125_double_ip_batch_1_istride_1_CI*")
# Another prompt may have a token that two others nearly equal; then llama.cpp's own backends differ.
PROMPT = "504,1296,768,1070,3372,282,1123,4665,359"  # The three most important rules of good engineering are


def all_suites():
    programs = ("programs-7.2.4", "libraries-7.2.4", "7.2.4")
    suites = [
        suite("rocblas-bench", "6.4.4", "gemm", ("rocblas-6.4.4", *ROCR), "librocblas4-bench/rocblas-bench",
              gemms("rocblas-bench")),
        suite("rocblas-bench", "7.2.4", "gemm", (*programs, *ROCR), "librocblas5-bench/rocblas-bench",
              gemms("rocblas-bench"), chips=LIBRARIES),
        suite("hipblaslt-bench", "7.2.4", "gemm", (*programs, *ROCR), "libhipblaslt1-bench/hipblaslt-bench",
              gemms("hipblaslt-bench")),
        suite("MIOpenDriver", "7.2.4", "miopen", (*programs, "rocrand-6.4.3", *ROCR), "libmiopen1-tests/MIOpenDriver",
              [call.split() for call in MIOPEN], environment=MIOPEN_ENVIRONMENT, hiprtc="libhiprtc.so.7"),
    ]
    suites += [suite(name, "7.2.4", "wick", (*programs, "rocrand-6.4.3", *ROCR), name, [[f"--gtest_filter={pattern}"]],
                     environment=MIOPEN_ENVIRONMENT, hiprtc="libhiprtc.so.7")
               for name, pattern in (("gpu_libraries_test", "GpuLibraries.*"),
                                     ("gpu_conv_library_test", "GpuConvLibrary.*:GpuConvBackend.*"))]
    for release, group, more in (("6.4.3", "rocfft-6.4.3", ("6.4.3",)), ("7.2.4", "programs-7.2.4", programs[1:])):
        suites.append(tests("rocfft-test", release, group, "rocfft-test", ROCFFT, ["--seed", "1"], groups=more,
                            hiprtc=f"libhiprtc.so.{release[0]}"))
    suites += [tests(f"rocRAND {name}", "6.4.3", "rocrand-6.4.3", f"test_rocrand_{name}") for name in ROCRAND]
    suites += [tests(f"rocPRIM {name}", "6.4.3", "rocprim-6.4.3", f"test_{name}", pattern)
               for name, pattern in ROCPRIM.items()]
    suites.append(tests("rocsparse-test", "6.4.3", "rocsparse-6.4.3", "rocsparse-test", ROCSPARSE,
                        ["--data", "{share}/librocsparse1-tests/data/rocsparse_test.data"]))
    suites += [suite("kernels of hiprtc that call the host", release, "hiprtc", (release, *ROCR), None, [[]], minutes=3)
               for release in ("6.4.3", "7.2.4")]
    suites.append(suite("RCCL, two devices", "5.4.3", "rccl", ("rccl-5.4.3", *ROCR), None, [[]]))
    suites += [suite("Triton's kernels", version, "triton", (), None, [[]], chips=CHIPS, minutes=5)
               for version in (wheel.version for wheel in wheels.WHEELS.values() if wheel.package == "triton")]
    suites += [suite(name, "0.7.0", kind, (), None, [[]], chips=LIBRARIES, minutes=5)
               for name, kind in (("llama.cpp, 8 tokens", "llama"), ("whisper.cpp and stable-diffusion.cpp", "ggml"))]
    return suites


def wheels_of(suite):
    """The names of the wheels that a suite needs."""
    return {"triton": (f"triton-{suite.release}",), "llama": (wheels.INFERNA,),
            "ggml": (wheels.INFERNA, *wheels.NUMPY.values())}.get(suite.kind, ())


def run_gemms(commands, env, seconds, outcome):
    """Each call prints a table whose column norm_error must be zero."""
    for command, call in commands:
        process = Process(command, env, seconds)
        lines = list(process.lines())
        name = call[call.index("--a_type" if "--a_type" in call else "--precision") + 1]
        error = norm_error(lines)
        if process.child.returncode != 0 or complaint(lines) or error is None:
            outcome.fail(f"{name}: {process.end()}: {reason(lines)}")
        elif error != 0:
            outcome.fail(f"{name}: the norm of the errors is {error}")
        else:
            outcome.passed += 1


def norm_error(lines):
    """The value of the column norm_error or norm_error_1; None if there is none."""
    for head, values in zip(lines, lines[1:]):
        names = head.partition(":")[2].split(",") if head.startswith("[0]:") else head.split(",")
        row = next(csv.reader([values]), [])
        for name in ("norm_error", "norm_error_1"):
            if name in names and len(row) == len(names):
                return float(row[names.index(name)])
    return None


def run_miopen(commands, env, seconds, outcome):
    """Each direction of a call is verified, or prints that it failed."""
    for command, call in commands:
        process = Process(command, env, seconds)
        lines = list(process.lines())
        good = [line for line in lines if re.search(r"Verifies (OK )?on ", line)]
        bad = [line for line in lines if "FAILED" in line]
        if process.child.returncode != 0 or complaint(lines) or bad or not good:
            outcome.fail(f"{call[0]}: {process.end()}: {complaint(lines) or (bad + [reason(lines)])[0]}")
        else:
            outcome.passed += len(good)


def run_lines(commands, env, seconds, outcome):
    """Programs of this repository: they print "ok NAME", "bad NAME: why" or "skipped NAME: why"."""
    for command, _ in commands:
        process = Process(command, env, seconds)
        lines, said, ran = list(process.lines()), [], 0
        for line in lines:
            mark = re.match(r"(ok|bad|skipped) (.*)", line)
            if not mark:
                said.append(line)
                continue
            ran += 1
            if mark[1] == "skipped":
                outcome.skipped += 1
            elif mark[1] == "ok" and not complaint(said):
                outcome.passed += 1
            else:
                outcome.fail(f"{mark[2]}" + (f": {complaint(said)}" if complaint(said) else ""))
            said = []
        if process.child.returncode != 0 or ran == 0 or complaint(said):
            outcome.fail(f"{process.end()}: {reason(said)}")


def run_llama(command, env, seconds, outcome):
    """llama.cpp's greedy tokens on the chip are those of its CPU backend."""
    made = []
    for cpu in (True, False):
        process = Process([*command, *(["--cpu"] if cpu else [])], env, seconds)
        lines = list(process.lines())
        found = [line for line in lines if re.fullmatch(r"\[[0-9, ]+\]", line)]
        if process.child.returncode != 0 or complaint(lines) or not found:
            outcome.fail(f"{'CPU' if cpu else 'chip'}: {process.end()}: {reason(lines)}")
            return
        made.append(found[-1])
    if made[0] == made[1]:
        outcome.passed += 1
    else:
        outcome.fail(f"the CPU's tokens are {made[0]}, the chip's {made[1]}")


class Runner:
    """Runs suites on the emulator of a build folder. threads: of the emulator, for each suite."""

    def __init__(self, emulator, cache=None, threads=1, model=None, build=None):
        self.library = (pathlib.Path(emulator) / "lib" / "libwick_emu.so").resolve()
        self.cache, self.threads, self.model, self.build = cache, threads, model, build

    def prepare(self, suites):
        """Fetches what the suites need; raises RocmError for what can't be had."""
        for each in suites:
            prepare_groups(each.groups, self.cache)
            for name in wheels_of(each):
                if each.kind == "triton":
                    wheels.check_python(name)
                wheels.unpacked(name, self.cache)

    def reachable(self, work):
        """Prepares suites, and returns those jobs whose packages can be had. Raises Unreachable if there are none."""
        gone = {}
        for each in {(suite.name, suite.release): suite for suite, _, _ in work}.values():
            try:
                self.prepare([each])
            except Unreachable as error:
                gone[each.name, each.release] = error
        found = [job for job in work if job[0][:2] not in gone]
        if gone and not found:
            raise next(iter(gone.values()))
        for (name, _), error in gone.items():
            fetch_model.say(f"{name}: left out: {error}")
        return found

    def run(self, suite, _, chip):
        """Returns the outcome of a suite and the seconds that it took."""
        started, outcome = time.monotonic(), Outcome()
        with tempfile.TemporaryDirectory(prefix="wick-amd-") as folder:
            folder = pathlib.Path(folder)
            (folder / "tmp").mkdir()
            trees = prepare_groups(suite.groups, self.cache, quiet=True)
            env = self.environment(suite, chip, trees, folder)
            limit = suite.minutes * 60
            if suite.kind == "llama":
                library = self.library.with_name("libamdhip64.so.6")
                run_llama(self.peer("llama_rocm.py", library, str(self.model), PROMPT, "8"), env, limit, outcome)
            elif suite.kind == "wick" and not (self.build / "bin" / suite.program).is_file():
                outcome.fail(f"{suite.program} isn't built (ninja wick_tests)")
            elif suite.kind in ("gtest", "wick"):
                run_gtest(self.commands(suite, trees, folder)[0][0], env, limit, outcome)
            else:
                kinds = {"gemm": run_gemms, "miopen": run_miopen, "rccl": run_lines, "hiprtc": run_lines, "triton": run_lines,
                         "ggml": run_lines}
                kinds[suite.kind](self.commands(suite, trees, folder, chip), env, limit, outcome)
        return outcome, time.monotonic() - started

    def environment(self, suite, chip, trees, folder):
        devices = 2 if suite.kind == "rccl" else 1
        env = dict(os.environ)
        for name in [name for name in env if name.startswith(("WICK_EMU_", "ROCBLAS_", "HIPBLASLT_", "MIOPEN_", "TRITON_"))]:
            env.pop(name)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "ROCM_PATH", "HIP_PATH", "HIP_VISIBLE_DEVICES"):
            env.pop(name, None)
        env.update({"WICK_EMU_DEVICES": ",".join([chip] * devices), "WICK_EMU_THREADS": str(self.threads),
                    "WICK_EMU_SMI_DEVICES": str(devices), "MIOPEN_USER_DB_PATH": str(folder), "HSA_ENABLE_SDMA": "0",
                    "TMPDIR": str(folder / "tmp"),
                    "MIOPEN_CUSTOM_CACHE_DIR": str(folder), "ROCFFT_RTC_CACHE_PATH": str(folder / "rocfft.db"),
                    "ROCFFT_RTC_PROCESS": "0", "TRITON_CACHE_DIR": str(folder / "triton"), **suite.environment})
        for variable, pattern in (("ROCBLAS_TENSILE_LIBPATH", "rocblas/*/library"),
                                  ("HIPBLASLT_TENSILE_LIBPATH", "hipblaslt/library")):
            found = [path for tree in trees for path in tree.glob(pattern)]
            if found:
                env[variable] = str(found[0])
        if suite.kind == "wick":
            env.update({"WICK_HIP_LIBRARY": str(folder / "lib" / "libamdhip64.so"), "WICK_KERNEL_CACHE": "off",
                        **library_variables(trees)})
        if suite.name == "rocblas-bench":
            env["ROCBLAS_TENSILE_LIBPATH"] = str(kernels_of_one_layout(env["ROCBLAS_TENSILE_LIBPATH"], folder / "rocblas"))
        return env

    def links(self, folder):
        """The folder of the emulator's library under the names that programs look for, and of ROCm SMI."""
        links = folder / "lib"
        links.mkdir()
        for version in ("", ".5", ".6", ".7"):
            (links / f"libamdhip64.so{version}").symlink_to(self.library)
        compile_c("cc", HERE / "smi.c", links / "librocm_smi64.so.1", "-shared", "-fPIC")
        (links / "librocm_smi64.so.7").symlink_to("librocm_smi64.so.1")
        return links

    def commands(self, suite, trees, folder, chip=None):
        """Each process's command, and the arguments that tell it from the others."""
        links = self.links(folder)
        if suite.kind == "triton":
            wheel = wheels.unpacked(*wheels_of(suite), self.cache)
            return [([sys.executable, str(HERE / "triton_kernels.py"), str(wheel), str(links / "libamdhip64.so")], [])]
        if suite.kind == "ggml":
            return [(self.peer("ggml_rocm.py", links / "libamdhip64.so.6"), [])]
        calls = suite.calls
        if suite.kind == "rccl":
            program = folder / "rccl_calls"
            compile_c("c++", HERE / "rccl_calls.cpp", program, "-std=c++20", "-O1", "-ldl")
            calls = [["libamdhip64.so.5", "librccl.so.1"]]
        elif suite.kind == "wick":
            program = self.build / "bin" / suite.program
        elif suite.kind == "hiprtc":
            program = folder / "hiprtc_calls"
            compile_c("c++", HERE / "hiprtc_calls.cpp", program, "-std=c++20", "-O1", "-ldl", f"-I{ROOT}")
            major = suite.release[0]
            calls = [[f"libamdhip64.so.{major}", f"libhiprtc.so.{major}", chip]]
        else:
            program = program_of(suite, trees)
        loader = [str(trees[-1] / "ld-linux-x86-64.so.2"), "--library-path", ":".join(map(str, [links, *trees]))]
        if suite.hiprtc:
            loader += ["--preload", suite.hiprtc]
        share = program.parent.parent.parent.parent / "share"
        return [([*loader, str(program), *(word.replace("{share}", str(share)) for word in call)], call) for call in calls]

    def peer(self, script, library, *arguments):
        """The command of a script that runs INFERNA's programs."""
        cache = ["--cache", str(self.cache)] if self.cache else []
        return [sys.executable, str(ROOT / "bench" / "peers" / script), *arguments, "--library", str(library), *cache]


def kernels_of_one_layout(library, folder):
    """rocBLAS loads the code of every file of its folder at start, 1.2 GB for gfx90a. Returns a folder of links to its files
    without the code for other layouts than that of gemms(), and without the code that it takes only on request."""
    folder.mkdir()
    for file in pathlib.Path(library).iterdir():
        wanted = "_Contraction_l_Ailk_Bjlk_" in file.name and not re.search("_Experimental|_Fp16Alt", file.name)
        if "_Type_" not in file.name or file.suffix == ".dat" or wanted:
            (folder / file.name).symlink_to(file)
    return folder


def program_of(suite, trees):
    for tree in trees:
        program = tree.parent.parent / "libexec" / "rocm" / suite.program
        if program.is_file():
            return program
    raise RocmError(f"{suite.program} isn't in the packages of {', '.join(suite.groups)}")


def is_meant(name, suite):
    """Whether the suite's name, followed by its version, starts with `name`."""
    return name != "" and f"{suite.name} {suite.release}".startswith(name)


def newest(suites):
    """The suites of the newest version of each program."""
    def number(each):
        return [int(part) for part in each.release.split(".")]
    return [each for each in suites if number(each) == max(number(other) for other in suites if other.name == each.name)]


def chosen(names, chips, everything=False):
    """The suites to run, each with its release and a chip: those that are named, all, or the default selection."""
    suites = all_suites() if names or everything else newest(all_suites())
    work = [(each, each.release, chip) for each in suites for chip in each.chips if chip in chips]
    if names:
        return named(names, suites, work, is_meant, f"on {', '.join(chips)}")
    return [job for job in work if everything or job[2] in SHORT.get(job[0].name, job[0].chips)]
