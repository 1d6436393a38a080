#!/usr/bin/env python3
"""Writes the descriptions of tiny models with which families_test.cpp compares wick: data/NAME.json.

    pip install torch transformers gguf
    python make_models.py --converter LLAMA_CPP [NAME ..] [--check]

LLAMA_CPP is a folder with llama.cpp's convert_hf_to_gguf.py, the reference for the names of keys and tensors. For
each model of models.py this script
1. makes the model in transformers, with the number of each element as its value;
2. converts it. The values in the converted file tell which element each of them came from;
3. gives each element of the file a pseudo-random value that depends on its tensor's name and its index
   (value_of, repeated in tiny_model.cpp), and the elements of the model the values that convert to these;
4. computes the logits, or the pooled states of models that have none, in f64;
5. describes the files that transformers writes: the configuration, and for each of their tensors ("parameters") which
   elements of which tensors of the converted file it has.
A description holds the metadata, the names and shapes of the tensors and the logits, so the tests need neither
transformers nor weights. --check compares with the stored logits instead of writing them."""
import argparse
import contextlib
import io
import json
import logging
import pathlib
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data"
TOKENS = [(i * 17 + 5) % 39 for i in range(24)]
POSITIONS = range(3, 24, 4)  # positions whose logits are stored


def hashes(name, count):
    """Returns a pseudo-random u32 for each index: FNV-1a of the name, then a mix of it with the index."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    x = (np.arange(count, dtype=np.uint64) * 2654435769 + seed) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
    return x ^ (x >> 16)


def value_of(name, shape):
    """Returns the f32 values of a tensor of a file."""
    u = (hashes(name, int(np.prod(shape))) >> 8).astype(np.float64) / 2.0**24
    stem, _, suffix = name.rpartition(".")
    if name.endswith("ssm_a"):
        low, high = -4.5, -0.5
    elif name.endswith("exp_probs_b.bias"):
        low, high = 0.0, 0.5
    elif suffix == "weight" and ("norm" in stem or stem.endswith("layer_output_scale")):
        low, high = 0.75, 1.25
    elif stem.endswith("sinks") or suffix == "bias" or len(shape) == 1:
        low, high = -0.5, 0.5
    elif stem.endswith("token_embd") or stem.endswith("position_embd"):
        low, high = -1.0, 1.0
    else:
        high = np.sqrt(3.0 / shape[-1])
        low = -high
    return (low + (high - low) * u).astype(np.float32).reshape(shape)


def write_tokenizer(folder):
    """Writes the tokenizer that some of the converter's classes read."""
    vocabulary = {chr(ord("0") + i): i for i in range(40)}
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": [], "model": {
            "type": "WordPiece", "unk_token": "0", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": vocabulary}}))
    # Makers of embeddings say how rows are pooled.
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


def convert(folder, out, llama_cpp, in_file):
    """Runs the converter without its vocabulary."""
    sys.path.insert(0, str(llama_cpp))
    sys.path.insert(0, str(llama_cpp / "gguf-py"))
    import conversion
    import gguf
    from conversion.base import ModelBase, ModelType, get_model_architecture
    hparams = ModelBase.load_hparams(folder, False) | in_file
    cls = conversion.get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    cls.no_mtp = True
    converter = cls(folder, gguf.LlamaFileType.ALL_F32, out, hparams=hparams)
    converter = getattr(converter, "impl", converter)
    converter.set_vocab = lambda: None
    wrapped = converter.modify_tensors

    def modify_tensors(*arguments):
        inner = yield from wrapped(*arguments)
        if inner is not None:  # StableLM's returns a generator instead of yielding from it
            yield from inner

    converter.modify_tensors = modify_tensors
    converter.write()
    return gguf


def metadata_of(reader, gguf):
    kinds = gguf.GGUFValueType
    result = []
    for field in reader.fields.values():
        if field.name.startswith(("GGUF.", "tokenizer.", "general.")):
            continue
        kind = field.types[-1].name.lower()
        value = field.contents()
        if kind == "float32":
            value = [float(v) for v in value] if isinstance(value, list) else float(value)
        is_array = field.types[0] == kinds.ARRAY
        result.append({"key": field.name, "type": kind + ("[]" if is_array else ""), "value": value})
    return result


def sources_of(tensors, sizes, constants):
    """Returns, for each tensor of the file, the number of the model's element behind each element, and the offset that
    the converter adds to it; None for tensors of constants."""
    result = {}
    for name, got in tensors.items():
        flat = got.reshape(-1).astype(np.float64)
        if any(c in name for c in constants):
            result[name] = None
            continue
        negative = bool((flat < 0).all())
        whole = np.rint(-flat if negative else flat).astype(np.int64)
        if negative:
            element, offset = whole // 4, "neg_exp"
        else:
            offset = int(whole[0] % 4)
            element = (whole - offset) // 4
            if not (np.abs(flat - whole) < 1e-3).all() or not (whole % 4 == offset).all() or offset > 1:
                sys.exit(f"make_models: {name} isn't a permutation of the model's elements: {flat[:4]}")
        if element.min() < 1 or element.max() > sizes:
            sys.exit(f"make_models: {name} has elements that the model doesn't have")
        result[name] = (element - 1, offset)
    return result


def affine(to, at):
    """Returns sizes and strides with which nested loops visit the numbers of `to` and of `at` in their order:
    to[0] + sum(i * stride), and the same for `at`. None: there are none."""
    count = len(to)
    if count == 1:
        return [], [], []
    steps = int(to[1] - to[0]), int(at[1] - at[0])
    order = np.arange(count)
    same = (to == to[0] + steps[0] * order) & (at == at[0] + steps[1] * order)
    run = count if same.all() else int(np.argmin(same))
    for inner in range(run, 1, -1):
        if count % inner:
            continue
        rows_to, rows_at = to.reshape(-1, inner), at.reshape(-1, inner)
        if (rows_to - rows_to[:, :1] != rows_to[0] - rows_to[0, 0]).any():
            continue
        if (rows_at - rows_at[:, :1] != rows_at[0] - rows_at[0, 0]).any():
            continue
        outer = affine(rows_to[:, 0], rows_at[:, 0])
        if outer:
            return outer[0] + [inner], outer[1] + [steps[0]], outer[2] + [steps[1]]
    return None


def groups_of(to, at, divisors):
    """Returns the indices of elements that nested loops visit, in groups: by the elements' divisors and, if these
    aren't regular, by the length of the runs that are consecutive in `to` and in `at`."""
    groups = []
    for divisor in np.unique(divisors):
        group = np.flatnonzero(divisors == divisor)
        if affine(to[group], at[group]) is not None:
            groups.append(group)
            continue
        runs = np.split(group, np.flatnonzero((np.diff(to[group]) != 1) | (np.diff(at[group]) != 1)) + 1)
        for length in sorted({run.size for run in runs}):
            groups.append(np.concatenate([run for run in runs if run.size == length]))
    return groups


def part_of(tensor, size, to, at, offset, divisor):
    """Describes elements `to` of a parameter that have the values of elements `at` of a tensor of a size."""
    loops = affine(to, at)
    if loops is None:
        sys.exit(f"make_models: no regular part of {tensor}")
    part = {"from": tensor}
    if at.size != size or (to != at).any() or (to != np.arange(at.size)).any():
        part |= {"sizes": loops[0], "to": [int(to[0])] + loops[1], "at": [int(at[0])] + loops[2]}
    if offset == "neg_exp":
        part["negated_log"] = True  # log(-value)
    elif offset:
        part["add"] = -offset
    if divisor != 1:
        part["divide"] = float(divisor)
    return part


def parameters_of(folder, sources, total, divisors):
    """Describes the tensors of the model's files by the elements of the converted file's tensors. `divisors` has the
    factor by which the converter multiplies each element."""
    from safetensors.numpy import load_file
    names = [n for n in sources if sources[n] is not None]
    owner, place = np.full(total, -1), np.zeros(total, dtype=np.int64)
    for i, tensor in enumerate(names):
        element = sources[tensor][0]
        owner[element], place[element] = i, np.arange(element.size)
    result = []
    for file in sorted(folder.glob("*.safetensors")):
        for parameter, values in sorted(load_file(file).items()):
            numbers = values.reshape(-1).astype(np.float64)
            if parameter.endswith("A_log"):
                numbers = np.exp(numbers)
            element = np.rint(numbers).astype(np.int64) // 4 - 1
            entry = {"name": parameter, "shape": list(values.shape), "parts": []}
            for i in np.unique(owner[element]):
                if i < 0:
                    continue  # zeros
                to = np.flatnonzero(owner[element] == i)
                at = place[element[to]]
                for group in groups_of(to, at, divisors[element[to]]):
                    entry["parts"].append(part_of(names[i], sources[names[i]][0].size, to[group], at[group],
                                                  sources[names[i]][1], divisors[element[to[group[0]]]]))
            result.append(entry)
    return result


def generated_logits(model, tokens, first):
    """Returns the logits of the positions from `first` on that generate() computes if it is made to choose `tokens`."""
    import torch

    def choose(ids, scores):
        forced = torch.full_like(scores, -torch.inf)
        forced[0, tokens[0, min(ids.shape[1], tokens.shape[1] - 1)]] = 0
        return forced

    prompt = tokens[:, :first + 1]
    result = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                            max_new_tokens=tokens.shape[1] - first, eos_token_id=None, output_logits=True,
                            return_dict_in_generate=True, logits_processor=[choose])
    return torch.cat(result.logits)


def results_of(model, name):
    """Returns the logits of the stored positions, or the embeddings of each pooling, and what the description says of
    the tokens."""
    import torch
    from models import LONG
    count, positions, way = LONG.get(name, (len(TOKENS), list(POSITIONS), "at once"))
    tokens = torch.tensor([[(i * 17 + 5) % 39 for i in range(count)]])
    if way == "generated":
        rows = generated_logits(model, tokens, positions[0])
        return {"logits": rows[[i - positions[0] for i in positions]]}, {"tokens": count, "positions": positions}
    if way == "one by one":
        rows, cache = [], None
        for i in range(count):
            step = model(tokens[:, i:i + 1], past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            rows.append(step.logits[0][0])
        return {"logits": torch.stack(rows)[positions]}, {"tokens": count, "positions": positions}
    result = model(tokens)
    if "logits" in result:
        return {"logits": result.logits[0][positions]}, (
            {"tokens": count, "positions": positions} if name in LONG else {})
    states = result.last_hidden_state[0]  # by each way of pooling
    return {"embeddings": torch.stack([states.mean(0), states[0], states[-1]])}, {}


def describe(name, model_class, config_class, options, constants, converter, in_file=None):
    import torch
    import transformers
    config = getattr(transformers, config_class)(**options)
    config._attn_implementation = config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, model_class)(config).eval().float()
    stored = set(model.state_dict())
    values_of_model = lambda: list(model.named_parameters()) + [
        (n, b) for n, b in model.named_buffers() if n in stored and b.is_floating_point()]
    total = 0
    with torch.no_grad():
        starts = []
        for parameter, target in values_of_model():
            ids = 4.0 * torch.arange(total + 1, total + 1 + target.numel(), dtype=torch.float64)
            if parameter.endswith("A_log"):
                ids = torch.log(ids)
            target.copy_(ids.reshape(target.shape).to(target.dtype))
            starts.append(total)
            total += target.numel()
    if total >= 1 << 22:
        sys.exit(f"make_models: {name} has {total} elements, too many for f32 numbers")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model.save_pretrained(folder)
        written = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({"architectures": [model_class]} | written))
        write_tokenizer(folder)

        def read_converted(out, more):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                gguf = convert(folder, out, converter, (in_file or {}) | more)
            reader = gguf.GGUFReader(out)
            return reader, gguf, {t.name: np.array(t.data).reshape([int(n) for n in reversed(t.shape)]).copy()
                                  for t in reader.tensors}

        multipliers = {k: v for k, v in written.items() if k.endswith(("_multiplier", "_multipliers"))}
        into_weights = multipliers if model_class.startswith("FalconH1") else {}
        ones = {k: [1.0] * len(v) if isinstance(v, list) else 1.0 for k, v in into_weights.items()}
        reader, gguf, tensors = read_converted(folder / "m.gguf", ones)
        arch = reader.fields["general.architecture"].contents()
        metadata = metadata_of(reader, gguf)
        sources = sources_of(tensors, total, constants)
        divisors = np.ones(total)
        if into_weights != ones:  # the converter multiplies weights
            multiplied = read_converted(folder / "multiplied.gguf", {})[2]
            for tensor, source in sources.items():
                if source is not None:
                    ratio = multiplied[tensor].astype(np.float64) / tensors[tensor]
                    divisors[source[0]] = ratio.reshape(-1)
        parameters = parameters_of(folder, sources, total, divisors)
    values = np.full(total, np.nan)
    described = []
    for tensor, got in tensors.items():
        entry = {"name": tensor, "shape": list(got.shape)}
        if sources[tensor] is None:
            entry["values"] = [float(v) for v in got.reshape(-1)]
        else:
            element, offset = sources[tensor]
            wanted = value_of(tensor, got.shape).reshape(-1).astype(np.float64)
            values[element] = np.log(-wanted) if offset == "neg_exp" else wanted / divisors[element] - offset
        described.append(entry)
    model = model.double()
    with torch.no_grad():
        for start, (parameter, target) in zip(starts, values_of_model()):
            own = values[start:start + target.numel()]
            if np.isnan(own).any():
                print(f"  {name}: {np.isnan(own).sum()} of {own.size} elements of {parameter} aren't in the file")
                own = np.nan_to_num(own)
            target.copy_(torch.from_numpy(own).reshape(target.shape))
        results, of_tokens = results_of(model, name)
    unused = ("transformers_version", "dtype", "use_cache", "initializer_range", "architectures")
    config = {k: v for k, v in written.items() if k not in unused and "dropout" not in k and "pdrop" not in k}
    return {"architecture": arch, "metadata": metadata, "tensors": described, "config": config,
            "parameters": parameters} | of_tokens | {
                key: [[float(f"{v:.7g}") for v in row] for row in rows.double().numpy()]
                for key, rows in results.items()}


def main():
    from models import LONG, MODELS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--converter", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    import transformers
    transformers.utils.logging.disable_progress_bar()
    failed = 0
    for name, (model, config, sizes, constants, *in_file) in MODELS.items():
        if options.names and name not in options.names:
            continue
        try:
            got = describe(name, model, config, sizes, constants, options.converter.resolve(), *in_file)
        except Exception as e:  # reports the other models, too
            if options.names:
                raise
            print(f"{name}: {type(e).__name__}: {e}")
            failed += 1
            continue
        folder = HERE.parent / "added" if name == "arcee" else DATA / "long" if name in LONG else DATA
        path = folder / f"{name}.json"
        if options.check:
            key = "logits" if "logits" in got else "embeddings"
            kept = np.array(json.loads(path.read_text())[key])
            worst = np.abs(kept - np.array(got[key])).max() / np.abs(kept).max()
            print(f"{name}: {worst:.2e}")
            failed += not worst < 1e-5
        else:
            lines = ",\n".join(f' {json.dumps(k)}: ' + (
                "[\n" + ",\n".join("  " + json.dumps(x) for x in v) + "\n ]" if isinstance(v, list) else json.dumps(v))
                for k, v in got.items())
            path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
            print(f"{name}: {got['architecture']}, {len(got['tensors'])} tensors")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
