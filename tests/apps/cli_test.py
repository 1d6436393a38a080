#!/usr/bin/env python3
"""The wick command as users meet it, on tiny models with random weights; the class RealModel runs
on the model that WICK_TEST_MODEL names. Usage: cli_test.py --wick BINARY --tiny-writer BINARY
[--emulator LIBRARY] [--stand-in LIBRARY] [CLASS…]. Exits with 77 when all that was asked for had to
be skipped."""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

COMMANDS = ["generate", "chat", "bench", "perplexity", "tokenize", "inspect", "quantize", "devices"]
TYPES = ["f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q8_0", "q4_k", "q6_k"]
GENERATE_KEYS = ["prompt_tokens", "tokens", "text", "prompt_tps", "generate_tps", "load_ms",
                 "first_token_ms", "peak_bytes"]
ARGS = None


def wick(*args, env=None, stdin="", timeout=60, before=None):
    """Runs the command; texts are bytes, since that is what a terminal gets."""
    done = subprocess.run([ARGS.wick, *args], input=stdin.encode(), capture_output=True,
                          timeout=timeout, env={**os.environ, **(env or {})}, check=False,
                          preexec_fn=before)
    return done.returncode, done.stdout, done.stderr


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="wick-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([ARGS.tiny_writer, str(cls.folder)], check=True, timeout=60)
        cls.model = str(cls.folder / "tiny-q8_0.gguf")

    def ok(self, *args, **kwargs):
        code, out, err = wick(*args, **kwargs)
        self.assertEqual(code, 0, f"{args}: {err}")
        return out.decode(), err.decode()

    def json(self, *args, **kwargs):
        out, err = self.ok(*args, "--json", **kwargs)
        self.assertEqual(err, "", args)
        return json.loads(out)

    def fails(self, *args, says="", **kwargs):
        """Bad input: code 2, one line on stderr, nothing on stdout."""
        code, out, err = wick(*args, **kwargs)
        text = err.decode()
        self.assertEqual(code, 2, f"{args}: {text}")
        self.assertRegex(text, r"\Awick: [^\n]*\n\Z", args)
        self.assertIn(says, text, args)
        self.assertEqual(out, b"", args)
        return text


class Help(Cli):
    def test_help_of_all(self):
        out, _ = self.ok("--help")
        for command in COMMANDS:
            self.assertRegex(out, rf"\n  {command} +\w")
        self.assertIn("Examples:", out)

    def test_help_of_each(self):
        for command in COMMANDS:
            out, err = self.ok(command, "--help")
            self.assertEqual(err, "")
            self.assertIn(f"wick {command}", out)
            self.assertGreater(len(out.splitlines()), 5, command)

    def test_version(self):
        out, _ = self.ok("--version")
        self.assertRegex(out, r"\Awick \d+\.\d+\.\d+\n\Z")

    def test_unknown_command(self):
        text = self.fails("frobnicate", says="unknown command: 'frobnicate'")
        for command in COMMANDS:
            self.assertIn(f" {command}", text)
        self.fails("frobnicate", "--help", says="unknown command")
        self.fails("gen", "-m", "x", says="unknown command")
        self.fails(says="subcommand")


class Reports(Cli):
    def test_devices(self):
        report = self.json("devices")
        self.assertEqual(list(report), ["devices", "libraries"])
        cpu = report["devices"][0]
        self.assertEqual(cpu["name"], "cpu")
        self.assertIn(cpu["isa"], cpu["isas"])
        self.assertGreaterEqual(cpu["threads"], 1)
        out, _ = self.ok("devices")
        self.assertIn("cpu", out)

    def test_tokenize(self):
        report = self.json("tokenize", "-m", self.model, "-p", "the an. é\n<|im_end|>")
        self.assertEqual("".join(report["pieces"][:-4]), "the an. ")
        self.assertEqual(report["pieces"][0], "th")
        self.assertEqual(report["pieces"][-1], "<|im_end|>")
        self.assertTrue(all(isinstance(t, int) for t in report["tokens"]))
        self.assertEqual(len(report["tokens"]), len(report["pieces"]))
        plain = self.json("tokenize", "-m", self.model, "--no-special", "-p", "a<|im_end|>")
        self.assertNotIn(report["tokens"][-1], plain["tokens"])
        out, _ = self.ok("tokenize", "-m", self.model, "-p", "a\n")
        self.assertRegex(out, r'\A +\d+  "a"\n +\d+  "\\n"\n\Z')
        text = self.folder / "text"
        text.write_text("the an. é\n<|im_end|>")
        self.assertEqual(self.json("tokenize", "-m", self.model, "-f", str(text)), report)
        self.assertEqual(self.json("tokenize", "-m", self.model, "-f", "-",
                                   stdin="the an. é\n<|im_end|>"), report)

    def test_inspect(self):
        report = self.json("inspect", self.model)
        self.assertEqual(report["version"], 3)
        self.assertEqual(report["file_bytes"], os.path.getsize(self.model))
        self.assertEqual(report["metadata"]["general.architecture"], "llama")
        tokens = report["metadata"]["tokenizer.ggml.tokens"]
        self.assertEqual((tokens["count"], tokens["first"]), (40, list("abcdefgh")))
        self.assertIn("t h", report["metadata"]["tokenizer.ggml.merges"])  # short ones are whole
        first = report["tensors"][0]
        self.assertEqual((first["name"], first["type"], first["shape"]),
                         ("token_embd.weight", "q8_0", [40, 64]))
        self.assertEqual(report["parameters"],
                         sum(math.prod(t["shape"]) for t in report["tensors"]))
        out, _ = self.ok("inspect", self.model)
        self.assertIn("llama.block_count", out)
        self.assertIn("q8_0[40,64]", out)

    def test_bench(self):
        report = self.json("bench", "-m", self.model, "-p", "16,8", "-n", "4", "-t", "1", "-t", "2",
                           "-r", "3")
        self.assertEqual(list(report), ["rows", "load_ms", "peak_bytes"])
        self.assertEqual([(r["test"], r["threads"]) for r in report["rows"]],
                         [("pp16", 1), ("pp8", 1), ("tg4", 1), ("pp16", 2), ("pp8", 2), ("tg4", 2)])
        for row in report["rows"]:
            self.assertEqual(list(row), ["test", "threads", "tps", "tps_min", "tps_max"])
            self.assertGreater(row["tps_min"], 0)
            self.assertLessEqual(row["tps_min"], row["tps"])
            self.assertLessEqual(row["tps"], row["tps_max"])
        out, _ = self.ok("bench", "-m", self.model, "-p", "0", "-n", "4", "-d", "5", "-r", "1")
        self.assertIn("tg4@5", out)
        self.assertNotIn("pp0", out)

    def test_perplexity(self):
        text = self.folder / "text"
        text.write_text("the hat and the can, then a ham. " * 5)
        report = self.json("perplexity", "-m", self.model, "-f", str(text), "--ctx", "32")
        self.assertEqual(list(report), ["tokens", "nll", "mean_nll"])
        stretches = math.ceil(report["tokens"] / 32)
        self.assertEqual(len(report["nll"]), report["tokens"] - stretches)
        self.assertAlmostEqual(report["mean_nll"], sum(report["nll"]) / len(report["nll"]))
        out, _ = self.ok("perplexity", "-m", self.model, "-f", str(text), "--ctx", "32")
        self.assertIn(f"mean NLL {report['mean_nll']:.5f}", out)

    def test_quantize(self):
        source = str(self.folder / "tiny-f32.gguf")
        for kind in TYPES:
            target = str(self.folder / f"made-{kind}.gguf")
            report = self.json("quantize", source, target, kind)
            self.assertEqual(report["bytes_out"], os.path.getsize(target))
            # Rows of 64 aren't whole superblocks: they take another type.
            kept = {"q4_k": "q5_0", "q6_k": "q8_0"}.get(kind, kind)
            self.assertIn(kept, [t["type"] for t in report["types"]])
            types = {t["name"]: t["type"] for t in self.json("inspect", target)["tensors"]}
            self.assertEqual(types["blk.0.attn_q.weight"], kept)
            made = self.json("generate", "-m", target, "-p", "the", "-n", "5", "--temp", "0")
            self.assertGreaterEqual(len(made["tokens"]), 0)
        self.ok("quantize", source, str(self.folder / "made-q4_0.gguf"), "Q4_1")  # over an old one
        self.assertEqual([f.name for f in self.folder.iterdir() if f.name.endswith(".tmp")], [])


class Generation(Cli):
    def generate(self, *args, model=None, count=24, **kwargs):
        return self.json("generate", "-m", model or self.model, "-p", "the hat", "-n", str(count),
                         "--ignore-eos", *args, **kwargs)

    def test_json_keys(self):
        report = self.generate()
        self.assertEqual([k for k in report if k in GENERATE_KEYS], GENERATE_KEYS)
        self.assertTrue(all(isinstance(t, int) for t in report["tokens"]))
        self.assertEqual(len(report["tokens"]), 24)
        self.assertEqual(report["prompt_tokens"], 6)
        self.assertGreater(report["peak_bytes"], 1 << 20)
        for key in ["prompt_tps", "generate_tps", "load_ms", "first_token_ms"]:
            self.assertGreater(report[key], 0, key)

    def test_stdout_is_the_text_alone(self):
        report = self.generate("--seed", "3")
        out, err = self.ok("generate", "-m", self.model, "-p", "the hat", "-n", "24",
                           "--ignore-eos", "--seed", "3")
        self.assertEqual(out, "the hat" + report["text"] + "\n")
        self.assertRegex(err, r"\A\nprompt 6 tokens, [\d.]+ tokens/s \| generated 24 tokens, "
                              r"[\d.]+ tokens/s \| first token after \d+ ms \| "
                              r"memory [\d.]+ [kMG]B\n\Z")

    def test_seeds(self):
        first = self.generate("--seed", "3")["tokens"]
        self.assertEqual(self.generate("--seed", "3")["tokens"], first)
        self.assertNotEqual(self.generate("--seed", "4")["tokens"], first)

    def test_every_isa_and_thread_count_gives_the_same_tokens(self):
        isas = self.json("devices")["devices"][0]["isas"]
        for kind in TYPES[3:]:
            model = str(self.folder / f"tiny-{kind}.gguf")
            results = [self.generate("--seed", "5", "-t", str(threads), model=model,
                                     env={"WICK_CPU_ISA": isa})["tokens"]
                       for isa in isas for threads in (1, 2)]
            for result in results[1:]:
                self.assertEqual(result, results[0], kind)
        for isa in isas:
            report = self.json("devices", env={"WICK_CPU_ISA": isa})
            self.assertEqual(report["devices"][0]["isa"], isa)

    def test_every_weight_and_cache_type(self):
        for kind in TYPES:
            for cache in ["f32", "f16", "bf16"]:
                report = self.generate("--cache-type", cache, "--temp", "0",
                                       model=str(self.folder / f"tiny-{kind}.gguf"))
                self.assertEqual(len(report["tokens"]), 24, (kind, cache))

    def test_prompts(self):
        file = self.folder / "prompt"
        file.write_text("the hat")
        expected = self.generate("--seed", "1")["tokens"]
        for source, stdin in [(str(file), ""), ("-", "the hat")]:
            report = self.json("generate", "-m", self.model, "-f", source, "-n", "24",
                               "--ignore-eos", "--seed", "1", stdin=stdin)
            self.assertEqual(report["tokens"], expected)
        empty = self.json("generate", "-m", self.model, "-p", "", "-n", "3", "--ignore-eos")
        self.assertEqual(empty["prompt_tokens"], 1)
        none = self.json("generate", "-m", self.model, "-p", "the", "-n", "0")
        self.assertEqual(none["tokens"], [])
        full = self.generate("--ctx", "12", count=-1)
        self.assertEqual((len(full["tokens"]), full["finish"]), (7, "context"))

    def test_chat(self):
        out, err = self.ok("chat", "-m", self.model, "-n", "8", stdin="hat\n\n/clear\nthe can\n")
        self.assertEqual(err, "")
        self.assertTrue(out.endswith("\n"))
        self.assertGreaterEqual(out.count("\n"), 2)  # two answers, each ended by a newline
        again, _ = self.ok("chat", "-m", self.model, "-n", "8", stdin="hat\n\n/clear\nthe can\n")
        self.assertEqual(out, again)
        none, _ = self.ok("chat", "-m", self.model, stdin="/exit\nhat\n")
        self.assertEqual(none, "")


class BadInput(Cli):
    def run_fails(self, *args, **kwargs):
        return self.fails("generate", "-m", self.model, "-p", "the", "-n", "4", *args, **kwargs)

    def test_files_that_are_none(self):
        missing = str(self.folder / "missing.gguf")
        prompt = self.folder / "text"
        prompt.write_text("the hat")
        for path, says in [(missing, "No such file"), (str(self.folder), "directory"),
                           ("/dev/null", ""), ("", "")]:
            for args in [["generate", "-p", "a", "-m", path], ["chat", "-m", path],
                         ["bench", "-m", path], ["perplexity", "-f", str(prompt), "-m", path],
                         ["tokenize", "-p", "a", "-m", path], ["inspect", path],
                         ["quantize", path, str(self.folder / "out.gguf"), "q8_0"]]:
                text = self.fails(*args)
                self.assertIn(says.lower(), text.lower())
        for path in [missing, str(self.folder)]:
            self.run_fails_with_file(path)
        self.assertFalse((self.folder / "out.gguf").exists())

    def run_fails_with_file(self, path):
        self.fails("generate", "-m", self.model, "-f", path, says=path)
        self.fails("perplexity", "-m", self.model, "-f", path, says=path)
        self.fails("tokenize", "-m", self.model, "-f", path, says=path)

    def test_truncated_and_corrupted(self):
        whole = pathlib.Path(self.model).read_bytes()
        broken = self.folder / "broken.gguf"
        size = len(whole)
        cuts = [0, 3, 4, 8, 23, 24, 100, 1000, size // 2, size - 33, size - 1]
        for data in [whole[:cut] for cut in cuts] + [b"GGML" + whole[4:], b"\xff" * 64,
                                                     whole[:4] + b"\x09" + whole[5:],
                                                     whole[:8] + b"\xff" * 8 + whole[16:],
                                                     whole[:24] + b"\xff" * 8 + whole[32:]]:
            broken.write_bytes(data)
            self.fails("generate", "-m", str(broken), "-p", "a", says="broken.gguf")
            self.fails("inspect", str(broken), says="broken.gguf")
        out = self.folder / "out.gguf"
        self.fails("quantize", str(broken), str(out), "q8_0", says="broken.gguf")
        self.assertFalse(out.exists())
        broken.unlink()

    def test_weights_that_are_no_numbers(self):
        whole = (self.folder / "tiny-f32.gguf").read_bytes()
        broken, text = self.folder / "nan.gguf", self.folder / "text"
        broken.write_bytes(whole[:-4] + struct.pack("<f", math.nan))
        text.write_text("the hat and the can")
        self.fails("perplexity", "-m", str(broken), "-f", str(text), says="score isn't finite")
        code, out, err = wick("generate", "-m", str(broken), "-p", "the", "-n", "4")
        self.assertEqual((code, out), (2, b"the\n"))  # the error starts on a line of its own
        self.assertRegex(err, rb"\Awick: [^\n]*nan\.gguf: sample: bad logit: [^\n]*\n\Z")
        broken.unlink()

    def test_names_in_files_are_shown_escaped(self):
        whole = pathlib.Path(self.model).read_bytes()
        odd = self.folder / "odd.gguf"
        odd.write_bytes(whole.replace(b"llama", b"ll\x9b\xffa", 1))
        self.fails("generate", "-m", str(odd), "-p", "a", says=r"architecture: 'll\x9b\xffa'")
        odd.unlink()

    def test_file_names_stay_on_one_line(self):
        self.fails("inspect", str(self.folder / "two\nlines"))
        self.fails("generate", "-m", self.model, "-f", str(self.folder / "two\nlines"))

    def test_unknown_words(self):
        self.fails("quantize", self.model, str(self.folder / "out.gguf"), "q9_9",
                   says="not a weight type: 'q9_9': use f32, f16, bf16, q4_0, q4_1, q5_0, "
                        "q8_0, q4_k or q6_k")
        self.fails("quantize", self.model, str(self.folder / "out.gguf"), "q2_k", says="'q2_k'")
        self.run_fails("--device", "tpu", says="not a device: 'tpu': use cpu, cuda:N or hip:N")
        self.run_fails("--device", "cuda:99", says="no such device here: cuda:99")
        self.run_fails("--frobnicate", says="--frobnicate")
        self.run_fails("stray", says="stray")
        self.run_fails("--cache-type", "q8_0", says="--cache-type: not a cache type: 'q8_0'")
        self.fails("generate", "-p", "a", says="--model")
        for command in ["generate", "tokenize"]:
            self.fails(command, "-m", self.model, says="give -p or -f")
        self.fails("devices", "extra", says="extra")

    def test_numbers_out_of_range(self):
        for args in [["-t", "0"], ["-t", "-1"], ["-t", "-3"], ["-t", "1025"], ["-t", "x"],
                     ["-t", "99999999999"], ["-t", ""], ["-n", "x"], ["-n", ""], ["-n", "-2"],
                     ["-n", "9223372036854775808"], ["--ctx", "0"], ["--ctx", "-1"],
                     ["--ctx", "x"], ["--temp", ""], ["--seed", "18446744073709551616"],
                     ["--batch", "0"], ["--batch", "-1"], ["--temp", "-1"], ["--temp", "nan"],
                     ["--top-k", "-1"], ["--top-p", "0"], ["--top-p", "1.5"], ["--min-p", "-0.1"],
                     ["--min-p", "2"], ["--repetition-penalty", "0"],
                     ["--presence-penalty", "nan"], ["--frequency-penalty", "inf"],
                     ["--penalty-window", "-2"], ["--seed", "-1"], ["--seed", "x"]]:
            self.run_fails(*args)
        for args in [["-t", "0"], ["-t", "-1"], ["-p", "-1"], ["-n", "-1"], ["-r", "0"],
                     ["-d", "-1"], ["-d", "9223372036854775807"], ["-p", "99999999999"],
                     ["-p", "8,x"], ["-p", "0"]]:
            self.fails("bench", "-m", self.model, *args)
        self.fails("quantize", self.model, str(self.folder / "out.gguf"), "q4_0", "-t", "0")
        self.fails("chat", "-m", self.model, "--temp", "-1")
        self.assertFalse((self.folder / "out.gguf").exists())

    def test_prompts_that_dont_fit(self):
        self.fails("generate", "-m", self.model, "-p", "the hat " * 50, "--ctx", "40",
                   says="prompt longer than the context: ")
        self.fails("chat", "-m", self.model, "--ctx", "8", stdin="the hat and the can\n",
                   says="prompt longer than the context: ")
        self.run_fails("--ctx", "1000000000",
                       says="kv cache: not enough memory: context 1000000000")
        self.run_fails("--ctx", "9223372036854775807", says="kv cache: ")
        self.fails("perplexity", "-m", self.model, "-f", "-", stdin="t", says="perplexity: ")
        self.fails("perplexity", "-m", self.model, "-f", "-", says="perplexity: ")

    def test_text_that_is_not_utf8(self):
        bad = b"the \xff\xfe hat"
        file = self.folder / "bad"
        file.write_bytes(bad)
        for args in [["generate", "-m", self.model, "-n", "4"], ["tokenize", "-m", self.model]]:
            self.fails(*args, "-f", str(file), says=f"{file}: tokenize: invalid UTF-8")
            self.fails(*args, "-p", bad, says="--prompt: tokenize: invalid UTF-8")
        self.fails("perplexity", "-m", self.model, "-f", str(file), says=f"{file}: tokenize: ")
        self.fails("chat", "-m", self.model, "--system", bad, says="--system: tokenize: ")

    def test_quantize_writes_whole_files_or_none(self):
        source = str(self.folder / "tiny-f32.gguf")
        before = pathlib.Path(source).read_bytes()
        link = self.folder / "link.gguf"
        link.symlink_to(source)
        for target in [source, str(self.folder / "." / "tiny-f32.gguf"), str(link)]:
            self.fails("quantize", source, target, "q8_0")
        self.assertEqual(pathlib.Path(source).read_bytes(), before)
        link.unlink()
        files = sorted(self.folder.iterdir())
        for target in [str(self.folder), str(self.folder / "no" / "such" / "out.gguf"),
                       source + "/out.gguf", "/dev/full", ""]:
            self.fails("quantize", source, target, "q8_0")
        limit = 4096  # of the size of files, which a signal announces first
        self.fails("quantize", source, str(self.folder / "out.gguf"), "q8_0", says="File too large",
                   before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(sorted(self.folder.iterdir()), files)

    def test_isa(self):
        isas = self.json("devices")["devices"][0]["isas"]
        text = self.run_fails(env={"WICK_CPU_ISA": "v9"}, says="WICK_CPU_ISA: ")
        for isa in isas:
            self.assertIn(isa, text)
        self.fails("devices", env={"WICK_CPU_ISA": "v9"}, says="'v9'")

    def test_stdout_that_cannot_be_written(self):
        for command in [["generate", "-m", self.model, "-p", "the", "-n", "4"], ["devices"],
                        ["inspect", self.model], ["devices", "--json"], ["--help"], ["--version"]]:
            for sink in [">/dev/full", ">&-"]:
                shell = " ".join(f"'{word}'" for word in [ARGS.wick, *command])
                done = subprocess.run(["sh", "-c", f"{shell} {sink}"], capture_output=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, 2, (command, sink))
                self.assertRegex(done.stderr, rb"\Awick: stdout: cannot write: [^\n]+\n\Z")

    def test_standard_streams_that_are_closed(self):
        # The files it opens must not become its standard streams.
        source, out = str(self.folder / "tiny-f32.gguf"), self.folder / "closed.gguf"
        shell = f"'{ARGS.wick}' quantize '{source}' '{out}' q8_0 <&- >&- 2>&-"
        done = subprocess.run(["sh", "-c", shell], timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.ok("inspect", str(out))
        out.unlink()


class ChangingFiles(Cli):
    """Model files that another process cuts short, overwrites, lengthens or replaces at random
    moments: the right result or code 2 with one line, never a signal and never other text."""
    SECONDS = 6

    def change(self, path, rng, pause):
        """After a pause, in this thread while the command runs."""
        time.sleep(pause)
        size = len(self.whole)
        kind = rng.randrange(5)
        if kind == 0:
            os.truncate(path, rng.randrange(size))
        elif kind == 1:
            os.truncate(path, 0)
        elif kind == 2:
            with open(path, "r+b") as file:
                file.seek(rng.randrange(size))
                file.write(bytes(rng.randrange(256) for _ in range(3000)))
        elif kind == 3:
            with open(path, "ab") as file:
                file.write(b"more")
        else:
            other = path + ".new"
            pathlib.Path(other).write_bytes(b"another file")
            os.replace(other, path)

    def attack(self, what, *args, right, partial=False, prepare=None):
        rng = random.Random(what)
        path = str(self.folder / "changing.gguf")
        begin = time.monotonic()
        pathlib.Path(path).write_bytes(self.whole)
        wick(*[path if a == "MODEL" else a for a in args])
        usual = time.monotonic() - begin
        runs = errors = 0
        while time.monotonic() < begin + self.SECONDS / 5:
            if os.path.exists(path):
                os.remove(path)
            pathlib.Path(path).write_bytes(self.whole)
            time.sleep(0.012)  # changes within a tick of the file's clock aren't told
            if prepare is not None:
                prepare()
            process = subprocess.Popen([ARGS.wick, *[path if a == "MODEL" else a for a in args]],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.change(path, rng, rng.random() * usual)
            out, err = process.communicate(timeout=60)
            runs += 1
            if process.returncode == 0:
                right(out)
                continue
            errors += 1
            self.assertEqual(process.returncode, 2, (what, err))
            self.assertRegex(err.decode(), r"\A(?:.*\n)?wick: [^\n]*\n\Z")
            if not partial:
                self.assertEqual(out, b"")
        self.assertGreater(runs, 3)
        return runs, errors

    def setUp(self):
        self.whole = (self.folder / "tiny-f32.gguf").read_bytes()
        self.file = str(self.folder / "tiny-f32.gguf")

    def test_generate(self):
        args = ["-p", "the hat", "-n", "200", "--temp", "0", "--ignore-eos", "--json"]
        tokens = self.json("generate", "-m", self.file, *args[:-1])["text"]
        _, errors = self.attack("generate", "generate", "-m", "MODEL", *args,
                                right=lambda out: self.assertEqual(json.loads(out)["text"], tokens))
        self.assertGreater(errors, 0)

    def test_text_that_is_printed_before_the_error_is_right(self):
        args = ["-p", "the hat", "-n", "200", "--temp", "0", "--ignore-eos"]
        text, _ = self.ok("generate", "-m", self.file, *args)
        self.attack("stream", "generate", "-m", "MODEL", *args, partial=True,
                    right=lambda out: self.assertEqual(out, text.encode()))

    def test_perplexity(self):
        text = self.folder / "text"
        text.write_text("the hat and the cat " * 60)
        right = self.json("perplexity", "-m", self.file, "-f", str(text))["mean_nll"]
        self.attack("perplexity", "perplexity", "-m", "MODEL", "-f", str(text), "--json",
                    right=lambda out: self.assertEqual(json.loads(out)["mean_nll"], right))

    def test_quantize(self):
        out = self.folder / "out.gguf"
        self.ok("quantize", self.file, str(out), "q8_0")
        right = out.read_bytes()
        self.attack("quantize", "quantize", "MODEL", str(out), "q8_0", "--json",
                    prepare=lambda: out.unlink(missing_ok=True),
                    right=lambda _: self.assertEqual(out.read_bytes(), right))

    def test_inspect_and_tokenize(self):
        report = self.json("inspect", self.file)
        def same(out):
            found = json.loads(out)
            self.assertEqual(found.get("tensors"), report.get("tensors"))
        self.attack("inspect", "inspect", "MODEL", "--json", right=same)
        tokens = self.json("tokenize", "-m", self.file, "-p", "the hat")["tokens"]
        self.attack("tokenize", "tokenize", "-m", "MODEL", "-p", "the hat", "--json",
                    right=lambda out: self.assertEqual(json.loads(out)["tokens"], tokens))


class Interrupts(Cli):
    def start(self, *args):
        # Under nohup a hang-up would be ignored.
        return subprocess.Popen([ARGS.wick, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def endless(self, *args):
        return self.start("generate", "-m", self.model, "-p", "the", "-n", "-1", "--ctx", "1000000",
                          "--ignore-eos", *args)

    def test_generate(self):
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            process = self.endless()
            self.assertEqual(process.stdout.read(20)[:3], b"the")
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 130)
            self.assertTrue(out.endswith(b"\n"))
            self.assertRegex(err, rb"\A\nprompt \d+ tokens.* \| generated \d+ tokens.*\n\Z")

    def test_generate_json(self):
        process = self.endless("--json")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (130, b""))
        self.assertEqual(json.loads(out)["finish"], "interrupted")

    def test_a_reader_that_goes_away(self):
        process = self.endless()
        process.stdout.read(20)
        process.stdout.close()
        err = process.stderr.read()
        self.assertEqual(process.wait(timeout=30), 2)
        self.assertEqual(err, b"wick: stdout: cannot write: Broken pipe\n")
        process.stderr.close()
        process.stdin.close()

    def test_bench_perplexity_and_chat(self):
        text = self.folder / "long"
        text.write_text("the hat and the can, then a ham. " * 30000)
        for args in [["bench", "-m", self.model, "-n", "1000000"],
                     ["perplexity", "-m", self.model, "-f", str(text)],
                     ["chat", "-m", self.model, "--ctx", "1000000", "-n", "-1"]]:
            process = self.start(*args)
            process.stdin.write(b"hat\n")
            process.stdin.flush()
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, err), (130, b""), args)


class Drivers(Cli):
    """Drivers that are missing, broken or too old: one line, and the CPU goes on."""
    def without(self, reason, **env):
        report = self.json("devices", env=env)
        self.assertEqual([d["name"] for d in report["devices"]][:1], ["cpu"])
        self.assertNotIn("cuda:0", [d["name"] for d in report["devices"]])
        missing = [d["missing"] for d in report["libraries"] if d["name"] == "cuda"][0]
        self.assertRegex(missing, reason)
        self.ok("devices", env=env)
        text = self.fails("generate", "-m", self.model, "-p", "the", "--device", "cuda:0",
                          says="no such device here: cuda:0: ", env=env)
        self.assertRegex(text, reason)
        hip = {"WICK_HIP_LIBRARY": "/none/libamdhip64.so"}
        self.json("generate", "-m", self.model, "-p", "the", "-n", "2", env={**env, **hip})

    def test_none(self):
        self.without("/none/libcuda.so: cannot open shared object file",
                     WICK_CUDA_LIBRARY="/none/libcuda.so")

    def test_no_library(self):
        file = self.folder / "libtext.so"
        for content in [b"", b"this is no library" * 1000, b"\x7fELF" + bytes(1000)]:
            file.write_bytes(content)
            self.without("libtext.so: ", WICK_CUDA_LIBRARY=str(file))
        self.without(": cannot read file data: Is a directory", WICK_CUDA_LIBRARY=str(self.folder))

    def test_too_old(self):
        self.without("libc.so.6 has no cuInit: too old, or another library",
                     WICK_CUDA_LIBRARY="libc.so.6")

    def test_unknown_words_in_the_environment(self):
        for variable in ["WICK_GPU_IMAGES", "WICK_GPU_LIBRARIES", "WICK_GPU_GEMM", "WICK_GPU_LINEAR",
                         "WICK_REPRODUCIBLE", "WICK_KERNEL_CACHE_MIB"]:
            self.fails("generate", "-m", "/none.gguf", "-p", "the", "--device", "cuda:0",
                       says=f"{variable}: ", env=self.stand_in(**{variable: "perhaps"}))

    def stand_in(self, **env):
        if not os.path.exists(ARGS.stand_in):
            self.skipTest(f"no stand-in: {ARGS.stand_in}")
        return {"WICK_CUDA_LIBRARY": ARGS.stand_in, "WICK_HIP_LIBRARY": "/none/lib.so", **env}

    def test_that_does_not_start(self):
        self.without(r"an error \(CUDA_ERROR\)", **self.stand_in(WICK_STAND_IN_INIT="803"))
        self.without("no device", **self.stand_in(WICK_STAND_IN_DEVICES="0"))
        self.without("no device", **self.stand_in(WICK_STAND_IN_DEVICES="-1"))

    def on_stand_in(self, device, says, **env):
        return self.fails("generate", "-m", self.model, "-p", "the", "--device", device, says=says,
                          env=self.stand_in(**env))

    def test_index_that_is_none(self):
        for device in ["cuda:1", "cuda:2147483647"]:
            self.on_stand_in(device, f"device: no such device here: {device}: there ")
        for device in ["cuda:-1", "cuda:2147483648", "cuda:", "cuda:0x", "cuda: 0", "CUDA:0"]:
            self.on_stand_in(device, f"not a device: '{device}'")

    def test_no_image_and_no_compiler(self):
        nvrtc = "/none/libnvrtc.so"
        text = self.on_stand_in("cuda:0", "no kernels", WICK_GPU_IMAGES="off",
                                WICK_NVRTC_LIBRARY=nvrtc)
        for tried in ["sm_90", "WICK_GPU_IMAGES", nvrtc]:
            self.assertIn(tried, text)

    def test_images_that_are_too_new(self):
        devices = self.json("devices", env=self.stand_in())["devices"]
        if not devices[1]["kernels"]:
            self.skipTest("no kernels for sm_90: no nvcc at build time")
        self.on_stand_in("cuda:0", "driver 13.0 may be too old", WICK_STAND_IN_OLD="1")

    def test_start(self):
        # The target is 30 ms; a machine that tests much else at the time gets more.
        for command in ["--version", "devices"]:
            took = []
            for _ in range(10):
                start = time.monotonic()
                self.ok(command)
                took.append(time.monotonic() - start)
            slower = 5 if os.environ.get("WICK_SANITIZED") else 1
            self.assertLess(min(took), 0.09 * slower, command)


class Emulated(Cli):
    """The command on a software AMD GPU."""
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(ARGS.emulator):
            raise unittest.SkipTest(f"no emulator: {ARGS.emulator}")
        super().setUpClass()
        cls.env = {"WICK_HIP_LIBRARY": ARGS.emulator, "WICK_EMU_DEVICES": "gfx1100",
                   "WICK_REPRODUCIBLE": "1"}
        kernels = json.loads(wick("devices", "--json", env=cls.env)[1])["devices"][1]["kernels"]
        if not kernels:
            raise unittest.SkipTest("no kernels for gfx1100: no clang at build time")

    def args(self, count, device="hip:0"):
        return ["generate", "-m", self.model, "-p", "the hat", "-n", str(count), "--ignore-eos",
                "--ctx", "100000", "--seed", "1", "--device", device]

    def tokens(self, device="hip:0", **env):
        return self.json(*self.args(6, device), env={**self.env, **env}, timeout=300)["tokens"]

    def start(self, **env):
        return subprocess.Popen([ARGS.wick, *self.args(-1)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, **self.env, **env})

    def test_interrupt(self):
        process = self.start()
        self.assertEqual(process.stdout.read(12)[:7], b"the hat")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertTrue(out.endswith(b"\n"))
        self.assertRegex(err, rb"\A\nprompt \d+ tokens.* \| generated \d+ tokens.*\n\Z")

    def test_killed(self):
        expected = self.tokens("cpu")
        place = self.folder / "tmp"
        place.mkdir()
        shared = set(os.listdir("/dev/shm"))
        for seconds in [0.05, 0.3, 0.6]:
            process = self.start(TMPDIR=str(place))
            if seconds > 0.5:
                process.stdout.read(12)  # it generates
            time.sleep(seconds)
            process.kill()
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertEqual(list(place.iterdir()), [])
        self.assertEqual({f for f in os.listdir("/dev/shm") if "wick" in f} - shared, set())
        self.assertEqual(self.tokens(), expected)

    def test_killed_while_it_compiles(self):
        cache = self.folder / "kernels"
        env = {"WICK_GPU_IMAGES": "off", "WICK_KERNEL_CACHE": str(cache)}
        for seconds in [0.5, 3, 6]:
            process = self.start(**env)
            time.sleep(seconds)
            process.kill()
            process.communicate(timeout=60)
        self.assertEqual(self.tokens(**env), self.tokens("cpu"))
        kept = {f.name for f in cache.iterdir()}
        unfinished = {name for name in kept if not name.endswith(".kernel")}
        self.assertLessEqual(len(unfinished), 3)
        self.assertEqual(self.tokens(**env), self.tokens("cpu"))
        self.assertEqual({f.name for f in cache.iterdir()}, kept)

    def test_out_of_memory(self):
        code, out, err = wick("generate", "-m", self.model, "-p", "the hat", "-n", "4", "--ctx", "64",
                              "--device", "hip:0", env={**self.env, "WICK_EMU_MEMORY": "512K"})
        self.assertEqual((code, out), (2, b""))
        own = [line for line in err.decode().splitlines() if not line.startswith("wick-emu: ")]
        self.assertEqual(len(own), 1, err)
        self.assertRegex(own[0], r"\Awick: alloc: out of memory: requested \d+ bytes on hip:0, "
                                 r"in use \d+, cached \d+, limit 524288\b")


class RealModel(Cli):
    @classmethod
    def setUpClass(cls):
        cls.model = os.environ.get("WICK_TEST_MODEL", "")
        if not cls.model:
            raise unittest.SkipTest("WICK_TEST_MODEL names no model")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="wick-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def test_it_speaks(self):
        report = self.json("generate", "-m", self.model, "-p", "The capital of France is",
                           "-n", "12", "--temp", "0")
        self.assertIn("Paris", report["text"])
        again = self.json("generate", "-m", self.model, "-p", "The capital of France is",
                          "-n", "12", "--temp", "0", "-t", "1")
        self.assertEqual(again["tokens"], report["tokens"])

    def test_it_chats(self):
        out, _ = self.ok("chat", "-m", self.model, "-n", "16", "--temp", "0", stdin="Hello\n")
        self.assertRegex(out, r"\A\w[^\n]+\n")
        self.assertNotIn("<|", out)

    def test_it_scores(self):
        text = self.folder / "text"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 2)
        report = self.json("perplexity", "-m", self.model, "-f", str(text), "--ctx", "64")
        self.assertLess(report["mean_nll"], 4)

    def test_it_is_measured(self):
        report = self.json("bench", "-m", self.model, "-p", "16", "-n", "4", "-r", "1")
        self.assertEqual([r["test"] for r in report["rows"]], ["pp16", "tg4"])
        self.json("inspect", self.model)
        self.assertGreater(len(self.json("tokenize", "-m", self.model, "-p", "Hi")["tokens"]), 0)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wick", required=True)
    parser.add_argument("--tiny-writer", required=True)
    parser.add_argument("--emulator", default="", help="a software AMD GPU's runtime")
    parser.add_argument("--stand-in", default="", help="a driver of NVIDIA's that runs nothing")
    ARGS, rest = parser.parse_known_args()
    result = unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        return 1
    return 77 if result.skipped and result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
