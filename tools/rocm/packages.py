"""Fetches the packages of packages.txt and unpacks them into folders of the cache. Nothing is installed."""

import collections
import contextlib
import errno
import os
import pathlib
import re
import shlex
import shutil
import signal
import tempfile

import fetch_model
from rocm import trees
from rocm.errors import RocmError, Unreachable
from rocm.processes import call

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


# A download that brings fewer bytes a second, over so many seconds, is given up.
SLOWEST, PATIENCE = 10_000, 60
SPARE = 1 << 20  # bytes that a program which downloads may write into a file besides


def size_of(folder):
    """The bytes of a folder's files, some of which may vanish meanwhile."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_size
    return size


def call_download(command, folder, most):
    """Runs a program that downloads `most` bytes into `folder`, and returns what became of it. Its temporary files are there,
    too. Raises RocmError if more bytes came or if they come too slowly, and Unreachable if none come."""
    start = seen = size_of(folder)

    def check():
        nonlocal seen
        before, seen = seen, size_of(folder)
        if seen == start:
            raise Unreachable(f"nothing came in {PATIENCE} s")
        if seen - before < SLOWEST * PATIENCE:
            raise RocmError(f"fewer than {SLOWEST} bytes a second came in {PATIENCE} s")

    limited = ["prlimit", f"--fsize={most + SPARE}", "--core=0", *command]
    done = call(limited, env=dict(os.environ, TMPDIR=str(folder)), patience=PATIENCE, check=check)
    # A signal ends programs whose file may not grow. apt says that it ended one of its own; Python ignores it.
    said = f"received signal {signal.SIGXFSZ.value}", os.strerror(errno.EFBIG)
    if done.returncode == -signal.SIGXFSZ or any(text in done.stderr for text in said):
        raise RocmError(f"more than {most} bytes came")
    return done


def cache_folder(given=None):
    return pathlib.Path(given or fetch_model.models_dir().with_name("rocm")).resolve()


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


def download_from(address, package, part):
    """Downloads a package from a mirror. Returns what is wrong, or None."""
    try:
        done = call_download([APT_HELPER, "-o", "Acquire::Retries=2", "-o", "APT::Sandbox::User=root", "download-file",
                              f"{address}/{package.path}", str(part)], part.parent, package.bytes)
    except RocmError as error:
        return str(error)
    if done.returncode != 0 or not part.is_file():
        causes = dict.fromkeys(line[2:].strip() for line in done.stderr.splitlines() if line.startswith("E:"))
        return "; ".join(causes) or "nothing came"
    if part.stat().st_size != package.bytes:
        return f"{part.stat().st_size} bytes came where {package.bytes} are right"
    if fetch_model.sha256_of(part) != package.sha256:
        return f"its SHA-256 differs from the one in {LIST.name}"
    return None


def download(package, target, addresses):
    """Writes the package to `target` under a temporary name and renames it when its digest is right."""
    if not os.access(APT_HELPER, os.X_OK):
        raise RocmError(f"{APT_HELPER} is missing: this needs Debian's apt")
    reasons = []
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as folder:
        for address in addresses:
            why = download_from(address, package, pathlib.Path(folder) / "package.deb")
            if why is None:
                os.replace(pathlib.Path(folder) / "package.deb", target)
                return
            reasons.append(f"{address}: {why}")
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


def unpack_package(package, file, folder):
    """Unpacks a package, or the files of it that its patterns name."""
    command = ["dpkg-deb", "-x", str(file), str(folder)]
    if package.patterns:
        quoted = " ".join(shlex.quote(word) for word in ("--no-anchored", "--wildcards", *package.patterns))
        command = ["bash", "-c", f'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" {quoted}', "unpack",
                   str(file), str(folder)]
    done = call(command)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["dpkg-deb failed"]
        raise RocmError(f"{file.name} can't be unpacked: {said[0]}")


def unpack(group, packages, files, folder):
    if shutil.which("dpkg-deb") is None:
        raise RocmError("dpkg-deb is missing: this needs Debian's dpkg")
    for package, file in zip(packages, files):
        unpack_package(package, file, folder)
    for name in ("bug", "doc", "lintian", "man"):
        shutil.rmtree(folder / "usr/share" / name, ignore_errors=True)
    patch(folder, group)


def prepare_groups(groups, folder=None, file=LIST, quiet=False):
    """Returns the folder of libraries of each group, after fetching and unpacking what is missing."""
    folder = cache_folder(folder)
    packages = read_list(file)
    found = []
    for group in groups:
        own = packages_of(group, packages)
        if not own:
            raise RocmError(f"{file.name} has no packages of the group {group}")
        trees.make(folder / group, stamp_of(group, own),
                   lambda tree: unpack(group, own, fetch(own, folder / "packages", quiet), tree))
        found.append(folder / group / LIBRARIES)
    return found


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
