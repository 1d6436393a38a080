"""Trained models from PyPI (tools/fetch_model.py): their logits and embeddings are those of references in float64.

run.sh names the models and the command in TRAINED_GEMMA3, TRAINED_MINILM and TRAINED_WICK.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest
import references
import tokenizers

import wick

TEXTS = ["A cat sleeps on the sofa.", "Ein Kätzchen döst auf der Couch — 小猫在睡觉。", "x", " ".join(["The stock market fell."] * 40)]
PROMPT = "The three most important rules of good engineering are to measure, to read, and to think before one writes."


def model_path(name: str) -> pathlib.Path:
    return pathlib.Path(os.environ["TRAINED_" + name.upper()])


def run_wick(*words: object) -> None:
    subprocess.run([os.environ["TRAINED_WICK"], *map(str, words)], check=True)


@pytest.fixture(scope="module")
def minilm() -> pathlib.Path:
    return model_path("minilm")


@pytest.fixture(scope="module")
def embeddings(minilm: pathlib.Path) -> references.Floats:
    encoder = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    encoder.no_padding()
    encoder.no_truncation()
    bert = references.Bert(minilm)
    return np.stack([bert.embedding(encoder.encode(text).ids) for text in TEXTS])


def test_minilm_directory(minilm: pathlib.Path, embeddings: references.Floats) -> None:
    made = wick.Model.load(minilm).embed(TEXTS).numpy()
    assert np.abs(made - embeddings).max() <= 2e-6


# The cosine of the angle to the reference. Rounding the weights alone gives 0.9996 for q8_0 and 0.976 for q4_k.
@pytest.mark.parametrize("dtype, least", [("f32", 1 - 1e-6), ("f16", 1 - 1e-5), ("q8_0", 0.998), ("q4_k", 0.97)])
def test_minilm_files(minilm: pathlib.Path, embeddings: references.Floats, tmp_path: pathlib.Path, dtype: str,
                      least: float) -> None:
    file = tmp_path / "model.gguf"
    run_wick("quantize", minilm, file, dtype)
    made = wick.Model.load(file).embed(TEXTS).numpy()
    assert (made * embeddings).sum(-1).min() >= least


@pytest.fixture(scope="module")
def gemma() -> pathlib.Path:
    return model_path("gemma3")


def test_gemma(gemma: pathlib.Path, tmp_path: pathlib.Path) -> None:
    model = wick.Model.load(gemma)
    ids = model.tokenizer.encode(PROMPT)
    columns = list(range(0, model.vocab_size, 16))
    expected = references.Gemma3(gemma).logits(ids, columns)
    largest = np.abs(expected).max()
    # Decoded to f32, the weights give the reference's logits.
    file = tmp_path / "gemma-f32.gguf"
    run_wick("quantize", gemma, file, "f32")
    exact = wick.Model.load(file).logits(ids).numpy()[:, columns]
    assert np.abs(exact - expected).max() <= 2e-4 * largest
    # As it is shipped, activations are rounded to 8 bits for its products.
    shipped = model.logits(ids).numpy()[:, columns]
    assert np.abs(shipped - expected).max() <= 0.05 * largest
