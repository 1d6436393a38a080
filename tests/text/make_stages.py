#!/usr/bin/env python3
"""Writes the expected results of the tests of tokenizer.json and of T5's and BERT's vocabularies, computed with PyPI's
`tokenizers` and `sentencepiece`.

    pip install tokenizers sentencepiece protobuf
    python make_stages.py

stages.json has some texts of tokenizer.json, small vocabularies that are trained on all of them, the other parts of a
tokenizer.json for each case, and the ids of the texts. Models are shared by the cases, so that the file stays small.
"""
import base64
import io
import json
import pathlib
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).parent / "data"
MORE = [" a <mask> b", "a<mask>b", "[R]  x", "keyword word words word", "mixed MIXED MiXed", "\u2581a\u2581\u2581b", "<0x41>",
        "x  y   z", "\ufb01 \u2460 \uff21 \u0130", "a\u0301\u0327 \u1e69", "\x07\u200b\ufeff\xad", "the-final--countdown-", "don't stop",
        "1234567 12\u00bd", "unaffable  Unaffable", "\U0001f468\u200d\U0001f469 e\u0301"]
ADDED = [AddedToken("<|end|>", special=True, normalized=False),
         AddedToken("<mask>", special=True, lstrip=True, normalized=False),
         AddedToken("[R]", rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
         AddedToken("MiXed", normalized=True)]
# Rules of a precompiled map: an accented letter, a ligature, white space, and a character that is dropped.
RULES = "61 301\tE1\nFB01\t66 69\nA0\t20\n9\t20\nA\t20\nFF21\t41\nAD\t\n2460\t31\n"


def byte_level(use_regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)


def train(model, trainer, corpus, pre, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def pieces(corpus, **options):
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        rules.write(RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus), model_writer=model, hard_vocab_limit=False, num_threads=1, minloglevel=2,
            normalization_rule_tsv=rules.name, **options)
    return sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())


class Cases:
    def __init__(self, texts):
        self.texts = texts
        self.models, self.cases = {}, []

    def add(self, name, model, tokenizer, added=()):
        """Adds a case; `model` names its model, which cases with equal models share."""
        tokenizer.add_tokens([t for t in added if not t.special])
        tokenizer.add_special_tokens([t for t in added if t.special])
        state = json.loads(tokenizer.to_str())
        assert self.models.setdefault(model, state["model"]) == state["model"], name
        parts = {k: v for k, v in state.items() if k not in ("model", "version", "truncation", "padding") and v}
        ids = [tokenizer.encode(text).ids for text in self.texts]
        decoded = [tokenizer.decode(i, skip_special_tokens=False) for i in ids]
        self.cases.append({"name": name, "model": model, "parts": parts, "ids": ids})
        if model != "bytes" or name == "plain":
            self.cases[-1]["decoded"] = decoded


def main():
    all_texts = json.loads((HERE / "tokenizer.json").read_text(encoding="utf-8"))["texts"]
    texts = [t for t in all_texts[::6] if len(t) < 40] + MORE
    lines = [line for text in all_texts + MORE for line in text.split("\n") if line]
    latin = [line for line in lines if max(line) < "\u0500"] * 3
    cases = Cases(texts)
    base = train(models.BPE(), trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False), lines,
        byte_level(True)).to_str()

    def bytes_case(name, pre, normalizer=None, added=(), post=None):
        tokenizer = Tokenizer.from_str(base)
        tokenizer.pre_tokenizer = pre
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.decoder = decoders.ByteLevel()
        if post is not None:
            tokenizer.add_special_tokens([ADDED[0]])
            tokenizer.post_processor = post(tokenizer.token_to_id("<|end|>"))
        cases.add(name, "bytes", tokenizer, added)

    with_regex = byte_level(True)
    bytes_case("plain", with_regex)
    bytes_case("prefix", byte_level(True, True))
    bytes_case("added", with_regex, added=ADDED)
    bytes_case("added, normalized", with_regex, normalizers.Lowercase(), ADDED)
    charsmap = pieces(latin, model_type="unigram", vocab_size=300, character_coverage=1.0).normalizer_spec
    for name, step in {
            "NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(),
            "Lowercase": normalizers.Lowercase(), "Strip": normalizers.Strip(), "StripAccents": normalizers.Sequence(
                [normalizers.NFD(), normalizers.StripAccents()]), "Nmt": normalizers.Nmt(),
            "Prepend": normalizers.Prepend("_"), "Replace": normalizers.Replace(Regex(r"\s+"), "-"),
            "Replace text": normalizers.Replace("a", "\u00e4"), "Bert": normalizers.BertNormalizer(),
            "Bert cased": normalizers.BertNormalizer(lowercase=False),
            "Precompiled": normalizers.Precompiled(charsmap.precompiled_charsmap)}.items():
        bytes_case(f"normalizer {name}", with_regex, step)
    stages = {"Digits": pre_tokenizers.Digits(True), "digits": pre_tokenizers.Digits(),
              "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(), "Whitespace": pre_tokenizers.Whitespace(),
              "Bert": pre_tokenizers.BertPreTokenizer(), "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
              "Punctuation": pre_tokenizers.Punctuation("contiguous"),
              "Metaspace": pre_tokenizers.Metaspace(prepend_scheme="first"),
              "Metaspace whole": pre_tokenizers.Metaspace(split=False)}
    for behavior in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"):
        stages[f"Split {behavior}"] = pre_tokenizers.Split("-", behavior)
        stages[f"Split {behavior}, inverted"] = pre_tokenizers.Split(Regex(r"[aeiou]+|\s"), behavior, True)
    for name, stage in stages.items():
        bytes_case(f"pre-tokenizer {name}", pre_tokenizers.Sequence([stage, byte_level()]))
    bytes_case("Template", with_regex, post=lambda e: processors.TemplateProcessing(
        "<|end|> $A <|end|> <|end|>", None, [("<|end|>", e)]))
    bytes_case("Roberta", with_regex, post=lambda e: processors.RobertaProcessing(("<|end|>", e), ("<|end|>", e)))

    tokenizer = train(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer(
        vocab_size=600, show_progress=False, special_tokens=["<unk>"] + [f"<0x{b:02X}>" for b in range(256)],
        limit_alphabet=100), lines, pre_tokenizers.Metaspace())
    state = json.loads(tokenizer.to_str())
    state["pre_tokenizer"], state["added_tokens"] = None, []
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    cases.add("BPE, byte fallback", "characters", tokenizer)
    for fuse in (False, True):
        tokenizer = train(models.BPE(unk_token="<unk>", fuse_unk=fuse, end_of_word_suffix="</w>"), trainers.BpeTrainer(
            vocab_size=300, show_progress=False, special_tokens=["<unk>"], limit_alphabet=60,
            end_of_word_suffix="</w>"), lines, pre_tokenizers.Whitespace())
        tokenizer.decoder = decoders.BPEDecoder()
        cases.add(f"BPE, suffix, fused {fuse}", f"suffix {fuse}", tokenizer)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    bert = train(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
        vocab_size=400, show_progress=False, special_tokens=special, limit_alphabet=80), lines,
        pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())
    bert.decoder = decoders.WordPiece()
    bert.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    cases.add("WordPiece", "pieces", bert)
    cases.add("WordLevel", "words", train(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(
        vocab_size=100, show_progress=False, special_tokens=["[UNK]"]), lines, pre_tokenizers.Whitespace()))
    tokenizer = train(models.Unigram(), trainers.UnigramTrainer(
        vocab_size=400, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"]),
        [line for line in lines if max(line) < "\u0180"], pre_tokenizers.Metaspace(), normalizers.NFKC())
    tokenizer.decoder = decoders.Metaspace()
    cases.add("Unigram", "unigram", tokenizer)

    vocab = bert.get_vocab()
    tokens = sorted(vocab, key=vocab.get)
    result = {"texts": texts, "models": cases.models, "cases": cases.cases, "bert": {
        "tokens": [t if t in special else t[2:] if t.startswith("##") and len(t) > 2 else "\u2581" + t for t in tokens],
        "types": [3 if t in special else 1 for t in tokens], "ids": [bert.encode(t).ids for t in texts]}}
    result["t5"] = []
    result["charsmap"] = base64.b64encode(charsmap.precompiled_charsmap).decode()
    for fallback in (False, True):
        for extra in (False, True):
            proto = pieces(latin, model_type="unigram", vocab_size=330 + 256 * fallback, byte_fallback=fallback,
                           remove_extra_whitespaces=extra, character_coverage=0.98)
            processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
            result["t5"].append({
                "tokens": [p.piece for p in proto.pieces], "types": [int(p.type) for p in proto.pieces],
                "scores": [p.score for p in proto.pieces], "remove_extra_spaces": extra,
                "ids": [processor.encode(t) for t in texts]})
            assert proto.normalizer_spec.precompiled_charsmap == charsmap.precompiled_charsmap
    path = HERE / "stages.json"
    text = json.dumps(result, ensure_ascii=True, separators=(",", ":"))
    path.write_text(text.replace("],", "],\n") + "\n", encoding="utf-8")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
