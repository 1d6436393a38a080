"""Fetches the packages of packages.txt and unpacks them into a folder of the cache. Nothing is installed."""

import collections
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading

import fetch_model

LIST = pathlib.Path(__file__).with_name("packages.txt")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
RELEASES = ("7.2.4", "6.4.3")
APT_HELPER = "/usr/lib/apt/apt-helper"
SNAPSHOT = "http://snapshot.debian.org/archive/debian/20261126T000000Z"

# patterns: of the files to unpack; none for all.
Package = collections.namedtuple("Package", "group sha256 bytes path patterns", defaults=[()])

# ROCr binds a trap handler on gfx9 and gfx10 by a call that its simulator hook lacks; the process would abort. On gfx11
# and later it binds none. The byte is the immediate of `cmp $10, generation` in GpuAgent::BindTrapHandler(): with 7, no
# generation gets one. The offset belongs to the package's digest.
PATCHES = {"rocr": ("libhsa-runtime64.so.1", 0x5f2a4, bytes.fromhex("83f80a0f8f"), 2, 7)}


class RocmError(Exception):
    """A failure that the user can understand; its text is one line."""


class Unreachable(RocmError):
    """A server that can't be reached. Tests that need it are skipped."""


def call(command):
    """Runs a program and returns what became of it. A signal to this process kills the program with its children."""
    started, failed = [], []

    def start():
        try:
            started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            text=True, errors="replace", start_new_session=True))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=start)  # signals interrupt the main thread only, not the start of a program
    try:
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        out, err = started[0].communicate()
    except BaseException:
        if thread.ident is not None:
            thread.join()
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        raise
    return subprocess.CompletedProcess(command, started[0].returncode, out, err)


def cache_folder():
    return fetch_model.models_dir().with_name("rocm")


def read_list(file=LIST):
    packages = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) not in (4, 5) or not re.fullmatch("[0-9a-f]{64}", words[1]) or not words[2].isdigit():
            raise RocmError(f"{file.name}, line {number}: not a group, a SHA-256, a size and a path")
        patterns = tuple(words[4].split(",")) if len(words) == 5 else ()
        packages.append(Package(words[0], words[1], int(words[2]), words[3], patterns))
    return packages


def packages_of(group, packages):
    return [package for package in packages if package.group == group]


def is_right(path, package):
    return path.is_file() and path.stat().st_size == package.bytes and fetch_model.sha256_of(path) == package.sha256


def mirrors():
    """Addresses to try, in this order: WICK_DEBIAN_MIRROR, or the mirror that apt uses, Debian's own and its archive of
    old versions."""
    chosen = os.environ.get("WICK_DEBIAN_MIRROR")
    if chosen:
        return [chosen.rstrip("/")]
    done = call(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    found = [line.rstrip("/") for line in done.stdout.splitlines() if line.rstrip("/").endswith("/debian")]
    return list(dict.fromkeys(found + ["http://deb.debian.org/debian", SNAPSHOT]))


def download(package, target, addresses):
    """Writes the package to `target` under a temporary name and renames it when its digest is right."""
    if not os.access(APT_HELPER, os.X_OK):
        raise RocmError(f"{APT_HELPER} is missing: this needs Debian's apt")
    reasons = []
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as folder:
        for address in addresses:
            part = pathlib.Path(folder) / "package.deb"
            done = call([APT_HELPER, "-o", "Acquire::Retries=2", "-o", "APT::Sandbox::User=root", "download-file",
                         f"{address}/{package.path}", str(part)])
            if done.returncode != 0 or not part.is_file():
                lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("E:", "Err:"))]
                reasons.append(f"{address}: {(lines or ['nothing came'])[-1]}")
            elif part.stat().st_size != package.bytes:
                reasons.append(f"{address}: {part.stat().st_size} bytes came where {package.bytes} are right")
            elif fetch_model.sha256_of(part) != package.sha256:
                reasons.append(f"{address}: its SHA-256 differs from the one in {LIST.name}")
            else:
                os.replace(part, target)
                return
    name = pathlib.PurePath(package.path).name
    raise RocmError(f"{name} can't be had: " + "; ".join(reasons))


def fetch(packages, folder, quiet=False):
    """Returns the files of the packages, after downloading those that are missing or wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    files, addresses = [], None
    missing = []
    for package in packages:
        file = folder / pathlib.PurePath(package.path).name
        files.append(file)
        if not is_right(file, package):
            missing.append((package, file))
    for number, (package, file) in enumerate(missing, 1):
        if not quiet:
            fetch_model.say(f"fetching {number} of {len(missing)}: {file.name}, {package.bytes / 1e6:.1f} MB")
        addresses = addresses or mirrors()
        download(package, file, addresses)
    return files


def patch(tree, group):
    """Changes a byte of ROCr: see PATCHES."""
    if group not in PATCHES:
        return
    name, offset, before, at, value = PATCHES[group]
    path = tree / LIBRARIES / name
    code = bytearray(path.resolve().read_bytes())
    if code[offset:offset + len(before)] != before:
        raise RocmError(f"{name} doesn't have the code that is to be changed")
    code[offset + at] = value
    path.resolve().write_bytes(code)


def stamp_of(group, packages):
    files = "".join(" ".join((package.sha256, *package.patterns)) + "\n" for package in packages)
    return files + repr(PATCHES.get(group)) + "\n"


def is_complete(tree, stamp):
    mark = tree / "complete"
    return mark.is_file() and mark.read_text() == stamp


def unpack_package(package, file, folder):
    """Unpacks a package, or the files of it that its patterns name."""
    command = ["dpkg-deb", "-x", str(file), str(folder)]
    if package.patterns:
        quoted = " ".join(shlex.quote(word) for word in ("--no-anchored", "--wildcards", *package.patterns))
        folder.mkdir(exist_ok=True)
        command = ["bash", "-c", f'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" {quoted}', "unpack",
                   str(file), str(folder)]
    done = call(command)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["dpkg-deb failed"]
        raise RocmError(f"{file.name} can't be unpacked: {said[0]}")


def unpack(group, stamp, packages, files, tree):
    """Unpacks into a temporary folder, and renames it to `tree` when it is whole."""
    if shutil.which("dpkg-deb") is None:
        raise RocmError("dpkg-deb is missing: this needs Debian's dpkg")
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=tree.parent) as temporary:
        fresh = pathlib.Path(temporary) / "tree"
        for package, file in zip(packages, files):
            unpack_package(package, file, fresh)
        for name in ("bug", "doc", "lintian", "man"):
            shutil.rmtree(fresh / "usr/share" / name, ignore_errors=True)
        patch(fresh, group)
        (fresh / "complete").write_text(stamp)
        if tree.exists():
            os.replace(tree, pathlib.Path(temporary) / "old")
        os.replace(fresh, tree)


def prepare_groups(groups, folder=None, file=LIST, quiet=False):
    """Returns the folder of libraries of each group, after fetching and unpacking what is missing."""
    folder = folder or cache_folder()
    packages = read_list(file)
    trees = []
    for group in groups:
        own, tree = packages_of(group, packages), folder / group
        if not own:
            raise RocmError(f"{file.name} has no packages of the group {group}")
        stamp = stamp_of(group, own)
        if not is_complete(tree, stamp):
            unpack(group, stamp, own, fetch(own, folder / "packages", quiet), tree)
        trees.append(tree / LIBRARIES)
    return trees


def prepare(release, folder=None, file=LIST, quiet=False, libraries=False):
    """Returns the folders of libraries of a release: its own, then those that releases share. libraries: also AMD's
    libraries of matrix products."""
    packages = read_list(file)
    if release not in RELEASES or not packages_of(release, packages):
        raise RocmError(f"there is no release {release}; known are {', '.join(RELEASES)}")
    if libraries and not packages_of(f"libraries-{release}", packages):
        raise RocmError(f"there are no libraries for release {release}")
    groups = (release, *([f"libraries-{release}"] if libraries else []), "rocr", "base")
    return prepare_groups(groups, folder, file, quiet)
