#!/usr/bin/env python3
"""Writes the expected results of the SentencePiece tests, computed with the package `sentencepiece`.

    pip install sentencepiece protobuf
    python make_pieces.py

pieces.json has a small BPE vocabulary that is trained on the texts of tokenizer.json, in GGUF's types and
spelling, and the ids of these texts without and with a leading space, and without one and without byte tokens."""
import io
import json
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

HERE = pathlib.Path(__file__).parent / "data"
CONTROL = ["<start_of_turn>", "<end_of_turn>"]
USER_DEFINED = ["<table>", "\u2581\u2581\u2581\u2581"]
# Runs of spaces, spaces at the ends, the space mark itself, characters without a token, and long
# words.
MORE = ["    four", "a    b     c", "\u2581", "a\u2581b", "<table>", "x<table> y", "<end_of_turn>",
        "<0x41>", "\x00", "\u1e9e\u2c00", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "thethethethethethe" * 9, "the the  the   the" * 5, "\U0001f980\U0001f9ea ok"]


def main():
    texts = json.loads((HERE / "tokenizer.json").read_text(encoding="utf-8"))["texts"]
    # Other scripts only occur in the tests: their characters have no token.
    lines = [line for text in texts for line in text.split("\n")
             if line.strip() and max(line) < "\u0370"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 2), model_writer=model, model_type="bpe", vocab_size=800,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        control_symbols=CONTROL, user_defined_symbols=USER_DEFINED, character_coverage=0.98,
        num_threads=1, minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    # GGUF uses SentencePiece's type numbers.
    result = {"tokens": [p.piece for p in proto.pieces], "scores": [p.score for p in proto.pieces],
              "types": [int(p.type) for p in proto.pieces], "texts": texts + MORE}
    for name, prefix in [("ids", False), ("prefixed", True)]:
        proto.normalizer_spec.add_dummy_prefix = prefix
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        result[name] = [processor.encode(text) for text in result["texts"]]
    # Without byte tokens, characters that have no token are unknown.
    proto.normalizer_spec.add_dummy_prefix = proto.trainer_spec.byte_fallback = False
    for piece in proto.pieces:
        if piece.type == piece.BYTE:
            piece.type = piece.UNUSED
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    result["unknown"] = [processor.encode(text) for text in result["texts"]]
    (HERE / "pieces.json").write_text(
        json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
