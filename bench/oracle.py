"""Calls of llama_oracle (bench/peers/llama_oracle.cpp), and its input texts."""

import json
import tempfile
from pathlib import Path

import harness

LICENSES = Path("/usr/share/common-licenses")
# Enough text for 30,000 tokens, available on every Debian machine. The order is fixed, because a
# prefix is used.
LICENSE_NAMES = ["GPL-3", "Apache-2.0", "MPL-2.0", "GFDL-1.3", "LGPL-2.1", "GPL-1", "Artistic",
                 "CC0-1.0"]


def default_text():
    parts = [(LICENSES / name).read_text(encoding="utf-8") for name in LICENSE_NAMES
             if (LICENSES / name).is_file()]
    if not parts:
        raise harness.BenchError(f"no text in {LICENSES}: name a file with -f")
    return "\n".join(parts)


def ask(mode, model, files, *arguments):
    """Returns the oracle's results for each file, in order."""
    command = [harness.peer()["llama_oracle"], mode, "-m", model, *arguments]
    for file in files:
        command += ["-f", file]
    # Generated text may end inside a character: Child decodes with "replace", and strict=False
    # accepts the result.
    return json.loads(harness.Child(command).stdout, strict=False)["results"]


def ask_texts(mode, model, texts, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        return ask(mode, model, save_texts(folder, texts), *arguments)


def save_texts(folder, texts):
    files = []
    for i, text in enumerate(texts):
        files.append(Path(folder) / f"text{i:03}.txt")
        files[-1].write_bytes(text.encode("utf-8"))
    return files


def segments(model, text, ctx, wanted_tokens):
    """Cuts a prefix of `text` into pieces of at most `ctx` tokens, with `wanted_tokens` or more in total.

    Each piece is scored alone with an empty cache. Both programs therefore use exactly the same contexts,
    whatever their rules for a text longer than the context.
    """
    rest, pieces, total = text, [], 0
    while rest and total < wanted_tokens:
        size = ctx * 4  # English has some four bytes per token
        while True:
            piece = rest[:size]
            if len(piece) < len(rest):  # cut after a line, so that no word is split
                piece = piece[:piece.rfind("\n") + 1] or piece
            count = len(ask_texts("tokenize", model, [piece])[0]["tokens"])
            if count <= ctx:
                break
            size = size * 9 // 10
        pieces.append(piece)
        rest = rest[len(piece):]
        total += count
    if total < wanted_tokens:
        raise harness.BenchError(f"the text has {total} tokens, {wanted_tokens} are wanted")
    return pieces
