#!/usr/bin/env python3
"""Measures how fast wick and PyPI's `tokenizers` encode, on one thread.

    pip install tokenizers
    PYTHONPATH=build/release/python python bench/tokenizer_speed.py [--megabytes 4] [--markdown]

Vocabularies of each kind are trained on the Python library's sources and on lines of other scripts.
Both sides read the same tokenizer.json and encode the same documents: English and code, a mix of many
scripts, and one document of a megabyte. Times are the best of several runs; rates count bytes of
UTF-8. The ids are compared, too.
"""
import argparse
import json
import os
import pathlib
import random
import sys
import sysconfig
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,  # noqa: E402
                        pre_tokenizers, trainers)

import wick  # noqa: E402

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
SCRIPTS = [(0x61, 0x7a), (0x400, 0x44f), (0x3b1, 0x3c9), (0x5d0, 0x5ea), (0x627, 0x64a), (0x905, 0x939), (0x3041, 0x3096),
           (0x4e00, 0x4fff), (0xac00, 0xadff), (0xe01, 0xe30)]


def library(most):
    """Sources and documentation of the Python library."""
    out, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts or size > most:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        out.append(text)
        size += len(text)
    return out


def scripts(seed, size):
    """Lines of words in many scripts; words repeat as in natural text."""
    r = random.Random(seed)
    words = ["".join(chr(r.randint(low, high)) for _ in range(r.randint(2, 8))) for low, high in SCRIPTS
             for _ in range(1500)]
    out, total = [], 0
    while total < size:
        line = " ".join(words[min(int(r.paretovariate(.6)) - 1, len(words) - 1)] for _ in range(r.randint(3, 30)))
        out.append(line)
        total += len(line.encode())
    return out


def train(model, trainer, corpus, pre, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def byte_level(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def vocabularies(corpus, size):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    for name, pattern in {"byte-level BPE, GPT-2": GPT2, "byte-level BPE, Llama 3": LLAMA3}.items():
        tokenizer = train(models.BPE(), bpe, corpus, byte_level(pattern))
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
        yield name, tokenizer
    specials = ["<unk>", "<s>", "</s>"]
    tokenizer = train(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer(
        vocab_size=size, show_progress=False, special_tokens=specials + [f"<0x{b:02X}>" for b in range(256)],
        limit_alphabet=1000), corpus, pre_tokenizers.Metaspace())
    state = json.loads(tokenizer.to_str())
    state["pre_tokenizer"] = None
    state["added_tokens"] = state["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    yield "SentencePiece's BPE, Llama 2", tokenizer
    yield "Unigram, T5", train(models.Unigram(), trainers.UnigramTrainer(
        vocab_size=size, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"]), corpus,
        pre_tokenizers.Metaspace(), normalizers.NFKC())
    yield "WordPiece, BERT", train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]), corpus,
        pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())


def best(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--megabytes", type=float, default=4, help="size of the documents of a kind")
    args.add_argument("--vocabulary", type=int, default=16000)
    args.add_argument("--runs", type=int, default=5)
    args.add_argument("--only", help="vocabularies whose names contain this text")
    args.add_argument("--markdown", action="store_true", help="print a table in Markdown")
    args = args.parse_args()
    size = int(args.megabytes * 1e6)
    code, mixed = library(size), scripts(1, size)
    documents = {"English and code": code, "many scripts": mixed, "one document": ["\n".join(code)[:1000000]]}
    corpus = [line for text in code[:150] for line in text.split("\n")] + mixed[:4000]
    failed = False
    if args.markdown:
        print("| vocabulary | text | wick, MB/s | tokenizers, MB/s | ratio |\n|---|---|---|---|---|")
    for name, tokenizer in vocabularies(corpus, args.vocabulary):
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            path.write_text(tokenizer.to_str(), encoding="utf-8")
            start = time.perf_counter()
            reader = wick.Tokenizer.from_file(str(path))
            load = time.perf_counter() - start
            start = time.perf_counter()
            tokenizer = Tokenizer.from_file(str(path))
            load_peer = time.perf_counter() - start
        print(f"{name}: loads in {load * 1e3:.0f} ms, tokenizers in {load_peer * 1e3:.0f} ms",
              file=sys.stderr if args.markdown else sys.stdout)
        for kind, texts in documents.items():
            if any(reader.encode(text) != tokenizer.encode(text).ids for text in texts):
                print(f"FAIL {name}, {kind}: the ids differ", file=sys.stderr)
                failed = True
            total = sum(len(text.encode()) for text in texts) / 1e6
            ours = total / best(lambda: [reader.encode(text) for text in texts], args.runs)
            # Without offsets, which wick doesn't compute either.
            theirs = total / best(lambda: tokenizer.encode_batch_fast(texts), max(1, args.runs // 2))
            row = (name, kind, f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.1f}")
            print(f"| {' | '.join(row)} |" if args.markdown else "  {1:20} {2:>8} MB/s, tokenizers {3:>6} MB/s: {4} times".
                  format(*row), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
