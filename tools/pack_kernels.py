#!/usr/bin/env python3
"""Packs compiled GPU kernels for the binary: one compressed archive an architecture, one of sources.

  pack_kernels.py archive OUT.zst NAME=FILE...     NAME is how the file is asked for
  pack_kernels.py table OUT.S NAME=ARCHIVE...      assembly with all archives and their table

An archive is a line "NAME SIZE" for each file, an empty line, and the files one after another.
"""
import pathlib
import subprocess
import sys


def pairs(words):
    return [word.split("=", 1) for word in words]


def write_archive(out, files):
    contents = [(name, pathlib.Path(path).read_bytes()) for name, path in files]
    head = "".join(f"{name} {len(data)}\n" for name, data in contents) + "\n"
    raw = head.encode() + b"".join(data for _, data in contents)
    # With the size on the command line it gets into the frame, where the reader looks for it.
    subprocess.run(["zstd", "-q", "-19", "--long=27", f"--stream-size={len(raw)}", "-f", "-o", out],
                   input=raw, check=True)


def write_table(out, archives):
    text = ['.section .rodata,"a",@progbits\n']
    for number, (name, path) in enumerate(archives):
        text.append(f'.Lname{number}: .asciz "{name}"\n.balign 64\n.Ldata{number}: '
                    f'.incbin "{path}"\n.Lend{number}: .byte 0\n')
    text.append('.section .data.rel.ro,"aw",@progbits\n.balign 8\n.globl wick_gpu_archives\n'
                ".hidden wick_gpu_archives\nwick_gpu_archives:\n")
    for number in range(len(archives)):
        text.append(f".quad .Lname{number}, .Ldata{number}, .Lend{number}\n")
    text.append('.section .rodata,"a",@progbits\n.balign 4\n.globl wick_gpu_archive_count\n'
                f".hidden wick_gpu_archive_count\nwick_gpu_archive_count: .long {len(archives)}\n"
                '.section .note.GNU-stack,"",@progbits\n')
    pathlib.Path(out).write_text("".join(text), encoding="ascii")


def main():
    what, out, *words = sys.argv[1:]
    {"archive": write_archive, "table": write_table}[what](out, pairs(words))


if __name__ == "__main__":
    main()
