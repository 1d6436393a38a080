#!/usr/bin/env python3
"""Compares wick's tokenizers with PyPI's `tokenizers` and `sentencepiece` on generated lines.

    pip install tokenizers sentencepiece protobuf gguf
    PYTHONPATH=build/release/python python tests/text/compare_tokenizers.py [--lines 2000] [--only NAME]
        [--models FOLDER]

Vocabularies of every kind are trained on a small corpus and written as tokenizer.json or GGUF files,
which wick reads. Every line is encoded by both sides; a line with other ids, or with another decoded
text, is an error. Lines have many scripts, emoji, code, runs of white space, controls, added tokens
and random characters.

FOLDER may be the folder `models` of llama.cpp, whose sources bench/peers/llama_cpp.py fetches: it has vocabularies of
real models (*.gguf) with texts (*.gguf.inp) and the ids that their reference tokenizers made of them (*.gguf.out).
"""
import argparse
import base64
import io
import json
import pathlib
import random
import sys
import tempfile
import unicodedata

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

import wick

FIXTURE = pathlib.Path(__file__).parent / "data" / "tokenizer.json"
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u200b", "\x0b", "\x85",
          "\u2028", "\u1680", " " * 17, "\t\t \t"]
SCRIPTS = [(0x41, 0x5a), (0x61, 0x7a), (0xc0, 0x17f), (0x370, 0x3ff), (0x400, 0x4ff), (0x531, 0x586), (0x5d0, 0x5ea),
           (0x620, 0x64a), (0x904, 0x939), (0x985, 0x9b9), (0xb85, 0xbb9), (0xe01, 0xe30), (0x10d0, 0x10f0),
           (0x1100, 0x1112), (0x1200, 0x1248), (0x1780, 0x17a2), (0x3041, 0x3096), (0x30a1, 0x30fa), (0x4e00, 0x9fa5),
           (0xac00, 0xd7a3), (0x1f600, 0x1f64f), (0x1f300, 0x1f5ff), (0x20000, 0x2a6d6), (0x1d400, 0x1d7ff),
           (0xff01, 0xff5e), (0x300, 0x36f), (0x2190, 0x22ff), (0x2460, 0x24ff), (0x1e00, 0x1eff), (0x13a0, 0x13f5)]
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
ENDS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MODERN = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|%s|" + SYMBOLS + "|" + ENDS
ASCII = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CASED = (rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+%s|[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*%s"
         r"|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + ENDS)
DEEPSEEK = ASCII + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + ENDS
CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
CJK_WIDE = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# The patterns of the models' own tokenizer.json files, by their names in GGUF files.
PATTERNS = {
    "gpt-2": [GPT2], "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [MODERN % r"\p{N}{1,3}"], "dbrx": [MODERN % r"\p{N}{1,3}"], "qwen2": [MODERN % r"\p{N}"],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + ENDS],
    "jais-2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + SYMBOLS + r"|\s*[\r\n]+|\s{512}(?!\S)"
               r"|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)"
               r"|\s{1,2}(?!\S)|\s{1}"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_WIDE, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", CJK, DEEPSEEK],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "bloom": [r" ?[^(\s|[.,!?…。，、।۔،])]+"], "viking": [r" ?[^(\s|[.,!?…。，、।۔،])]+", r"\p{N}"],
    "tekken": [CASED % ("", "", "")],
    "gpt-4o": [CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?", "{1,3}")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?", "{1,3}")],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
                   r"|\s+(?!\S)|\s+"],
    "seed-coder": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + ENDS],
    "ufakzeka": [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + SYMBOLS + "|" + ENDS],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "exaone-moe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "minicpm5": [r"\p{N}{1,3}", MODERN % r"\p{N}+"],
    "laguna": [r"[^\n]+|[\n]+", MODERN % r"\p{N}"],
    "spark2_5": [r"\p{N}{1,3}", CJK, ASCII + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]"
                 r"|\s+(?!\S)|\s+", r"\p{N}"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}",
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
}
WHOLE_FIRST = {"llama-bpe", "tekken", "minicpm5", "youtu", "glm4"}
ADDED = [AddedToken("<|endoftext|>", special=True, normalized=False), AddedToken("<think>", normalized=False),
         AddedToken("<thinking>", normalized=False), AddedToken("<pad>", special=True, normalized=False)]
FLAGGED = [AddedToken("<mask>", special=True, lstrip=True, normalized=False),
           AddedToken("[R]", rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
           AddedToken("MiXed", normalized=True), AddedToken("caf\u00e9", normalized=True, single_word=True)]


class Lines:
    """Generates lines from a seed."""

    def __init__(self, seed, texts):
        self.random = random.Random(seed)
        self.texts = texts
        self.added = [t.content for t in ADDED + FLAGGED]
        self.assigned = [c for c in range(1, 0x30000) if not 0xd800 <= c < 0xe000
                         and unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]

    def word(self):
        low, high = self.random.choice(SCRIPTS[:19] if self.random.random() < .8 else SCRIPTS)
        characters = (chr(self.random.randint(low, high)) for _ in range(self.random.randint(1, 9)))
        return "".join(c for c in characters if unicodedata.ucd_3_2_0.category(c) != "Cn")

    def part(self):
        r = self.random
        kind = r.randrange(16)
        if kind < 5:
            return r.choice(self.texts)
        if kind < 8:
            return " ".join(self.word() for _ in range(r.randint(1, 5)))
        if kind == 8:
            return "".join(r.choice("0123456789\u0663\u0967\u00bd") for _ in range(r.randint(1, 12)))
        if kind == 9:
            return "".join(r.choice("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u2026\u3002\uff0c\u00ab") for _ in
                           range(r.randint(1, 6)))
        if kind == 10:
            return "".join(chr(r.choice(self.assigned)) for _ in range(r.randint(1, 6)))
        if kind == 11:
            return r.choice(self.added)
        if kind == 12:
            return r.choice(["I'm", "don't", "WE'LL", "it's", "they'Re", "'tis", "rock'n'roll", "HTTPServer", "camelCase",
                             "snake_case_name", "x\u0301y\u0302", "\ufb01", "\u0130I\u0131i", "\u00df\u1e9e", "##ing"])
        if kind == 13:
            return r.choice(["\u2581", "\u2581\u2581", "<0x41>", "\x00", "\x07", "\u200d", "\ufeff", "\ufffd", "\U0001f468\u200d\U0001f469",
                             "\U0001f44d\U0001f3fd", "e\u0301", "\u1112\u1161\u11ab", "\uff76\uff9e"])
        return r.choice(SPACES)

    def line(self):
        r = self.random
        glue = r.choice(["", "", " "])
        return glue.join(self.part() for _ in range(r.randint(1, 7)))


class Report:
    def __init__(self, show):
        self.show = show
        self.lines = self.failures = 0

    def compare(self, name, reader, reference, lines, decode=None):
        """Compares ids, and the text that `decode` makes of them, line by line."""
        wrong = 0
        for line in lines:
            want = reference(line)
            got = reader.encode(line)
            problem = None
            if got != want:
                problem = f"ids {got} instead of {want}"
            elif decode is not None:
                text = decode(want)
                if reader.decode(want) != text:
                    problem = f"text {reader.decode(want)!r} instead of {text!r}"
            if problem:
                wrong += 1
                if wrong <= self.show:
                    print(f"  {name}: {line!r}: {problem}")
        self.lines += len(lines)
        self.failures += wrong
        print(f"{'ok  ' if not wrong else 'FAIL'} {name}: {len(lines)} lines, {wrong} differ", flush=True)


def byte_level(use_regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)


def split(*patterns):
    stages = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    return pre_tokenizers.Sequence(stages + [byte_level()])


def train(model, trainer, corpus, pre=None, normalizer=None):
    tokenizer = Tokenizer(model)
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def byte_bpe(corpus, pre, normalizer=None, size=3000):
    return train(models.BPE(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False), corpus, pre,
        normalizer)


class Comparison:
    def __init__(self, folder, corpus, lines, report, only):
        self.folder, self.corpus, self.lines, self.report, self.only = folder, corpus, lines, report, only
        self.base = json.loads(byte_bpe(corpus, split(MODERN % r"\p{N}{1,3}")).to_str())

    def wanted(self, name):
        return self.only is None or self.only in name

    def json_case(self, name, tokenizer, added=(), decode=True):
        if not self.wanted(name):
            return
        tokenizer.add_tokens([t for t in added if not t.special])
        tokenizer.add_special_tokens([t for t in added if t.special])
        path = self.folder / "tokenizer.json"
        path.write_text(tokenizer.to_str(), encoding="utf-8")
        reader = wick.Tokenizer.from_file(str(path))
        self.report.compare(name, reader, lambda line: tokenizer.encode(line).ids, self.lines,
                            (lambda ids: tokenizer.decode(ids, skip_special_tokens=False)) if decode else None)

    def with_base(self, pre, normalizer=None, **model):
        """A byte-level tokenizer with the trained vocabulary and other stages."""
        state = json.loads(json.dumps(self.base))
        state["model"].update(model)
        tokenizer = Tokenizer.from_str(json.dumps(state))
        tokenizer.pre_tokenizer = pre
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    # --- the parts of tokenizer.json ---

    def patterns(self):
        for name, patterns in PATTERNS.items():
            ignore = name in WHOLE_FIRST
            self.json_case(f"json pattern {name}", self.with_base(split(*patterns), ignore_merges=ignore), ADDED)
            self.gguf_case(f"gguf pattern {name}", name, self.with_base(split(*patterns), ignore_merges=ignore))

    def gguf_case(self, name, pre, tokenizer):
        if not self.wanted(name):
            return
        tokenizer.add_tokens([t for t in ADDED if not t.special])
        tokenizer.add_special_tokens([t for t in ADDED if t.special])
        state = json.loads(tokenizer.to_str())
        vocab = dict(state["model"]["vocab"])
        types = {}
        for entry in state["added_tokens"]:
            vocab[entry["content"]] = entry["id"]
            types[entry["id"]] = 3 if entry["special"] else 4
        tokens = sorted(vocab, key=vocab.get)
        merges = [m if isinstance(m, str) else " ".join(m) for m in state["model"]["merges"]]
        reader = self.gguf_reader("gpt2", tokens, [types.get(i, 1) for i in range(len(tokens))], pre=pre, merges=merges,
                                  flags={"add_bos_token": False})
        self.report.compare(name, reader, lambda line: tokenizer.encode(line).ids, self.lines)

    def gguf_reader(self, model, tokens, types, pre=None, merges=None, scores=None, flags=(), ids=(), charsmap=None):
        path = self.folder / "vocabulary.gguf"
        writer = gguf.GGUFWriter(str(path), "llama")
        writer.add_tokenizer_model(model)
        if pre is not None:
            writer.add_tokenizer_pre(pre)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        if merges is not None:
            writer.add_token_merges(merges)
        if scores is not None:
            writer.add_token_scores(scores)
        for key, value in dict(flags).items():
            writer.add_bool(f"tokenizer.ggml.{key}", value)
        for key, value in dict(ids).items():
            writer.add_uint32(f"tokenizer.ggml.{key}", value)
        if charsmap:
            writer.add_precompiled_charsmap(charsmap)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return wick.Tokenizer.from_file(str(path))

    def added_tokens(self):
        modern = split(MODERN % r"\p{N}")
        self.json_case("json added flags", self.with_base(modern), ADDED + FLAGGED, decode=False)
        lower = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
        self.json_case("json added flags, normalized", self.with_base(modern, lower), ADDED + FLAGGED, decode=False)

    def normalizers(self):
        plain = byte_level(use_regex=True)
        charsmap = self.charsmap("nmt_nfkc")
        for name, step in {
                "NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(),
                "NFKD": normalizers.NFKD(), "Lowercase": normalizers.Lowercase(), "Strip": normalizers.Strip(),
                "Strip left": normalizers.Strip(right=False), "StripAccents": normalizers.StripAccents(),
                "NFD, StripAccents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
                "Nmt": normalizers.Nmt(), "Prepend": normalizers.Prepend("_"),
                "Replace": normalizers.Replace(" ", "\u2581"), "Replace Regex": normalizers.Replace(Regex(r"\s+"), " "),
                "Replace runs": normalizers.Replace(Regex(" {2,}"), "-"),
                "Bert": normalizers.BertNormalizer(), "Bert cased": normalizers.BertNormalizer(lowercase=False),
                "Bert accents": normalizers.BertNormalizer(strip_accents=False),
                "Bert plain": normalizers.BertNormalizer(False, False, False, False),
                "Precompiled nmt_nfkc": normalizers.Precompiled(charsmap),
                "Precompiled nfkc_cf": normalizers.Precompiled(self.charsmap("nmt_nfkc_cf"))}.items():
            self.json_case(f"json normalizer {name}", self.with_base(plain, step), decode=False)

    def pre_tokenizers(self):
        stages = {
            "ByteLevel": None, "Digits": pre_tokenizers.Digits(), "each digit": pre_tokenizers.Digits(True),
            "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(), "Whitespace": pre_tokenizers.Whitespace(),
            "Bert": pre_tokenizers.BertPreTokenizer(), "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
            "FixedLength": pre_tokenizers.FixedLength(3), "Metaspace": pre_tokenizers.Metaspace(),
            "Metaspace first": pre_tokenizers.Metaspace(prepend_scheme="first"),
            "Metaspace never": pre_tokenizers.Metaspace(prepend_scheme="never"),
            "Metaspace whole": pre_tokenizers.Metaspace(split=False),
            "Metaspace of words": pre_tokenizers.Sequence(
                [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        }
        for behavior in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"):
            stages[f"Punctuation {behavior}"] = pre_tokenizers.Punctuation(behavior)
            for invert in (False, True):
                stages[f"Split {behavior} {invert}"] = pre_tokenizers.Split(Regex(r"[aeiou]+|\s"), behavior, invert)
            stages[f"Split text {behavior}"] = pre_tokenizers.Split("  ", behavior)
        for name, stage in stages.items():
            for last in (byte_level(), byte_level(True), byte_level(True, True)):
                pre = last if stage is None else pre_tokenizers.Sequence([stage, last])
                what = f"regex {last.use_regex}, prefix {last.add_prefix_space}"
                self.json_case(f"json pre-tokenizer {name}, {what}", self.with_base(pre), ADDED, decode=False)

    def post_processors(self):
        pre = byte_level(True)
        for name, make in {
                "Template": lambda e: processors.TemplateProcessing("<|endoftext|> $A <pad> <pad>", None, [
                    ("<|endoftext|>", e("<|endoftext|>")), ("<pad>", e("<pad>"))]),
                "Bert": lambda e: processors.BertProcessing(("<pad>", e("<pad>")), ("<|endoftext|>", e("<|endoftext|>"))),
                "Roberta": lambda e: processors.RobertaProcessing(("<pad>", e("<pad>")),
                                                                  ("<|endoftext|>", e("<|endoftext|>"))),
                "Sequence": lambda e: processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
                    "<pad> $A", None, [("<pad>", e("<pad>"))])])}.items():
            tokenizer = self.with_base(pre)
            tokenizer.add_tokens([t for t in ADDED if not t.special])
            tokenizer.add_special_tokens([t for t in ADDED if t.special])
            tokenizer.post_processor = make(tokenizer.token_to_id)
            self.json_case(f"json post-processor {name}", tokenizer)

    def models(self):
        trainer = trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"] +
                                      [f"<0x{b:02X}>" for b in range(256)], limit_alphabet=200)
        spaces = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        for fuse in (False, True):
            for fallback in (False, True):
                tokenizer = train(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback), trainer,
                                  self.corpus, pre_tokenizers.Metaspace(), None)
                tokenizer.pre_tokenizer = None
                state = json.loads(tokenizer.to_str())
                state["pre_tokenizer"] = None
                # Byte tokens and <unk> are vocabulary, not text.
                state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in ("<s>", "</s>")]
                tokenizer = Tokenizer.from_str(json.dumps(state))
                tokenizer.normalizer = spaces
                tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                                       decoders.Fuse(), decoders.Strip(" ", 1, 0)])
                self.json_case(f"json BPE of characters, fuse {fuse}, bytes {fallback}", tokenizer)
        tokenizer = train(models.BPE(unk_token="<unk>"), trainers.BpeTrainer(
            vocab_size=2000, show_progress=False, special_tokens=["<unk>"], limit_alphabet=200), self.corpus,
            pre_tokenizers.Metaspace())
        tokenizer.decoder = decoders.Metaspace()
        self.json_case("json BPE, Metaspace", tokenizer)
        tokenizer = train(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
                          trainers.BpeTrainer(vocab_size=2000, show_progress=False, special_tokens=["<unk>"],
                                              limit_alphabet=200, end_of_word_suffix="</w>"), self.corpus,
                          pre_tokenizers.Whitespace())
        self.json_case("json BPE, suffix", tokenizer, decode=False)
        clip = pre_tokenizers.Sequence([pre_tokenizers.Split(
            Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True), byte_level()])
        tokenizer = train(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"), trainers.BpeTrainer(
            vocab_size=2500, show_progress=False, special_tokens=["<|endoftext|>"], end_of_word_suffix="</w>",
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), self.corpus, clip, normalizers.Sequence(
                [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]))
        tokenizer.decoder = decoders.ByteLevel()
        self.json_case("json BPE of bytes, suffix", tokenizer, decode=False)
        tokenizer = train(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"),
                          trainers.BpeTrainer(vocab_size=2000, show_progress=False, special_tokens=["<unk>"],
                                              limit_alphabet=200, continuing_subword_prefix="##"), self.corpus,
                          pre_tokenizers.Whitespace())
        self.json_case("json BPE, prefix", tokenizer, decode=False)
        for lower in (True, False):
            tokenizer = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
                vocab_size=3000, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
                self.corpus, pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer(lowercase=lower))
            tokenizer.decoder = decoders.WordPiece()
            vocab = tokenizer.get_vocab()
            tokenizer.post_processor = processors.TemplateProcessing(
                "[CLS] $A [SEP]", None, [(t, vocab[t]) for t in ("[CLS]", "[SEP]")])
            self.json_case(f"json WordPiece, lower {lower}", tokenizer)
            self.word_piece_gguf(tokenizer, lower)
        tokenizer = train(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(
            vocab_size=2000, show_progress=False, special_tokens=["[UNK]"]), self.corpus, pre_tokenizers.Whitespace())
        self.json_case("json WordLevel", tokenizer)
        for name, pre in {"Metaspace": pre_tokenizers.Metaspace(), "whole": pre_tokenizers.Metaspace(split=False),
                          "words": pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                            pre_tokenizers.Metaspace()])}.items():
            for fallback in (False, True):
                trainer = trainers.UnigramTrainer(
                    vocab_size=8000, show_progress=False, unk_token="<unk>",
                    special_tokens=["<pad>", "</s>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)] * fallback)
                tokenizer = train(models.Unigram(), trainer, self.corpus, pre,
                                  normalizers.Precompiled(self.charsmap("nmt_nfkc")))
                state = json.loads(tokenizer.to_str())
                state["model"]["byte_fallback"] = fallback
                state["added_tokens"] = state["added_tokens"][:3]
                tokenizer = Tokenizer.from_str(json.dumps(state))
                tokenizer.decoder = decoders.Metaspace()
                self.json_case(f"json Unigram, {name}, bytes {fallback}", tokenizer, decode=not fallback)

    def word_piece_gguf(self, tokenizer, lower):
        name = f"gguf bert, lower {lower}"
        if not self.wanted(name):
            return
        vocab = tokenizer.get_vocab()
        tokens, types = [], []
        for token in sorted(vocab, key=vocab.get):
            control = token.startswith("[") and token.endswith("]") and len(token) > 2
            types.append(3 if control else 1)
            tokens.append(token if control else token[2:] if token.startswith("##") and len(token) > 2
                          else "\u2581" + token)
        reader = self.gguf_reader("bert", tokens, types, flags={"normalizer.lowercase": lower}, ids={
            "bos_token_id": vocab["[CLS]"], "seperator_token_id": vocab["[SEP]"], "unknown_token_id": vocab["[UNK]"],
            "padding_token_id": vocab["[PAD]"]})
        self.report.compare(name, reader, lambda line: tokenizer.encode(line).ids, self.lines)

    # --- SentencePiece ---

    def charsmap(self, rule):
        return self.trained(model_type="unigram", normalization_rule_name=rule,
                            vocab_size=400).normalizer_spec.precompiled_charsmap

    def trained(self, **options):
        model = io.BytesIO()
        lines = [line for line in self.corpus[:1500] if line.strip()]
        settings = {"vocab_size": 2000, "hard_vocab_limit": False, "character_coverage": 0.98, "num_threads": 1,
                    "minloglevel": 2, "max_sentence_length": 20000, **options}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **settings)
        return sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())

    def sentence_pieces(self):
        for kind in ("bpe", "unigram"):
            for rule in ("identity", "nmt_nfkc"):
                for fallback in (False, True):
                    for extra in (False, True):
                        if kind == "bpe" and (rule != "identity" or extra):
                            continue  # GGUF's `llama` has no normalisation
                        self.sentence_piece(kind, rule, fallback, extra)

    def sentence_piece(self, kind, rule, fallback, extra):
        name = f"gguf sentencepiece {kind}, {rule}, bytes {fallback}, extra spaces removed {extra}"
        if not self.wanted(name):
            return
        proto = self.trained(model_type=kind, normalization_rule_name=rule, byte_fallback=fallback,
                             remove_extra_whitespaces=extra)
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        reader = self.gguf_reader(
            "llama" if kind == "bpe" else "t5", [p.piece for p in proto.pieces], [int(p.type) for p in proto.pieces],
            scores=[p.score for p in proto.pieces], ids={"unknown_token_id": processor.unk_id(), "eos_token_id": 2},
            flags={"add_bos_token": False, "add_eos_token": False, "add_space_prefix": True,
                   "remove_extra_whitespaces": extra}, charsmap=proto.normalizer_spec.precompiled_charsmap)
        # SentencePiece doesn't look for control tokens in text, and wick finds added tokens first.
        special = [p.piece for p in proto.pieces if p.type != 1 and p.type != 6]
        lines = [line for line in self.lines if line and not any(s in line for s in special) and "\0" not in line]
        self.report.compare(name, reader, lambda line: processor.encode(line), lines)


def real_vocabularies(folder, report):
    for path in sorted(folder.glob("*.gguf.inp")):
        model = path.with_suffix("")
        texts = path.read_bytes().decode().split("\n__ggml_vocab_test__\n")
        expected = [[int(i) for i in line.split()] for line in
                    model.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")]
        ids = dict(zip(texts, expected))
        tokenizer = wick.Tokenizer.from_file(str(model))
        reader = argparse.Namespace(encode=lambda text: tokenizer.encode(text, add_bos=False, add_eos=False))
        report.compare(f"real {model.stem}", reader, ids.get, [t for t in texts if t in ids])


def corpus_of(texts):
    """Lines of many scripts, of code and of documentation."""
    lines = [line for text in texts for line in text.split("\n")]
    for module in ("argparse", "random", "json.decoder", "unicodedata", "pydoc_data.topics"):
        spec = __import__(module, fromlist=["x"])
        path = getattr(spec, "__file__", None)
        if path and path.endswith(".py"):
            lines += pathlib.Path(path).read_text(encoding="utf-8").split("\n")[:2500]
    words = Lines(7, texts)
    lines += [" ".join(words.word() for _ in range(6)) for _ in range(600)]
    return lines


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--lines", type=int, default=2000, help="lines of each comparison")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--only", help="comparisons whose names contain this text")
    args.add_argument("--models", type=pathlib.Path, help="a folder with vocabularies and expected ids")
    args.add_argument("--show", type=int, default=3, help="differing lines to show of each comparison")
    args = args.parse_args()
    texts = json.loads(FIXTURE.read_text(encoding="utf-8"))["texts"]
    generated = Lines(args.seed, texts)
    lines = texts + [generated.line() for _ in range(args.lines)]
    report = Report(args.show)
    if args.models:
        real_vocabularies(args.models, report)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(pathlib.Path(folder), corpus_of(texts), lines, report, args.only)
        comparison.patterns()
        comparison.added_tokens()
        comparison.normalizers()
        comparison.pre_tokenizers()
        comparison.post_processors()
        comparison.models()
        comparison.sentence_pieces()
    print(f"{report.lines} lines compared, {report.failures} differ")
    return 1 if report.failures or not report.lines else 0


if __name__ == "__main__":
    sys.exit(main())
