"""Folders of the cache, such as an unpacked package: whole or not there, and made again after a file of it was changed."""

import contextlib
import fcntl
import json
import os
import pathlib
import tempfile

import fetch_model

MARK = "complete"  # a file of each folder: what it was made of, and the size and the time of each of its files


def times_of(tree):
    """The size and the time of each file and link, by its path."""
    found = {}
    for path in tree.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            state = path.lstat()
            found[str(path.relative_to(tree))] = [state.st_size, state.st_mtime_ns]
    return found


def read_mark(tree, stamp):
    """The sizes and times of a folder that was made for this stamp; None if there is none."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        mark = json.loads((tree / MARK).read_text())
        return mark["files"] if mark["stamp"] == stamp else None
    return None


def first_change(tree, times):
    """The name of a file that isn't as it was; None without one. New files don't count: Python writes some."""
    for name, was in times.items():
        try:
            state = (tree / name).lstat()
        except OSError:
            return name
        if [state.st_size, state.st_mtime_ns] != was:
            return name
    return None


@contextlib.contextmanager
def locked(folder):
    """One process at a time fills a folder of the cache."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make(tree, stamp, fill):
    """Has fill(folder) make the folder `tree`, unless it was made for this stamp and is unchanged."""
    if is_right(tree, stamp):
        return
    tree.parent.mkdir(parents=True, exist_ok=True)
    with locked(tree.parent):
        if is_right(tree, stamp, tell=True):  # another process made it
            return
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=tree.parent) as temporary:
            fresh = pathlib.Path(temporary) / "tree"
            fresh.mkdir()
            fill(fresh)
            (fresh / MARK).write_text(json.dumps({"stamp": stamp, "files": times_of(fresh)}))
            if tree.exists():
                os.replace(tree, pathlib.Path(temporary) / "old")
            os.replace(fresh, tree)


def is_right(tree, stamp, tell=False):
    times = read_mark(tree, stamp)
    change = None if times is None else first_change(tree, times)
    if change and tell:
        fetch_model.say(f"{tree} is made again: {change} was changed")
    return times is not None and change is None
