#!/usr/bin/env python3
"""Generates docs/ops.md, the reference of all ops, from wick/op/ops.def, the comments of wick/tensor/*.h
and the backends' sources.

Usage: ops_docs.py [--check] [--root FOLDER]

--check writes nothing, and fails if the page is out of date."""

import argparse
import pathlib
import re
import sys
import textwrap

ROW = re.compile(r'^WICK_(\w+)\((\w+), (\w+), (?:(\d), )?(\w+), (\w+), (?:\(.*\),\s+)?((?:"[^\n]*"\s*)+)\)$',
                 re.MULTILINE)
HEADERS = ["ops.h", "shape_ops.h", "index_ops.h", "random.h", "recurrent_ops.h"]
PAGE = pathlib.Path("docs/ops.md")

# Regular rows: a heading, the kind's macro and the backend's method.
KINDS = {
    "UNARY": ("Unary ops", "unary"),
    "UNARY_WITH": ("Unary ops with scalar arguments", "unary_with"),
    "TEST": ("Tests", "test"),
    "BINARY": ("Binary ops", "binary"),
    "COMPARE": ("Comparisons", "compare"),
    "REDUCE": ("Reductions", "reduce"),
    "ARG": ("Argmax and argmin", "arg_reduce"),
}
# Functions that use a row with another name. Every public function without a row must be listed
# here.
SERVES = {
    "fill": ["const_set", "eye"],
    "copy": ["slice_set", "flip"],
    "cat": ["stack"],
    "where": ["masked_fill"],
    "conv2d": ["conv2d_weight"],
    "max_pool2d": ["max_pool2d_grad"],
    "avg_pool2d": ["avg_pool2d_grad"],
    "upsample_nearest2d": ["upsample_nearest2d_grad"],
    "upsample_bilinear2d": ["upsample_bilinear2d_grad"],
    "linear": ["grouped_linear"],
    "batch_norm": ["batch_norm_of_batch"],
    "rope": ["rope_of_tokens"],
    "attention": ["attention_of_lengths", "attention_of_pages"],
    "uniform": ["set_seed", "get_seed"],
}
# Members of Tensor that use a row.
MEMBERS = {
    "fill": "Tensor::full, Tensor::zeros, Tensor::ones",
    "iota": "Tensor::arange",
    "copy": "Tensor::clone, Tensor::contiguous, Tensor::reshape where strides don't allow a view",
    "cast": "Tensor::to",
}
# Rows whose backend method has another name.
METHODS = {
    "cat": "copy", "pad": "copy", "roll": "copy", "repeat": "copy", "tril": "copy", "triu": "copy",
    "scatter_add": "scatter", "one_hot": "scatter", "argsort": "sort", "topk": "sort",
    "cumsum": "scan", "cumprod": "scan", "uniform": "random", "normal": "random", "conv_transpose2d": "conv2d_input",
    "max_pool2d": "pool2d", "avg_pool2d": "pool2d", "upsample_nearest2d": "resample",
    "upsample_bilinear2d": "resample", "log_softmax": "softmax",
    "log_softmax_grad": "softmax_grad", "rope_interleaved": "rope",
}


class Row:
    def __init__(self, match):
        self.macro, self.name, self.dtypes, self.numbers, self.numeric_class, self.gradient, doc = \
            match.groups()
        # Only the first line is for this page; the rest is for Python.
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', doc))
        self.doc = text.split("\\n")[0].replace('\\"', '"')
        self.method = KINDS[self.macro][1] if self.macro in KINDS else METHODS.get(self.name, self.name)


def fail(text):
    sys.exit(f"ops_docs: {text}")


def read_rows(root):
    text = (root / "wick/op/ops.def").read_text(encoding="utf-8")
    rows = [Row(m) for m in ROW.finditer(text)]
    lines = re.findall(r"^WICK_\w+\(", text, re.MULTILINE)
    if len(rows) != len(lines) or len(rows) < 30:
        fail(f"{len(lines)} rows in ops.def, {len(rows)} of them read")
    return rows


def read_functions(root):
    """Returns (name, signature, comment) of each public function in the headers, in order, and the
    comment above each macro of ops.def."""
    functions, macros = [], {}
    for header in HEADERS:
        comment, statement, after = [], "", False
        for line in (root / "wick/tensor" / header).read_text(encoding="utf-8").splitlines():
            stripped = line.strip()
            if stripped.startswith("///") and not line.startswith(" "):
                if after:
                    comment, after = [], False
                comment.append(stripped[3:].strip())
                continue
            macro = re.match(r"#define WICK_(\w+)\(name", line)
            if macro:
                macros[macro.group(1)] = " ".join(comment)
                after = True
            if line.startswith("WICK_API "):
                statement = ""
            if line.startswith("WICK_API ") or statement:
                statement += (" " if statement else "") + stripped
                if statement.endswith(";"):
                    signature = re.sub(r"^WICK_API ", "", statement)
                    name = re.match(r"[\w:<>]+ (\w+)\(", signature)
                    if name:
                        functions.append((name.group(1), signature, " ".join(comment)))
                    after, statement = True, ""
            elif not stripped:
                comment, after = [], False
            elif comment:
                after = True
    return functions, macros


def read_sets(root):
    """Returns the dtypes of each set that a row may name."""
    text = (root / "wick/base/dtype.h").read_text(encoding="utf-8")
    sets = {name: re.findall(r"DType::(\w+)", body)
            for name, body in re.findall(r"DTypeSet k(\w+) =\s*DTypeSet::of\(([^)]*)\)", text)}
    sets["Real"] = sets["Integers"] + sets["Floats"]
    sets["Any"] = sets["Real"] + ["bool"]
    sets["Bits"] = sets["Integers"] + ["bool"]
    blocks = read_blocks(root)
    sets["Weights"] = sets["Activations"] + [b["name"] for b in blocks]
    sets["Written"] = sets["Activations"] + [b["name"] for b in blocks if b["writes"] == "written"]
    return sets


def read_blocks(root):
    """Returns the rows of quants.def."""
    text = (root / "wick/math/quants.def").read_text(encoding="utf-8")
    columns = "name type number values bytes bits offset code part scale at minimum_at products writes reach"
    rows = [dict(zip(columns.split(), re.split(r",\s*", row), strict=True))
            for row in re.findall(r"^WICK_QUANT\(([^)]*)\)$", text, re.MULTILINE)]
    if len(rows) < 10:
        fail(f"{len(rows)} rows read in quants.def")
    return rows


def block_table(root):
    yield "## Block dtypes\n"
    yield wrapped("The formats of quantized weights in GGUF files are the rows of "
                  "[quants.def](../wick/math/quants.def). Every device supports `dequantize`, `index_select` and products "
                  "for all of them. `quantize` makes those marked with yes; for some others `wick quantize` searches blocks. Products with own kernels round "
                  "activations to 8 bits; the others multiply decoded tiles: [numerics](design/numerics/quantised.md).") + "\n"
    yield cells("dtype", "values", "bytes", "bits per value", "minimum", "products", "written")
    yield "|---|---|---|---|---|---|---|"
    for b in read_blocks(root):
        yield cells(f"`{b['name']}`", b["values"], b["bytes"], f"{8 * int(b['bytes']) / int(b['values']):.4g}",
                    "no" if b["minimum_at"] == "-1" else "yes",
                    "own kernels" if b["products"] == "own" else "decoded",
                    {"written": "yes", "searched": "`wick quantize`", "read": "no"}[b["writes"]])
    yield ""


def read_gradients(root):
    text = (root / "wick/op/op.h").read_text(encoding="utf-8")
    body = re.search(r"enum class Gradient.*?\{(.*?)\};", text, re.DOTALL).group(1)
    return dict(re.findall(r"(\w+),\s*///< (.*)", body))


def read_gpu_methods(root):
    """Returns the methods of Backend that GPUs implement."""
    methods = set()
    for path in sorted((root / "wick/backend/gpu").rglob("*.cpp")):
        methods.update(re.findall(r"^[\w:<> ]+GpuBackend::(\w+)\([^{;]*\{", path.read_text(encoding="utf-8"), re.MULTILINE))
    return methods


def on_gpu(row, gpu):
    if (row.gradient == "composed" and row.method not in gpu) or row.name in ("any", "all"):
        return "as its ops"
    if row.method not in gpu:
        fail(f"no GpuBackend::{row.method}, for {row.name}")
    return "kernel"


def wrapped(text):
    return "\n".join(textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False))


def sentence(text):
    """Returns a row's text with a full stop, and with a capital letter if it begins with a word."""
    if re.match(r"[a-z][a-z]+ ", text):
        text = text[0].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def cells(*values):
    return "| " + " | ".join(str(v).replace("|", "\\|") for v in values) + " |"


def regular(rows, macro, macros, gpu):
    title, _ = KINDS[macro]
    signature = {
        "UNARY": "Tensor NAME(const Tensor& x);",
        "TEST": "Tensor NAME(const Tensor& x);",
        "BINARY": "Tensor NAME(const Tensor& a, const Tensor& b);",
        "COMPARE": "Tensor NAME(const Tensor& a, const Tensor& b);",
        "REDUCE": "Tensor NAME(const Tensor& x, std::span<const int> dims = {}, bool keepdim = false);\n"
                  "Tensor NAME(const Tensor& x, int dim, bool keepdim = false);",
        "ARG": "Tensor NAME(const Tensor& x, int dim, bool keepdim = false);",
    }[macro]
    yield f"## {title}\n"
    yield f"```cpp\n{signature}\n```\n"
    yield wrapped(macros[macro]) + "\n"
    yield cells("op", "computes", "dtypes", "class", "gradient", "GPU")
    yield "|---|---|---|---|---|---|"
    for row in rows:
        if row.macro == macro:
            yield cells(f"`{row.name}`", row.doc, row.dtypes, row.numeric_class, row.gradient,
                        on_gpu(row, gpu))
    yield ""


def by_hand(row, functions, gpu):
    yield f"### {row.name}\n"
    yield sentence(row.doc) + "\n"
    yield cells("dtypes", "class", "gradient", "CPU", "GPU")
    yield "|---|---|---|---|---|"
    cpu = "as its ops" if on_gpu(row, gpu) == "as its ops" else "kernel"
    yield cells(row.dtypes, row.numeric_class, row.gradient, cpu, on_gpu(row, gpu)) + "\n"
    if row.name in MEMBERS:
        names = ", ".join(n if " " in n else f"`{n}`" for n in MEMBERS[row.name].split(", "))
        yield f"Members of Tensor: {names}.\n"
    shown = [f for name in [row.name, *SERVES.get(row.name, [])] for f in functions if f[0] == name]
    if not shown and row.name not in MEMBERS:
        fail(f"no function of the headers serves {row.name}")
    for i, (_, signature, comment) in enumerate(shown):
        yield f"```cpp\n{signature}\n```\n"
        if i + 1 == len(shown) or shown[i + 1][2] != comment:
            yield wrapped(comment) + "\n"


INTRO = """# Ops

This page lists all ops of wick. `tools/ops_docs.py` generates it from [ops.def](../wick/op/ops.def), the public headers
and the backends' sources. To change it, edit those and run the tool.

All functions are in the namespace `wick` and are declared in `wick/tensor/ops.h` and the headers that it includes. Every
op accepts every layout: transposed, sliced, broadcast, strided, reversed and empty tensors. It accepts ranks 0 to 8, or
the ranks that its shapes name. The tensors of a call have the same dtype and device unless stated otherwise. Errors are
of type `wick::Error` with the text `op: what is wrong: operands: rule`.

**Dtypes.** {sets}

**Classes** define what results guarantee across backends and instruction sets: [numerics](design/numerics.md).

**Gradients.** {gradients}

**Devices.** Every op runs on every device. *kernel*: the op has kernels of its own. *as its ops*: the op is composed of
other ops.
"""


def page(root):
    rows, gpu = read_rows(root), read_gpu_methods(root)
    functions, macros = read_functions(root)
    known = {row.name for row in rows} | {name for names in SERVES.values() for name in names}
    strangers = sorted({f[0] for f in functions} - known)
    if strangers:
        fail("functions of no row; name them in SERVES: " + " ".join(strangers))
    sets, gradients = read_sets(root), read_gradients(root)
    used = [s for s in sets if any(row.dtypes == s for row in rows)]
    out = [INTRO.format(
        sets="\n".join(textwrap.wrap("; ".join(f"*{s}*: {' '.join(sets[s])}" for s in used) + ".", 110)),
        gradients="\n".join(textwrap.wrap("; ".join(f"*{g}*: {text}" for g, text in gradients.items()) + ".",
                                          110)))]
    for macro in KINDS:
        if macro == "UNARY_WITH":
            out.append(f"## {KINDS[macro][0]}\n")
            for row in rows:
                if row.macro == macro:
                    out.extend(by_hand(row, functions, gpu))
        else:
            out.extend(regular(rows, macro, macros, gpu))
    out.append("## Other ops\n")
    for row in rows:
        if row.macro == "OP":
            out.extend(by_hand(row, functions, gpu))
    out.extend(block_table(root))
    return "\n".join(out).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    text, path = page(options.root), options.root / PAGE
    if not options.check:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        fail(f"{PAGE} is stale: run tools/ops_docs.py")


if __name__ == "__main__":
    main()
