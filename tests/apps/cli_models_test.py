#!/usr/bin/env python3
"""Tests how the wick command finds models, what it takes from their files, and its notes. See cli.py."""
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import unittest

import cli
from cli import ARGS, Cli, main


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def entry(key, value):
    """A GGUF key with a string, a bool, an i32 or an f32."""
    if isinstance(value, bool):
        return string(key) + struct.pack("<I?", 7, value)
    if isinstance(value, str):
        return string(key) + struct.pack("<I", 8) + string(value)
    if isinstance(value, int):
        return string(key) + struct.pack("<Ii", 5, value)
    return string(key) + struct.pack("<If", 6, value)


def with_keys(model, path, keys, prefix="general.sampling."):
    """Copies a GGUF file with additional keys. The header grows by a multiple of the alignment."""
    data = pathlib.Path(model).read_bytes()
    version, tensors, count = struct.unpack("<IQQ", data[4:24])
    added = b"".join(entry(prefix + key, value) for key, value in keys.items())
    added += entry("test.padding", "x" * (-len(added + entry("test.padding", "")) % 32))
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", version, tensors, count + len(keys) + 1) + added + data[24:])
    return str(path)


def write_adapter(folder, layers, rows, columns):
    """A PEFT adapter of the query projections, with factors of ones and halves."""
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM"}))
    head, data = {}, b""
    for layer in range(layers):
        for factor, shape in (("A", [1, columns]), ("B", [rows, 1])):
            values = struct.pack(f"<{max(shape)}f", *([1.0, 0.5] * max(shape))[:max(shape)])
            name = f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{factor}.weight"
            head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
    text = json.dumps(head).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


class AdapterScales(Cli):
    def test_perplexity(self):
        """A scale changes the scores as it changes the adapter; 0 is as no adapter."""
        inspected = json.loads(self.ok("inspect", self.model, "--json")[0])
        shapes = {tensor["name"]: tensor["shape"] for tensor in inspected["tensors"]}
        layers = sum(name.endswith("attn_q.weight") for name in shapes)
        adapter = write_adapter(self.folder / "adapter", layers, *shapes["blk.0.attn_q.weight"])
        text = self.folder / "scored"
        text.write_text("the hat and the can and the hat")
        scores = [json.loads(self.ok("perplexity", "-m", self.model, "-f", str(text), "--json", *lora)[0])["mean_nll"]
                  for lora in ([], *(["--lora", f"{adapter}={scale}"] for scale in (0, 1, 2)))]
        self.assertEqual(scores[0], scores[1])
        self.assertEqual(len(set(scores)), 3)


class ModelNames(Cli):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cache = cls.folder / "cache"
        cls.models = cls.cache / "wick" / "models"
        cls.models.mkdir(parents=True)
        shutil.copy(cls.model, cls.models / "tiny.Q8.gguf")
        cls.env = {"XDG_CACHE_HOME": str(cls.cache)}
        cls.text = cls.folder / "text"
        cls.text.write_text("the hat and the can")

    def commands(self, name):
        return [["generate", "-m", name, "-p", "the", "-n", "2"], ["chat", "-m", name],
                ["bench", "-m", name, "-p", "4", "-n", "2", "-r", "1"],
                ["perplexity", "-m", name, "-f", str(self.text)], ["embed", "-m", name, "the"],
                ["tokenize", "-m", name, "-p", "the"], ["inspect", name],
                ["quantize", name, str(self.folder / "out.gguf"), "f16"]]

    def test_names_in_the_cache(self):
        for name in ["tiny.Q8", "tiny.Q8.gguf"]:
            for args in self.commands(name):
                self.ok(*args, env=self.env)
        home = self.folder / "home"
        (home / ".cache").mkdir(parents=True)
        (home / ".cache" / "wick").symlink_to(self.cache / "wick")
        for cache in ["", "relative"]:
            self.ok("inspect", "tiny.Q8", env={"XDG_CACHE_HOME": cache, "HOME": str(home)})

    def test_the_working_directory_wins(self):
        other = self.folder / "here"
        other.mkdir()
        shutil.copy(self.folder / "tiny-f32.gguf", other / "tiny.Q8")
        out = subprocess.run([ARGS.wick, "inspect", "tiny.Q8"], cwd=other, env={**os.environ, **self.env},
                             capture_output=True, check=True, timeout=60).stdout
        self.assertIn(b"f32[40,64]", out)
        (other / "tiny.Q8").unlink()
        (other / "tiny.Q8").mkdir()
        done = subprocess.run([ARGS.wick, "inspect", "tiny.Q8"], cwd=other, env={**os.environ, **self.env},
                              capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"config.json", done.stderr)

    def test_names_that_are_nowhere(self):
        for args in self.commands("missing"):
            self.fails(*args, env=self.env, says="model: No such file or folder: 'missing': looked in the working "
                       f"directory and in {self.models}, which has tiny.Q8.gguf")
        self.fails("inspect", "./tiny.Q8", env=self.env, says="No such file")
        self.fails("inspect", "two\nlines", env=self.env, says=r"'two\nlines'")
        many = self.folder / "many" / "wick" / "models"
        many.mkdir(parents=True)
        self.fails("inspect", "x", env={"XDG_CACHE_HOME": str(self.folder / "many")}, says=f"{many}, which has no models")
        for i in range(40):
            (many / f"model {i:02}\n.gguf").touch()
        (many / "notes.txt").touch()
        text = self.fails("inspect", "x", env={"XDG_CACHE_HOME": str(self.folder / "many")},
                          says=r"which has model 00\n.gguf, model 01\n.gguf, ")
        self.assertTrue(text.endswith(r"model 09\n.gguf and 30 more" + "\n"), text)
        self.fails("inspect", "x", env={"XDG_CACHE_HOME": "", "HOME": ""}, says="the user's cache, which isn't known")


class Recommended(Cli):
    """Options of sampling that a model's file recommends."""

    def generate(self, model, *args, warns=()):
        return self.json("generate", "-m", model, "-p", "the hat", "-n", "16", "--ignore-eos", *args, warns=warns)["tokens"]

    def test_recommended_options(self):
        model = with_keys(self.model, self.folder / "own.gguf", {
            "temp": 2.5, "top_k": 7, "top_p": 0.9, "min_p": 0.01, "penalty_repeat": 1.5, "penalty_last_n": 9,
            "sequence": "top_k;typ_p;temperature", "xtc_probability": 0.5, "xtc_threshold": 0.2})
        plain = self.generate(self.model)
        own = self.generate(model)
        self.assertNotEqual(own, plain)
        given = ["--temp", "2.5", "--top-k", "7", "--top-p", "0.9", "--min-p", "0.01", "--repetition-penalty", "1.5",
                 "--penalty-window", "9", "--samplers", "top_k,typical_p,temperature", "--xtc-probability", "0.5",
                 "--xtc-threshold", "0.2"]
        self.assertEqual(self.generate(self.model, *given), own)
        # Given options win, also with wick's default values.
        usual = ["--temp", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05", "--repetition-penalty", "1",
                 "--penalty-window", "64", "--xtc-probability", "0", "--samplers",
                 "penalties,dry,top_n_sigma,top_k,typical_p,top_p,min_p,xtc,temperature"]
        self.assertEqual(self.generate(model, *usual), plain)

    def test_what_is_shown(self):
        model = with_keys(self.model, self.folder / "shown.gguf", {"temp": 0.5, "top_k": 7})
        says = "(the model file recommends temperature top_k)"
        _, err = self.ok("chat", "-m", model, stdin="/params\n")
        self.assertIn("temperature=0.5 top_k=7 top_p=0.95", err)
        self.assertIn(says, err)
        _, err = self.ok("chat", "-m", model, "--temp", "1", stdin="/params\n")
        self.assertIn("temperature=1 top_k=7 ", err)
        self.assertIn("(the model file recommends top_k)", err)
        _, err = self.ok("chat", "-m", self.model, stdin="/params\n")
        self.assertNotIn("recommends", err)
        _, err = self.ok("generate", "-m", model, "-p", "the", "-n", "1", "-v")
        self.assertRegex(err, r"sampling: temperature=0.5 top_k=7 .*" + re.escape(says))

    def test_bad_values(self):
        bad = {"temp": -1.0, "top_k": "many", "top_p": float("nan"), "min_p": 7, "sequence": "top_k;none", "mirostat": 3}
        model = with_keys(self.model, self.folder / "bad.gguf", {**bad, "penalty_last_n": 5})
        warns = [rf".*bad\.gguf: general\.sampling\.{key} = .* is ignored: "
                 for key in ["temp", "top_k", "top_p", "min_p", "mirostat", "sequence"]]
        self.assertEqual(self.generate(model, warns=warns), self.generate(self.model))

    def test_a_folder(self):
        subprocess.run([cli.ARGS.tiny_writer, "--files", str(self.folder)], check=True, timeout=60)
        folder = self.folder / "qwen3"
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        (folder / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "decoder": level,
            "post_processor": None,
            "model": {"type": "BPE", "vocab": {chr(ord("0") + i): i for i in range(40)}, "merges": []}}))
        (folder / "generation_config.json").write_text(json.dumps(
            {"temperature": 0.25, "top_k": 3, "top_p": "high", "min_p": 1e300, "repetition_penalty": [1]}))
        _, err = self.ok("generate", "-m", str(folder), "-p", "0", "-n", "1", "-v")
        self.assertRegex(err, r"sampling: temperature=0.25 top_k=3 top_p=0.95 .*recommends temperature top_k\)")
        self.assertEqual(err.count("is ignored"), 3, err)
        self.assertIn(f'{folder}/generation_config.json: top_p = "high" is ignored: wrong type string: need a number', err)
        self.assertIn('repetition_penalty = ["1"] is ignored: wrong type array of string: need a number', err)


class Verbose(Cli):
    def test_lines(self):
        text = self.folder / "text"
        text.write_text("the hat and the can")
        common = [r"device cpu; CPU kernels of v[\w-]+, 1 threads", r"mapped model .*tiny-q8_0\.gguf: GGUF version 3, "
                  r"[\d.]+ MB, architecture llama", r"loaded [\d.]+ M parameters and 0 adapters: cpu: 2 of 2 layers, "]
        session = [r"read a vocabulary of 40 tokens", r"cache of \d+ positions in f16, at most [\d.]+ MB",
                   r"sampling: temperature=", r"ran a prompt of \d+ tokens in [\d.]+ ms",
                   r"first token after [\d.]+ ms", r"generated \d+ tokens in ", r"memory: at most "]
        for args, stdin, says in [
                (["generate", "-p", "the", "-n", "3", "-t", "1"], "", common + session),
                (["chat", "-n", "3", "-t", "1"], "hat\n", common + session),
                (["bench", "-p", "4", "-n", "2", "-r", "2", "-t", "1"], "",
                 [common[1], common[2], r"pp4 with 1 threads, run 1: [\d.]+ tokens/s", "tg2 with 1 threads, run 2: ",
                  "memory: "]),
                (["perplexity", "-f", str(text), "-t", "1"], "", [*common, "memory: "]),
                (["embed", "the", "-t", "1"], "", [*common, "memory: "])]:
            for verbose in (["-v"], ["--verbose"], []):
                plain = [args[0], "-m", self.model, "--device", "cpu", *args[1:], *verbose]
                out, err = self.ok(*plain, stdin=stdin)
                lines = [line for line in err.splitlines() if line.startswith("[")]
                if not verbose:
                    self.assertEqual(lines, [], args)
                    continue
                times = [float(re.fullmatch(r"\[ *(\d+\.\d{3}) s\] .*", line)[1]) for line in lines]
                self.assertEqual(times, sorted(times))
                for words in says:
                    self.assertRegex(err, rf"(?m)^\[ *\d+\.\d{{3}} s\] {words}", args)
                self.assertNotIn("[  ", out)


    def test_lines_and_text_in_one_place(self):
        """Notes begin a line of their own where the text and they go to one pipe or file."""
        out = self.folder / "both"
        for sink in [subprocess.PIPE, open(out, "wb")]:
            done = subprocess.run([ARGS.wick, "generate", "-m", self.model, "-p", "the", "-n", "5", "--ignore-eos", "-v"],
                                  stdout=sink, stderr=subprocess.STDOUT, timeout=60, check=True)
            text = (done.stdout or out.read_bytes()).decode()
            self.assertGreater(text.count(" s] "), 5)
            for line in text.splitlines():
                self.assertNotRegex(line, r".\[ *\d+\.\d{3} s\] ", text)
            self.assertRegex(text, r"(?m)^the$")
            if sink != subprocess.PIPE:
                sink.close()


class Sessions(Cli):
    def setUp(self):
        self.file = str(self.folder / "s.session")

    def generate(self, *args, model=None, **kwargs):
        return self.json("generate", "-m", model or self.model, "--ignore-eos", *args, **kwargs)["tokens"]

    def test_going_on(self):
        for options in [["--temp", "0"], ["--seed", "5", "--temp", "1.5"], ["--seed", "5", "--mirostat", "2"]]:
            whole = self.generate("-p", "the hat", "-n", "20", *options)
            first = self.generate("-p", "the hat", "-n", "8", *options, "--save-session", self.file)
            rest = self.generate("--load-session", self.file, "-n", "12")
            self.assertEqual(first + rest, whole, options)
        out, err = self.ok("generate", "-m", self.model, "--load-session", self.file, "-n", "0")
        self.assertEqual(out, "\n")
        self.assertIn("prompt 0 tokens, 0.0 tokens/s", err)

    def test_more_text(self):
        options = ["-n", "9", "--temp", "0"]
        whole = self.generate("-p", "the hat and", *options)
        self.generate("-p", "the hat", "-n", "0", "--save-session", self.file)
        report = self.json("generate", "-m", self.model, "--ignore-eos", "--load-session", self.file, "-p", " and", *options)
        self.assertEqual(report["tokens"], whole)
        self.assertLess(report["prompt_tokens"], 6)
        # A session can be saved over the file that it was loaded from.
        self.generate("--load-session", self.file, "-p", " and", "-n", "0", "--save-session", self.file)
        self.assertEqual(self.generate("--load-session", self.file, *options), whole)

    def test_sessions_that_dont_fit(self):
        self.generate("-p", "the hat and the can", "-n", "4", "--save-session", self.file)
        load = ["--load-session", self.file, "-n", "2"]
        self.fails("generate", "-m", str(self.folder / "tiny-q4_0.gguf"), *load,
                   says=f"{self.file}: session of another model or adapters: tiny-q8_0.gguf (")
        self.fails("generate", "-m", self.model, *load, "--ctx", "8", says="session longer than the context: ")
        self.fails("generate", "-m", self.model, *load, "--cache-type", "f32", says="session with another cache type: f16")
        self.fails("generate", "-m", self.model, *load, "--chat", "-p", "a", says="--chat: doesn't go on with a session")
        self.fails("generate", "-m", self.model, "--load-session", self.model, says="not a session")
        self.fails("generate", "-m", self.model, "--load-session", str(self.folder / "none"), says="No such file")
        data = pathlib.Path(self.file).read_bytes()
        cut = self.folder / "cut.session"
        for size in [0, 10, 100, 1000, len(data) // 2, len(data) - 1]:
            cut.write_bytes(data[:size])
            self.fails("generate", "-m", self.model, "--load-session", str(cut), says="cut.session")
        self.fails("inspect", str(cut), says="cut.session")
        self.ok("inspect", self.file)
        self.fails("generate", "-m", self.model, "-p", "the", "-n", "1", "--save-session", "/no/such/file",
                   says="/no/such/file: cannot write: no such folder")
        # What fails later doesn't cost the report.
        limit = 4096
        code, out, err = cli.wick("generate", "-m", self.model, "-p", "the", "-n", "1", "--json", "--save-session",
                                  str(self.folder / "large.session"),
                                  before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(code, 2)
        self.assertEqual(len(json.loads(out)["tokens"]), 1)
        self.assertIn(b"large.session: File too large", err)

    def test_files_that_cant_be_written_are_found_first(self):
        run = ["generate", "-m", self.model, "-p", "the", "-n", "1", "--save-session"]
        loop = self.folder / "loop"
        loop.symlink_to("loop")
        for path, says in [(self.folder, "Is a directory"), ("/dev/null", "Not a regular file"),
                           (f"{self.folder}/new/", "no such folder"), (f"{self.model}/x", "no such folder"),
                           (loop, "symbolic link to a file that isn't there"), ("x" * 300, "File name too long")]:
            self.fails(*run, str(path), says=says)
        closed = self.folder / "closed"
        closed.mkdir(mode=0o500)
        if not os.access(closed, os.W_OK):  # root may write everywhere
            self.fails(*run, str(closed / "s.session"), says="Permission denied")
        files = sorted(self.folder.iterdir())
        self.fails("generate", "-m", "/none", "-p", "the", "--save-session", self.file, says="/none")
        self.assertEqual(sorted(self.folder.iterdir()), files)

    def test_without_a_text_nothing_is_appended(self):
        for key, value in [("tokenizer.ggml.add_eos_token", True), ("tokenizer.ggml.add_bos_token", True)]:
            model = with_keys(self.model, self.folder / "eos.gguf", {key: value}, prefix="")
            first = self.json("generate", "-m", model, "-p", "the hat", "-n", "5", "--temp", "0", "--ignore-eos",
                              "--save-session", self.file)
            self.assertEqual(first["prompt_tokens"], len(self.json("tokenize", "-m", model, "-p", "the hat")["tokens"]))
            whole = self.generate("-p", "the hat", "-n", "9", "--temp", "0", model=model)
            for text in [[], ["-p", ""], ["-f", "-"]]:
                rest = self.json("generate", "-m", model, "--load-session", self.file, "-n", "4", "--ignore-eos", *text)
                self.assertEqual(rest["prompt_tokens"], 0)
                self.assertEqual(first["tokens"] + rest["tokens"], whole)

    def test_outputs_that_are_inputs(self):
        text, adapter = self.folder / "text.txt", self.folder / "adapter"
        text.write_text("the hat")
        adapter.mkdir()
        for name in ["adapter_config.json", "adapter_model.safetensors"]:
            (adapter / name).write_text("{}")
        subprocess.run([cli.ARGS.tiny_writer, "--files", str(self.folder)], check=True, timeout=60)
        part, other_part = [str(self.folder / f"tiny-0000{i}-of-00003.gguf") for i in (1, 2)]
        (self.folder / "link").symlink_to(self.model)
        os.link(self.model, self.folder / "hard")
        config = self.folder / "qwen3" / "config.json"
        for model, out, given in [
                (self.model, self.model, self.model), (self.model, self.folder / "link", self.model),
                (self.model, self.folder / "hard", self.model),
                (self.model, f"{self.folder}/./tiny-q8_0.gguf", self.model), (self.model, text, text),
                (part, other_part, other_part), (self.folder / "qwen3", config, config),
                (self.model, adapter / "adapter_config.json", adapter / "adapter_config.json")]:
            before = pathlib.Path(out).read_bytes()
            both = f"{given} and {out}" if str(given) != str(out) else str(out)
            says = f"--save-session: input and output are the same file: {both}\n"
            self.fails("generate", "-m", str(model), "-f", str(text), "-n", "1", "--lora", str(adapter),
                       "--save-session", str(out), says=says)
            self.assertEqual(pathlib.Path(out).read_bytes(), before)
        for out in [self.model, str(self.folder / "hard"), other_part]:
            before = pathlib.Path(out).read_bytes()
            model = part if out == other_part else self.model
            self.fails("chat", "-m", model, stdin=f"/save {out}\n", says="/save: input and output are the same file: ")
            self.assertEqual(pathlib.Path(out).read_bytes(), before)

    def test_given_options_replace_saved_ones(self):
        """The others are the saved ones, and the draws go on unless the seed is given."""
        saved = {"--temp": "1.5", "--top-k": "9", "--seed": "5", "--logit-bias": "3=1.5", "--dry-multiplier": "0.5",
                 "--samplers": "dry,top_k,temperature"}
        load = ["--load-session", self.file, "-n", "12"]
        self.generate("-p", "the hat", "-n", "6", *[word for pair in saved.items() for word in pair],
                      "--save-session", self.file)
        results = [self.generate(*load)]
        for name, value in [("--seed", "7"), ("--temp", "0.7"), ("--top-k", "3"), ("--samplers", "top_k,temperature"),
                            ("--logit-bias", "4=9"), ("--dry-breaker", "a"), ("--mirostat", "2")]:
            results.append(self.generate(*load, name, value))
            all_given = {**saved, name: value}
            if name != "--seed":
                del all_given["--seed"]
            expected = self.generate(*load, *[word for pair in all_given.items() for word in pair])
            self.assertEqual(results[-1], expected, (name, value))
        self.assertGreater(len({tuple(tokens) for tokens in results}), 4)
        self.assertEqual(self.generate(*load), results[0])

    def test_damaged_files(self):
        self.generate("-p", "the hat and the can", "-n", "4", "--save-session", self.file)
        data = pathlib.Path(self.file).read_bytes()
        bad = self.folder / "bad.session"
        for at in [len(data) - 1, len(data) - 32, len(data) - 100, len(data) // 2, len(data) // 4]:
            bad.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:])
            self.fails("generate", "-m", self.model, "--load-session", str(bad), "-n", "1",
                       says=f"{bad}: the session file is damaged")
            self.fails("chat", "-m", self.model, stdin=f"/load {bad}\n", says=f"{bad}: the session file is damaged")

    def test_files_of_other_kinds(self):
        self.generate("-p", "the", "-n", "1", "--save-session", self.file)
        out = str(self.folder / "no.gguf")
        for args in [["generate", "-m", self.file, "-p", "a"], ["quantize", self.file, out, "q8_0"],
                     ["bench", "-m", self.file], ["tokenize", "-m", self.file, "-p", "a"]]:
            self.fails(*args, says=f"{self.file}: not a model: it is a saved session")
        self.assertFalse(os.path.exists(out))
        self.ok("inspect", self.file)

    def test_notes(self):
        _, err = self.ok("generate", "-m", self.model, "-p", "the", "-n", "1", "--save-session", self.file, "-v")
        self.assertRegex(err, rf"(?m)^\[.* s\] saved session {self.file}: \d+ tokens, [\d.]+ MB, [\d.]+ ms$")
        _, err = self.ok("generate", "-m", self.model, "--load-session", self.file, "-n", "1", "-v")
        self.assertRegex(err, rf"(?m)^\[.* s\] loaded session {self.file}: \d+ tokens, [\d.]+ MB, [\d.]+ ms$")

    def test_chat(self):
        options = ["-m", self.model, "-n", "6", "--temp", "0"]
        whole, _ = self.ok("chat", *options, stdin="the hat\nthe can\n")
        first, err = self.ok("chat", *options, stdin=f"the hat\n/save {self.file}\n")
        self.assertIn("(2 messages saved)", err)
        rest, err = self.ok("chat", *options, "-v", stdin=f"/load {self.file}\nthe can\n")
        self.assertEqual(first + rest, whole)
        self.assertIn("(2 messages loaded)", err)
        ran = int(re.search(r"ran a prompt of (\d+) tokens", err)[1])
        _, err = self.ok("chat", *options, "-v", stdin="the hat\nthe can\n")
        # Only the second message runs, as in the first conversation.
        self.assertEqual(ran, int(re.findall(r"ran a prompt of (\d+) tokens", err)[1]))
        json_file = self.folder / "s.json"
        drawn = ["-m", self.model, "-n", "6", "--temp", "1.5"]
        whole, _ = self.ok("chat", *drawn, stdin="the hat\nthe can\n")
        for file in [self.file, str(json_file)]:
            first, _ = self.ok("chat", *drawn, stdin=f"the hat\n/save {file}\n")
            rest, _ = self.ok("chat", *drawn, stdin=f"/load {file}\nthe can\n")
            self.assertEqual(first + rest, whole)
        self.ok("chat", *options, stdin=f"/load {self.file}\n/save {json_file}\n")
        self.assertEqual(json.loads(json_file.read_text())["messages"][0], {"role": "user", "content": "the hat"})
        self.generate("-p", "the", "-n", "1", "--save-session", self.file)
        self.fails("chat", *options, stdin=f"/load {self.file}\n", says=f"{self.file}: session without a conversation")
        self.ok("chat", *options, stdin=f"the hat\n/save {self.file}\n")
        self.fails("chat", "-m", str(self.folder / "tiny-q4_0.gguf"), stdin=f"/load {self.file}\n", says="session of another model")


class Completion(Cli):
    def script(self, shell):
        return self.ok("completion", shell)[0]

    def complete(self, line, env=None):
        """The words that bash completes the end of a line to."""
        words = line.split(" ")
        quoted = " ".join("'" + word + "'" for word in words)
        command = (f"source <('{ARGS.wick}' completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                   "_wick; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, check=True, timeout=60,
                              env={**os.environ, **(env or {})})
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split("\n")[:-1]

    def test_bash(self):
        self.assertEqual(sorted(self.complete("wick ")), sorted([*cli.COMMANDS, "--help", "--version"]))
        self.assertEqual(self.complete("wick per"), ["perplexity"])
        self.assertEqual(self.complete("wick generate --load"), ["--load-session"])
        self.assertEqual(sorted(self.complete("wick help ch")), ["chat"])
        self.assertEqual(self.complete("wick completion "), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete("wick chat --device c"), ["cpu", "cuda:0"])
        self.assertEqual(self.complete("wick bench --cache-type b"), ["bf16"])
        self.assertEqual(self.complete("wick bench --cache-type = b"), ["bf16"])
        self.assertEqual(sorted(self.complete("wick bench --cache-type =")), ["bf16", "f16", "f32", "q4_0", "q8_0"])
        self.assertEqual(self.complete("wick generate --top-k "), [""])
        # Bash splits words at = and :, and replaces what follows the last of them.
        for line, words in [("--device cuda :", ["0"]), ("--device cuda : 0", ["0"]), ("--device = cuda :", ["0"]),
                            ("--device = c", ["cpu", "cuda:0"]), ("--gpu-layers a", ["auto", "all"]),
                            ("--cpu-experts = a", ["auto", "all"]), ("--device=c", ["--device=cpu", "--device=cuda:0"]),
                            ("-m = tiny-q4_0", [""]), ("-m=tiny-q4_0", [""]), ("--model = tiny-q4_0", ["tiny-q4_0.gguf"]),
                            ("--device cuda : 0 --gpu", ["--gpu-layers"])]:
            self.assertEqual(self.complete("wick generate " + line), words, line)
        for option in ["--threads = 2", "--threads=2", "--threads 2", "--tensor-type a = q8_0", "-t2"]:
            self.assertEqual(self.complete(f"wick quantize {option} a.gguf b.gguf q6"), ["q6_k"], option)
            self.assertEqual(self.complete(f"wick quantize {option} tiny-q4_0"), ["tiny-q4_0.gguf"], option)
        self.assertEqual(self.complete("wick nothing "), [""])
        for line in ["wick generate -m tiny-q4_0", "wick inspect tiny-q4_0", "wick chat --lora tiny-q4_0",
                     "wick generate -p x --load-session tiny-q4_0", "wick perplexity -f tiny-q4_0",
                     "wick imatrix -f tiny-q4_0", "wick imatrix --output tiny-q4_0",
                     "wick quantize -t 2 tiny-f32.gguf tiny-q4_0"]:
            self.assertEqual(self.complete(line), ["tiny-q4_0.gguf"], line)
        self.assertIn("q4_0", self.complete("wick quantize --json a.gguf b.gguf q"))
        self.assertEqual(self.complete("wick quantize -t 2 a.gguf b.gguf q6"), ["q6_k"])
        self.assertEqual(sorted(self.complete("wick quantize a.gguf b.gguf q4_k")), ["q4_k", "q4_k_m", "q4_k_s"])
        self.assertEqual(self.complete("wick quantize a.gguf b.gguf q6_k "), [""])
        # All types that quantize takes, in the order of its help.
        out, _ = self.ok("quantize", "--help")
        types = re.search(r"TYPE is one of ([^.]*)\.", out)[1].replace(" or ", ", ").replace("\nor ", ", ")
        self.assertEqual(self.complete("wick quantize a.gguf b.gguf "), re.split(r",\s+", types))
        self.assertEqual(self.complete("wick quantize a.gguf b.gguf q4_k_"), ["q4_k_m", "q4_k_s"])
        for option in ["--output-type", "--token-embedding-type"]:
            self.assertEqual(self.complete(f"wick quantize {option} q6"), ["q6_k"])
            self.assertEqual(self.complete(f"wick quantize {option} q4_k"), ["q4_k"])  # mixtures aren't dtypes
            for word in self.complete(f"wick quantize {option} "):
                self.fails("quantize", option, word, "/none", "/none/x", "q8_0", says="/none: ")

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh(self):
        """Calls the autoloaded function for the first and the second time, with stand-ins for the functions that it
        calls."""
        (self.folder / "_wick").write_text(self.script("zsh"))
        stand_ins = ("_describe() { print -rl -- ${(P)2} }; _arguments() { print -rl -- $words[1] \"$@\" }; "
                     "compdef() { print defined }")
        command = stand_ins + """
            fpath=(.); autoload -Uz _wick
            for once in 1 2; do words=(wick ''); CURRENT=2; _wick; print end; done
            words=(wick quantize ''); CURRENT=3; _wick; print end
            source ./_wick"""
        done = subprocess.run(["zsh", "-f", "-c", command], cwd=self.folder, capture_output=True, check=True, timeout=60)
        self.assertEqual(done.stderr, b"")
        first, second, options, sourced = done.stdout.decode().split("end\n")
        self.assertEqual([line.split(":")[0] for line in first.splitlines()], cli.COMMANDS)
        self.assertEqual(second, first)
        self.assertEqual(options.splitlines()[:2], ["quantize", "-s"])
        self.assertIn("3:word:(f32 f16 bf16 ", options)
        self.assertEqual(sourced, "defined\n")

    def test_names_with_blanks_and_the_cache(self):
        models = self.folder / "cache" / "wick" / "models"
        models.mkdir(parents=True)
        (models / "my model.gguf").touch()
        (self.folder / "my file").touch()
        env = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        self.assertEqual(self.complete("wick generate -m my", env=env), ["my file", "my model.gguf"])
        self.assertEqual(self.complete("wick generate -f my", env=env), ["my file"])

    def test_all_options_are_in_all_scripts(self):
        shells = {shell: self.script(shell) for shell in ["bash", "zsh", "fish"]}
        for command in cli.COMMANDS:
            out, _ = self.ok(command, "--help")
            for option in set(re.findall(r"(?<=[ ,])--[a-z][a-z0-9-]*(?=[ ,]|$)", out)):
                offered = self.complete(f"wick {command} {option}")
                if option in offered:
                    self.assertIn(f"{option}", shells["zsh"], command)
                    self.assertIn(f"-l {option[2:]} ", shells["fish"], command)
            listed = set(re.findall(r"(?m)^  (?:-[a-z], *)?(--[a-z0-9-]+)", out))
            self.assertLessEqual(listed, set(self.complete(f"wick {command} -")), command)
        for shell, check in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")]:
            if shutil.which(shell):
                subprocess.run([shell, check], input=shells[shell].encode(), check=True, timeout=60)

    def test_bad_input(self):
        self.fails("completion", "tcsh", says="completion: no such shell: 'tcsh': use bash, zsh or fish")
        self.fails("completion", says="SHELL")
        self.fails("completion", "bash", "zsh", says="zsh")


if __name__ == "__main__":
    sys.exit(main())
