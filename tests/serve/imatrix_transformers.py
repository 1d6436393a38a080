#!/usr/bin/env python3
"""Compares `wick imatrix` with sums of squares that transformers' linear layers receive.

Makes tiny random models (Llama and Qwen3-MoE) as Hugging Face folders with a tokenizer, runs the command on
them, and intercepts torch's `linear` while transformers runs the same tokens. Needs torch, transformers,
tokenizers, gguf and numpy; exits with 77 (skip) without them, with 1 if sums differ.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import gguf
    import numpy as np
    import tokenizers
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CHUNK, TOLERANCE = 32, 1e-4
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp"}


def make_text():
    words = random.Random(1)
    return " ".join("".join(words.choice("abcdefgh") for _ in range(words.randint(1, 6))) for _ in range(60))


def make_tokenizer(folder, text):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"])
    tokenizer.train_from_iterator([text], trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    fast.save_pretrained(folder)
    return tokenizer


def make_model(kind):
    torch.manual_seed(3)
    common = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False)
    if kind == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**common))
    else:
        config = transformers.Qwen3MoeConfig(**common, head_dim=16, moe_intermediate_size=32, num_experts=6,
                                             num_experts_per_tok=2, norm_topk_prob=True, decoder_sparse_step=1,
                                             mlp_only_layers=[])
        config._experts_implementation = "eager"
        model = transformers.Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.08)
    return model.eval()


def expected_sums(model, chunks):
    """The sums and counts of each weight of a layer, by its name in GGUF files."""
    owners = {}  # address of a matrix -> the names of its weights, the number of its expert, experts
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        if "layers" not in parts:
            continue
        layer, rest = parts[2], ".".join(parts[3:]).removesuffix(".weight")
        if rest in NAMES:
            owners[parameter.data_ptr()] = ([f"blk.{layer}.{NAMES[rest]}.weight"], 0, 1)
        elif rest.startswith("mlp.experts."):
            stems = ["ffn_gate_exps", "ffn_up_exps"] if "gate_up" in rest else ["ffn_down_exps"]
            for i in range(parameter.shape[0]):
                owners[parameter[i].data_ptr()] = ([f"blk.{layer}.{s}.weight" for s in stems], i, parameter.shape[0])
    sums, counts = {}, {}
    linear = torch.nn.functional.linear

    def observed(x, weight, bias=None):
        names, expert, experts = owners.get(weight.data_ptr(), ([], 0, 1))
        rows = x.detach().reshape(-1, x.shape[-1]).double()
        for name in names:
            sums.setdefault(name, torch.zeros(experts, rows.shape[1], dtype=torch.float64))
            counts.setdefault(name, torch.zeros(experts, dtype=torch.float64))
            sums[name][expert] += (rows ** 2).sum(dim=0)
            counts[name][expert] += rows.shape[0]
        return linear(x, weight, bias)

    torch.nn.functional.linear = observed
    try:
        with torch.no_grad():
            for chunk in chunks:
                model(torch.tensor([chunk]))
    finally:
        torch.nn.functional.linear = linear
    return sums, counts


def compare_quantized(wick, folder):
    """A folder, whose experts are tensors of their own, gives the same blocks as a file of it."""
    options = ["--imatrix", folder / "out.gguf"]
    for source, target, kind, extra in [("model", "f32.gguf", "f32", []), ("model", "a.gguf", "q4_1", options),
                                        ("f32.gguf", "b.gguf", "q4_1", options)]:
        subprocess.run([wick, "quantize", folder / source, folder / target, kind, *extra], check=True,
                       stdout=subprocess.DEVNULL)
    files = [{t.name: np.array(t.data) for t in gguf.GGUFReader(folder / name).tensors} for name in ("a.gguf", "b.gguf")]
    for tensor, data in files[0].items():
        assert (data == files[1][tensor]).all(), tensor


def compare(wick, kind):
    text = make_text()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = make_tokenizer(folder / "model", text)
        model = make_model(kind)
        model.save_pretrained(folder / "model")
        (folder / "text.txt").write_text(text)
        subprocess.run([wick, "imatrix", "-m", folder / "model", "-f", folder / "text.txt", "-o", folder / "out.gguf",
                        "-c", str(CHUNK)], check=True)
        found = {t.name: np.array(t.data) for t in gguf.GGUFReader(folder / "out.gguf").tensors}
        compare_quantized(wick, folder)
    ids = tokenizer.encode(text).ids
    chunks = [ids[i:i + CHUNK] for i in range(0, len(ids) - CHUNK + 1, CHUNK)]
    sums, counts = expected_sums(model, chunks)
    names = {n.removesuffix(".in_sum2") for n in found if n.endswith(".in_sum2")}
    assert names == set(sums), names ^ set(sums)
    worst = 0.0
    for weight, expected in sums.items():
        got = found[weight + ".in_sum2"].reshape(expected.shape)
        assert (found[weight + ".counts"].reshape(-1) == counts[weight].numpy()).all(), weight
        worst = max(worst, float(np.abs(got - expected.numpy()).max() / expected.max()))
    print(f"{kind}: {len(sums)} weights, {len(chunks)} chunks, largest relative difference {worst:.2g}")
    return worst <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wick", default="build/release/bin/wick")
    options = parser.parse_args()
    return 0 if all([compare(options.wick, kind) for kind in ("llama", "qwen3_moe")]) else 1


if __name__ == "__main__":
    sys.exit(main())
