#!/usr/bin/env python3
"""Packs compiled GPU kernels for the binary: one compressed archive per architecture, and one of sources.

  pack_kernels.py archive OUT.zst [--level N] [--base BASE.zst] NAME=FILE...   NAME is the file's name in the archive
  pack_kernels.py table OUT.S NAME=ARCHIVE[=BASE]...               assembly with all archives and their table

An archive has a line "NAME SIZE" for each file, an empty line, and the files one after another. With a
base, which must be an archive without a base, only the differences from it are stored: images for
architectures of one generation are nearly equal.
"""
import pathlib
import subprocess
import sys
import tempfile


def write_archive(out, words):
    level, base = "19", None
    if words[0] == "--level":
        level, words = words[1], words[2:]
    if words[0] == "--base":
        base, words = words[1], words[2:]
    files = [word.split("=", 1) for word in words]
    contents = [(name, pathlib.Path(path).read_bytes()) for name, path in files]
    head = "".join(f"{name} {len(data)}\n" for name, data in contents) + "\n"
    raw = head.encode() + b"".join(data for _, data in contents)
    with tempfile.NamedTemporaryFile() as prefix:
        options = []
        if base is not None:
            subprocess.run(["zstd", "-qdf", "--long=27", base, "-o", prefix.name], check=True)
            options = [f"--patch-from={prefix.name}"]
        # The size on the command line is stored in the frame, where the reader looks for it.
        subprocess.run(["zstd", "-q", f"-{level}", "--long=27", *options, f"--stream-size={len(raw)}",
                        "-f", "-o", out], input=raw, check=True)


def write_table(out, words):
    archives = [(word.split("=") + [""])[:3] for word in words]
    numbers = {name: number for number, (name, _, _) in enumerate(archives)}
    text = ['.section .rodata,"a",@progbits\n']
    for number, (name, path, _) in enumerate(archives):
        text.append(f'.Lname{number}: .asciz "{name}"\n.balign 64\n.Ldata{number}: '
                    f'.incbin "{path}"\n.Lend{number}: .byte 0\n')
    text.append('.section .data.rel.ro,"aw",@progbits\n.balign 8\n.globl wick_gpu_archives\n'
                ".hidden wick_gpu_archives\nwick_gpu_archives:\n")
    for number, (_, _, base) in enumerate(archives):
        base = f".Lname{numbers[base]}" if base else "0"
        text.append(f".quad .Lname{number}, .Ldata{number}, .Lend{number}, {base}\n")
    text.append('.section .rodata,"a",@progbits\n.balign 4\n.globl wick_gpu_archive_count\n'
                f".hidden wick_gpu_archive_count\nwick_gpu_archive_count: .long {len(archives)}\n"
                '.section .note.GNU-stack,"",@progbits\n')
    pathlib.Path(out).write_text("".join(text), encoding="ascii")


def main():
    what, out, *words = sys.argv[1:]
    {"archive": write_archive, "table": write_table}[what](out, words)


if __name__ == "__main__":
    main()
