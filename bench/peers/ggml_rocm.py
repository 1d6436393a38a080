#!/usr/bin/env python3
"""Runs whisper.cpp and stable-diffusion.cpp, as ROCm's build of PyPI's wheel `inferna-rocm` has them, on small random models:
ggml_rocm.py --library FILE, with FILE such as build/emu/lib/libamdhip64.so.6.

Each runs on ggml's CPU backend and on the GPU of FILE, the emulator's HIP runtime, and prints "ok NAME" if the results agree, else
"bad NAME: why"; without a Python for the wheel's modules, "skipped NAME: why". whisper.cpp: a second of sound, and four greedy
tokens with their logits. stable-diffusion.cpp: its ESRGAN upscaler on an image of 8 x 8 pixels; its diffusion models have fixed
sizes of a gigabyte and more. The modules need Python 3.12 or 3.13, which is looked for, and NumPy, which pip fetches into the
cache. Exits with 77 if PyPI can't be reached.
"""

import argparse
import array
import importlib
import json
import math
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_rocm
from rocm import options, wheels
from rocm.processes import call, guarded

# Names, and the arguments of run_whisper() and run_esrgan().
TESTS = [("whisper.cpp", "whisper", False), ("whisper.cpp with flash attention", "whisper", True),
         ("stable-diffusion.cpp, ESRGAN", "esrgan", False),
         ("stable-diffusion.cpp, ESRGAN with direct convolutions", "esrgan", True)]
# A logit may differ by this part of the logits' deviation, and a byte of a pixel by this: both backends round to f16, and add
# in different orders.
LOGIT, PIXEL = 0.01, 2


def find_python():
    """An interpreter that the modules run in, and its version; None if there is none."""
    names = [shutil.which(f"python3.{minor}") for minor in (12, 13)]
    names += sorted(Path.home().glob(".pyenv/versions/3.1[23].*/bin/python3"))
    for name in [sys.executable, *filter(None, names)]:
        done = subprocess.run([str(name), "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True,
                              check=False)
        if done.stdout.strip() in ("12", "13"):
            return str(name), f"3.{done.stdout.strip()}"
    return None, None


class Random:
    """Tensors of a generator with a fixed seed."""

    def __init__(self, numpy, seed):
        self.numpy, self.generator = numpy, numpy.random.default_rng(seed)

    def normal(self, shape, deviation, mean=0.0):
        return (mean + deviation * self.generator.standard_normal(shape)).astype(self.numpy.float32)


class WhisperFile:
    """whisper.cpp's file of a random model: hyper-parameters, mel filters, a vocabulary and tensors of f16 or f32."""

    WIDTH, LAYERS, HEADS, SOUND, TEXT, VOCABULARY, MELS, BINS = 64, 2, 2, 60, 32, 51864, 80, 201

    def __init__(self, path, numpy):
        self.numpy, self.random = numpy, Random(numpy, 1)
        with open(path, "wb") as self.file:
            self.head()
            self.ends("encoder", self.SOUND)
            self.ends("decoder", self.TEXT)
            for side in ("encoder", "decoder"):
                for layer in range(self.LAYERS):
                    self.block(f"{side}.blocks.{layer}.", ("attn",) if side == "encoder" else ("attn", "cross_attn"))

    def head(self):
        model = (self.WIDTH, self.HEADS, self.LAYERS)
        self.file.write(struct.pack("<I11i", 0x67676d6c, self.VOCABULARY, self.SOUND, *model, self.TEXT, *model, self.MELS, 1))
        self.file.write(struct.pack("<2i", self.MELS, self.BINS))
        self.file.write((0.02 * self.random.generator.random((self.MELS, self.BINS))).astype("<f4").tobytes())
        words = [b"word%d" % i for i in range(100)]  # whisper.cpp adds the others
        self.file.write(struct.pack("<i", len(words)))
        for word in words:
            self.file.write(struct.pack("<I", len(word)) + word)

    def tensor(self, name, values, half=False):
        name, shape = name.encode(), values.shape[::-1]
        self.file.write(struct.pack(f"<{3 + len(shape)}i", len(shape), len(name), int(half), *shape) + name)
        self.file.write(values.astype("<f2" if half else "<f4").tobytes())

    def weight(self, name, *shape, gain=1.0):
        self.tensor(name + ".weight", self.random.normal(shape, gain / math.sqrt(math.prod(shape[1:]))), half=True)

    def vector(self, name, *shape, mean=0.0):
        self.tensor(name, self.random.normal(shape, 0.05, mean))

    def norm(self, name):
        self.vector(name + ".weight", self.WIDTH, mean=1.0)
        self.vector(name + ".bias", self.WIDTH)

    def ends(self, side, positions):
        self.tensor(side + ".positional_embedding", self.random.normal((positions, self.WIDTH), 0.5))
        if side == "decoder":
            self.weight("decoder.token_embedding", self.VOCABULARY, self.WIDTH, gain=4.0)
            self.norm("decoder.ln")
            return
        for name, channels in (("conv1", self.MELS), ("conv2", self.WIDTH)):
            self.weight("encoder." + name, self.WIDTH, channels, 3)
            self.vector(f"encoder.{name}.bias", self.WIDTH, 1)
        self.norm("encoder.ln_post")

    def block(self, at, attentions):
        for name in attentions:
            self.norm(f"{at}{name}_ln")
            for part in ("query", "key", "value", "out"):
                self.weight(f"{at}{name}.{part}", self.WIDTH, self.WIDTH)
                if part != "key":
                    self.vector(f"{at}{name}.{part}.bias", self.WIDTH)
        self.norm(at + "mlp_ln")
        for name, rows, columns in (("mlp.0", 4 * self.WIDTH, self.WIDTH), ("mlp.2", self.WIDTH, 4 * self.WIDTH)):
            self.weight(at + name, rows, columns)
            self.vector(f"{at}{name}.bias", rows)


def write_esrgan(path, numpy):
    """A random ESRGAN of two blocks, as safetensors: a network of residual dense blocks that enlarges images four times."""
    random, tensors, features, growth = Random(numpy, 2), {}, 64, 32

    def convolution(name, inputs, outputs, bias=0.0):
        tensors[name + ".weight"] = random.normal((outputs, inputs, 3, 3), 1 / math.sqrt(9 * inputs))
        tensors[name + ".bias"] = random.normal((outputs,), 0.02, bias)

    convolution("conv_first", 3, features)
    for block in range(2):
        for dense in range(1, 4):
            for i in range(1, 6):
                convolution(f"body.{block}.rdb{dense}.conv{i}", features + growth * (i - 1), growth if i < 5 else features)
    for name in ("conv_body", "conv_up1", "conv_up2", "conv_hr"):
        convolution(name, features, features)
    convolution("conv_last", features, 3, bias=0.5)
    head, at = {}, 0
    for name, values in tensors.items():
        head[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for values in tensors.values()))


def module(name):
    loaded = importlib.import_module(name)
    loaded.ggml_backend_load_all()
    return loaded


def run_whisper(folder, gpu, flash, numpy):
    """The greedy tokens of a sound, and the logits of each step."""
    WhisperFile(folder / "model.bin", numpy)
    whisper = module("inferna.whisper._whisper_native")
    parameters = whisper.WhisperContextParams()
    parameters.use_gpu, parameters.flash_attn = gpu, flash
    context = whisper.WhisperContext(str(folder / "model.bin"), parameters)
    sound = [0.3 * math.sin(i * 0.05) + 0.2 * math.sin(i * i * 1e-5) for i in range(16000)]
    context.pcm_to_mel(array.array("f", sound))
    context.encode(0)
    ids, logits = [context.token_sot()], []
    for past in range(4):
        context.decode(ids[-1:], past)
        logits.append(numpy.array(context.get_logits()))
        ids.append(int(logits[-1].argmax()))
    return {"ids": ids, "values": numpy.concatenate(logits)}


def run_esrgan(folder, gpu, direct, numpy):
    """The pixels of an enlarged image."""
    write_esrgan(folder / "model.safetensors", numpy)
    diffusion = module("inferna.sd._sd_native")
    upscaler = diffusion.Upscaler(str(folder / "model.safetensors"), direct, 1, 0, None if gpu else "cpu", None)
    pixels = [[[(x * 29 + y * 17 + c * 40) % 256 for c in range(3)] for x in range(8)] for y in range(8)]
    image = diffusion.SDImage.from_numpy(numpy.array(pixels, dtype=numpy.uint8))
    return {"ids": [], "values": upscaler.upscale(image, 0).to_numpy().astype(numpy.float32).ravel()}


def compare(kind, cpu, gpu, numpy):
    """What is wrong, or None."""
    values, others = cpu["values"], gpu["values"]
    if values.shape != others.shape or values.std() == 0 or not numpy.isfinite(values).all():
        return f"results of {values.shape} and {others.shape}, deviation {values.std()}"
    if cpu["ids"] != gpu["ids"]:
        return f"the CPU's tokens are {cpu['ids']}, the chip's {gpu['ids']}"
    difference = numpy.abs(values - others).max()
    limit = LOGIT * values.std() if kind == "whisper" else PIXEL
    return None if difference <= limit else f"the largest difference is {difference}, more than {limit}"


def inside(kind, option):
    """Runs a test on both backends and returns what is wrong, or None."""
    import numpy  # only in the process of its own
    results = []
    for gpu in (False, True):
        with tempfile.TemporaryDirectory(prefix="ggml-rocm-") as folder:
            work = run_whisper if kind == "whisper" else run_esrgan
            results.append(work(Path(folder), gpu, option, numpy))
    return compare(kind, *results, numpy)


def test(name, kind, option, library, python, env):
    command = [python, __file__, "--library", str(library), "--inside", kind, *(["--option"] if option else [])]
    with tempfile.TemporaryDirectory(prefix="ggml-rocm-") as folder:
        profile = Path(folder) / "profile.json"
        done = call(command, dict(env, WICK_EMU_PROFILE=str(profile)))
        kernels = json.loads(profile.read_text())["kernels"] if profile.is_file() else []
    said = (done.stdout + done.stderr).splitlines()
    faults = [line for line in said if line.startswith("wick-emu:")]
    if faults or done.returncode != 0:
        why = faults[0] if faults else f"status {done.returncode}: {said[-1] if said else ''}"
    elif not kernels:
        why = "the GPU ran no kernel"
    else:
        why = next((line.partition(" ")[2] for line in said if line.startswith("differ ")), None)
    print(f"bad {name}: {why}" if why else f"ok {name}", flush=True)
    return why is None


def main():
    parser = options.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=options.existing, required=True, help="the HIP runtime")
    parser.add_argument("--cache", type=Path, help="the folder of the wheels")
    parser.add_argument("--inside", choices=("whisper", "esrgan"), help=argparse.SUPPRESS)  # in the process of its own
    parser.add_argument("--option", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        why = inside(args.inside, args.option)
        if why:
            print(f"differ {why}")
        return 0
    python, version = find_python()
    if python is None:
        print("skipped whisper.cpp and stable-diffusion.cpp: there is no Python 3.12 or 3.13 on PATH")
        return 0
    numpy = wheels.unpacked(wheels.NUMPY[version], args.cache)
    with llama_rocm.environment(args.library, args.cache) as (wheel, env):
        env["PYTHONPATH"] = f"{numpy}:{wheel}"
        return 0 if all([test(*each, args.library, python, env) for each in TESTS]) else 1


if __name__ == "__main__":
    sys.exit(guarded("ggml_rocm", main))
