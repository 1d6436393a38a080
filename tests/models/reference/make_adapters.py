#!/usr/bin/env python3
"""Writes the descriptions of PEFT adapters with which adapter_test.cpp compares wick: data/peft/NAME.json.

    pip install torch transformers peft
    python make_adapters.py [NAME ..] [--check]

Each adapter belongs to a tiny model of data/ (see make_models.py), whose weights this script gives to transformers. The
elements of the factors are pseudo-random values that depend on the tensor's name and the index; random_values of
tiny_model.cpp repeats them. A description holds adapter_config.json as PEFT writes it, the names and shapes of the
tensors of adapter_model.safetensors, and the logits of the adapted model, computed in f64. --check compares with the
stored logits instead of writing them."""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

from make_models import DATA, POSITIONS, TOKENS, hashes, value_of
from models import MODELS

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]
# name: (model, options of LoraConfig)
ADAPTERS = {
    "llama": ("llama", {"r": 3, "lora_alpha": 6, "target_modules": [*ATTENTION, *MLP, "lm_head"]}),
    "llama-patterns": ("llama", {
        "r": 4, "lora_alpha": 4, "use_rslora": True, "target_modules": ["q_proj", "k_proj", "down_proj"],
        "rank_pattern": {"k_proj": 2, "^model.layers.0.self_attn.q_proj": 5},
        "alpha_pattern": {"layers.1.mlp.down_proj": 9, "k_proj": 3}}),
    "qwen2": ("qwen2", {"r": 3, "lora_alpha": 6, "target_modules": [*ATTENTION, *MLP]}),
    "qwen2moe": ("qwen2moe", {"r": 3, "lora_alpha": 6, "target_modules": [
        *ATTENTION, "shared_expert.gate_proj", "shared_expert.up_proj", "shared_expert.down_proj"]}),
    "gpt2": ("gpt2", {"r": 3, "lora_alpha": 6, "fan_in_fan_out": True,
                      "target_modules": ["c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"]}),
    "gptneox": ("gptneox", {"r": 2, "lora_alpha": 8, "target_modules": ["query_key_value", "dense", "dense_h_to_4h"]}),
    "llama-magnitudes": ("llama", {
        "r": 3, "lora_alpha": 6, "use_dora": True, "target_modules": ["q_proj", "k_proj", "up_proj", "down_proj"]}),
    "llama-embeddings": ("llama", {"r": 3, "lora_alpha": 6, "target_modules": ["embed_tokens", "v_proj"]}),
    "llama-saved": ("llama", {"r": 3, "lora_alpha": 6, "target_modules": ["v_proj"],
                              "modules_to_save": ["lm_head", "embed_tokens"]}),
    "llama-expressions": ("llama", {
        "r": 2, "lora_alpha": 4, "target_modules": ATTENTION,
        # PEFT sorts the patterns when it saves them, and the first one that matches counts.
        "rank_pattern": {r"([01])\.self_attn\.(q|v)_proj": 4, ".*_proj": 3},
        "alpha_pattern": {".*[kv]_proj": 6, "q_pro.": 8, "self_attn.q_proj": 1}}),
    "qwen2-biases": ("qwen2", {"r": 3, "lora_alpha": 6, "target_modules": ["q_proj", "k_proj", "o_proj"],
                               "bias": "all"}),
    "qwen2-lora-only": ("qwen2", {"r": 3, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj"],
                                  "bias": "lora_only"}),
    "qwen2-factor-biases": ("qwen2", {"r": 3, "lora_alpha": 6, "target_modules": ["q_proj", "down_proj"],
                                      "lora_bias": True}),
    "deepseek2-lite": ("deepseek2-lite", {"r": 3, "lora_alpha": 6, "target_modules": ["kv_b_proj", "o_proj"]}),
    "phi3": ("phi3", {"r": 3, "lora_alpha": 3, "target_modules": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]}),
}


def factor_of(name, shape):
    """The f32 values of a factor, from -0.35 to 0.35."""
    u = (hashes(name, int(np.prod(shape))) >> 8).astype(np.float64) / 2.0**24
    return ((u - 0.5) * 0.7).astype(np.float32).reshape(shape)


def parameter_of(described, parameter):
    """The values of a tensor of transformers, made of those of the GGUF file's tensors (see parameters_of)."""
    shapes = {t["name"]: t["shape"] for t in described["tensors"]}
    result = np.zeros(int(np.prod(parameter["shape"])), dtype=np.float32)
    for part in parameter["parts"]:
        values = value_of(part["from"], shapes[part["from"]]).reshape(-1)
        to = at = np.zeros(1, dtype=np.int64)
        loops = part.get("sizes", [min(result.size, values.size)])
        starts = part.get("to", [0, 1]), part.get("at", [0, 1])
        for d, size in enumerate(loops):
            to = (to[:, None] + starts[0][d + 1] * np.arange(size)).reshape(-1)
            at = (at[:, None] + starts[1][d + 1] * np.arange(size)).reshape(-1)
        result[to + starts[0][0]] = values[at + starts[1][0]] + np.float32(part.get("add", 0))
    return result.reshape(parameter["shape"])


def describe(name, model_name, options):
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file
    described = json.loads((DATA / f"{model_name}.json").read_text())
    model_class, config_class, sizes = MODELS[model_name][:3]
    config = getattr(transformers, config_class)(**sizes)
    config._attn_implementation = config._experts_implementation = "eager"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Saved and loaded, so that transformers converts the names and the layouts of its files.
        from safetensors.numpy import save_file
        save_file({p["name"]: parameter_of(described, p) for p in described["parameters"]},
                  folder / "model.safetensors", metadata={"format": "pt"})
        config.save_pretrained(folder)
        model = getattr(transformers, model_class).from_pretrained(folder, config=config, dtype=torch.float32)
        adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **options))
        adapted.save_pretrained(folder / "adapter")
        shapes = {n: list(t.shape) for n, t in load_file(folder / "adapter" / "adapter_model.safetensors").items()}
        written = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    with torch.no_grad():
        # PEFT also saves an adapted table or output matrix itself, which stays as it is.
        state = {n: torch.from_numpy(factor_of(n, s)) for n, s in shapes.items()
                 if not n.endswith("base_layer.weight")}
        loaded = peft.set_peft_model_state_dict(adapted, state)
        assert not loaded.unexpected_keys, loaded.unexpected_keys
        adapted = adapted.eval().double()
        rows = adapted(torch.tensor([TOKENS])).logits[0][list(POSITIONS)]
    written["base_model_name_or_path"] = model_name
    return {"model": model_name, "config": written,
            "tensors": [{"name": n, "shape": s} for n, s in sorted(shapes.items())],
            "logits": [[float(f"{v:.7g}") for v in row] for row in rows.numpy()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    failed = 0
    for name, (model, config) in ADAPTERS.items():
        if options.names and name not in options.names:
            continue
        got = describe(name, model, config)
        path = DATA / "peft" / f"{name}.json"
        if options.check:
            kept = np.array(json.loads(path.read_text())["logits"])
            worst = np.abs(kept - np.array(got["logits"])).max() / np.abs(kept).max()
            print(f"{name}: {worst:.2e}")
            failed += not worst < 1e-5
            continue
        path.parent.mkdir(exist_ok=True)
        lines = ",\n".join(f" {json.dumps(k)}: " + (
            "[\n" + ",\n".join("  " + json.dumps(x) for x in v) + "\n ]" if isinstance(v, list) else json.dumps(v))
            for k, v in got.items())
        path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
        print(f"{name}: {len(got['tensors'])} factors of {model}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
