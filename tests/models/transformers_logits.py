#!/usr/bin/env python3
"""Computes the logits of the tiny models of the architectures with Hugging Face's transformers.

    pip install torch transformers gguf
    write_tiny_llama --families FOLDER
    python transformers_logits.py FOLDER [--write]

Reads every GGUF file of FOLDER with the `gguf` package, whose tables name keys and tensors, builds a
model with that configuration and these weights, and compares its logits with those in data/NAME.txt.
The C++ tests compare wick's logits with these files; --write writes them."""
import argparse
import pathlib
import sys

import gguf
import torch
import transformers

HERE = pathlib.Path(__file__).parent / "data"
TOKENS = [(i * 17 + 5) % 39 for i in range(24)]
POSITIONS = range(3, 24, 4)  # positions whose logits are stored
CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "phi3": ("Phi3Config", "Phi3ForCausalLM"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM"),
    "glm4": ("Glm4Config", "Glm4ForCausalLM"),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
}
KEYS = gguf.Keys


def rope_of(get, name, arch):
    """Returns the rope_parameters of a configuration."""
    rope = {"rope_type": "default", "rope_theta": get(KEYS.Rope.FREQ_BASE)}
    kind = get(KEYS.Rope.SCALING_TYPE, "none")
    if name == "llama":  # its divisors are Llama 3.1's with these numbers
        rope |= {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                 "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    if kind != "none":
        rope |= {"rope_type": kind, "factor": get(KEYS.Rope.SCALING_FACTOR)}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = get(KEYS.Rope.SCALING_ORIG_CTX_LEN)
    if arch in ("phi3", "glm4"):
        rope["partial_rotary_factor"] = (
            get(KEYS.Rope.DIMENSION_COUNT) / get(KEYS.Attention.KEY_LENGTH))
    if arch == "gemma3":
        return {"full_attention": rope,
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    return rope


def config_of(reader, name, arch, vocabulary):
    def get(key, or_else=None):
        field = reader.fields.get(key.format(arch=arch))
        return or_else if field is None else field.contents()

    head = get(KEYS.Attention.KEY_LENGTH)
    options = {
        "vocab_size": vocabulary,
        "hidden_size": get(KEYS.LLM.EMBEDDING_LENGTH),
        "intermediate_size": get(KEYS.LLM.FEED_FORWARD_LENGTH),
        "num_hidden_layers": get(KEYS.LLM.BLOCK_COUNT),
        "num_attention_heads": get(KEYS.Attention.HEAD_COUNT),
        "num_key_value_heads": get(KEYS.Attention.HEAD_COUNT_KV),
        "head_dim": head,
        "max_position_embeddings": get(KEYS.LLM.CONTEXT_LENGTH),
        "rms_norm_eps": get(KEYS.Attention.LAYERNORM_RMS_EPS),
        "rope_parameters": rope_of(get, name, arch),
        "tie_word_embeddings": all(t.name != "output.weight" for t in reader.tensors),
        "attn_implementation": "eager",
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }
    if get(KEYS.Attention.SLIDING_WINDOW) is not None:
        options["sliding_window"] = get(KEYS.Attention.SLIDING_WINDOW)
    if arch in ("gemma2", "gemma3"):
        options["query_pre_attn_scalar"] = head
        options["attn_logit_softcapping"] = get(KEYS.LLM.ATTN_LOGIT_SOFTCAPPING)
        options["final_logit_softcapping"] = get(KEYS.LLM.FINAL_LOGIT_SOFTCAPPING)
    if arch == "glm4":
        options["attention_bias"] = True
    if arch == "gemma":
        options["hidden_act"] = "gelu_pytorch_tanh"
    return getattr(transformers, CLASSES[arch][0])(**options)


def weight_of(tensors, names, parameter, config, arch):
    """Returns a parameter from the file in the form that the converter read."""
    stem, suffix = parameter.rsplit(".", 1)
    name = names.get_name(stem)
    if name is None:
        sys.exit(f"transformers_logits: no GGUF name for {parameter}")
    value = torch.tensor(tensors[f"{name}.{suffix}"].data.copy())
    if arch == "llama" and ("q_proj" in parameter or "k_proj" in parameter):
        pairs = value.reshape(-1, config.head_dim // 2, 2, *value.shape[1:])
        value = pairs.swapaxes(1, 2).reshape(value.shape)
    if arch.startswith("gemma") and "norm" in parameter:
        value = value - 1
    return value


def logits_of(path):
    reader = gguf.GGUFReader(path)
    arch = reader.fields["general.architecture"].contents()
    tensors = {t.name: t for t in reader.tensors}
    config = config_of(reader, path.stem, arch, tensors["token_embd.weight"].data.shape[0])
    kind = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    model = getattr(transformers, CLASSES[arch][1])(config).eval()
    used = {"rope_freqs.weight"}
    with torch.no_grad():
        for parameter, target in model.named_parameters():
            value = weight_of(tensors, names, parameter, config, arch)
            used.add(names.get_name(parameter.rsplit(".", 1)[0]) + "." + parameter.rsplit(".", 1)[1])
            assert value.shape == target.shape, (parameter, value.shape, target.shape)
            target.copy_(value)
    assert used >= set(tensors), set(tensors) - used
    model = model.double()
    with torch.no_grad():
        return model(torch.tensor([TOKENS])).logits[0][list(POSITIONS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    failed = 0
    for path in sorted(options.folder.glob("*.gguf")):
        logits = logits_of(path)
        kept = HERE / f"{path.stem}.txt"
        if options.write:
            kept.parent.mkdir(exist_ok=True)
            rows = (" ".join(f"{v:.7g}" for v in row) for row in logits.tolist())
            kept.write_text("\n".join(rows) + "\n", encoding="utf-8")
        else:
            rows = kept.read_text(encoding="utf-8").splitlines()
            expected = torch.tensor([[float(v) for v in row.split()] for row in rows]).double()
            worst = ((logits - expected).abs().max() / expected.abs().max()).item()
            print(f"{path.stem}: {worst:.1e}")
            failed += not worst < 1e-6
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
