#!/usr/bin/env python3
"""Tests the wick command with valid input: help, reports and generated text. See cli.py."""
import json
import math
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys

from cli import ARGS, COMMANDS, TYPES, Cli, main, wick

GENERATE_KEYS = ["prompt_tokens", "tokens", "text", "prompt_tps", "generate_tps", "load_ms",
                 "first_token_ms", "peak_bytes"]


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
        self.fails("--frobnicate", says="no command: '--frobnicate': start with one of generate ")

    def test_no_command_lists_the_commands(self):
        code, out, err = wick()
        self.assertEqual((code, out), (2, b""))
        self.assertEqual(err.decode(), self.ok("--help")[0])

    def test_help_command(self):
        self.assertEqual(self.ok("help"), self.ok("--help"))
        for command in COMMANDS:
            self.assertEqual(self.ok("help", command), self.ok(command, "--help"))
        self.fails("help", "frobnicate", says="help: unknown command: 'frobnicate': use one of ")
        self.fails("help", "two\nlines", says=r"'two\nlines'")
        self.fails("help", "chat", "bench", says="bench")


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
        # Short arrays are printed completely.
        self.assertIn("t h", report["metadata"]["tokenizer.ggml.merges"])
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
            self.assertEqual(list(row), ["test", "threads", "tps", "tps_min", "tps_max",
                                         "tps_deviation"])
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
        self.assertEqual(list(report), ["tokens", "nll", "mean_nll", "mean_nll_error", "perplexity",
                                        "perplexity_error"])
        stretches = math.ceil(report["tokens"] / 32)
        self.assertEqual(len(report["nll"]), report["tokens"] - stretches)
        mean = statistics.mean(report["nll"])
        self.assertAlmostEqual(report["mean_nll"], mean)
        error = statistics.stdev(report["nll"]) / math.sqrt(len(report["nll"]))
        self.assertAlmostEqual(report["mean_nll_error"], error)
        self.assertAlmostEqual(report["perplexity"], math.exp(mean), places=6)
        self.assertAlmostEqual(report["perplexity_error"], error * math.exp(mean), places=6)
        out, _ = self.ok("perplexity", "-m", self.model, "-f", str(text), "--ctx", "32")
        self.assertIn(f"mean NLL {report['mean_nll']:.5f}", out)

    def test_tokenize_prints_what_json_would(self):
        """The report is written in pieces, in the format of every other report."""
        text = self.folder / "text"
        text.write_text("the hat, é\t\"quoted\" \x00\x7f <|im_end|>\n" * 50)
        for content in [text.read_text(), ""]:
            text.write_text(content)
            out, _ = self.ok("tokenize", "-m", self.model, "-f", str(text), "--json")
            self.assertEqual(out, json.dumps(json.loads(out), indent=2, ensure_ascii=False) + "\n")
            lines, _ = self.ok("tokenize", "-m", self.model, "-f", str(text))
            self.assertEqual([line.split(None, 1) for line in lines.splitlines()],
                             [[str(t), json.dumps(p, ensure_ascii=False)] for t, p in
                              zip(json.loads(out)["tokens"], json.loads(out)["pieces"])])

    def test_a_long_text(self):
        """A text of megabytes takes few writes, and some bytes of memory per token."""
        text = self.folder / "long"
        text.write_text("the hat and the can, then a ham. " * 150_000)
        for extra in [[], ["--json"]]:
            trace = self.folder / "out"
            # Limit on address space; a JSON document of all tokens would take a gigabyte.
            limit = 400 << 20
            with open(trace, "wb") as out:
                done = subprocess.run(
                    [ARGS.wick, "tokenize", "-m", self.model, "-f", str(text), *extra], stdout=out,
                    stderr=subprocess.PIPE, timeout=120, check=False,
                    preexec_fn=None if os.environ.get("WICK_TEST_SANITIZED") else
                    lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertGreater(trace.stat().st_size, 10 << 20)

    def test_output_goes_in_blocks(self):
        text = self.folder / "long"
        text.write_text("the hat " * 20_000)
        for args in [["tokenize", "-m", self.model, "-f", str(text)],
                     ["tokenize", "-m", self.model, "-f", str(text), "--json"],
                     ["inspect", self.model], ["inspect", self.model, "--json"]]:
            # A packet-mode pipe keeps the writes separate.
            read, write = os.pipe2(os.O_DIRECT)
            with subprocess.Popen([ARGS.wick, *args], stdout=write) as process:
                os.close(write)
                sizes = []
                while part := os.read(read, 1 << 20):
                    sizes.append(len(part))
                os.close(read)
            self.assertEqual(process.returncode, 0)
            self.assertGreaterEqual(min(sizes[:-1], default=4096), 4096, args)


class Quantize(Cli):
    def test_quantize(self):
        source = str(self.folder / "tiny-f32.gguf")
        for kind in [*TYPES, "q5_k_m", "q3_k_s", "iq4_nl", "iq4_xs", "mxfp4", "iq1_s", "iq2_xs", "iq3_s", "tq1_0",
                     "tq2_0", "nvfp4", "q1_0", "q2_0"]:
            target = str(self.folder / f"made-{kind}.gguf")
            report = self.json("quantize", source, target, kind)
            self.assertEqual(report["bytes_out"], os.path.getsize(target))
            # Rows of 64 aren't whole superblocks, so they use another type.
            kept = {"q4_k": "q5_0", "q6_k": "q8_0", "q5_k_m": "q5_1", "q3_k_s": "q4_0",
                    "iq4_xs": "iq4_nl", "mxfp4": "q8_0", "iq1_s": "iq4_nl", "iq2_xs": "iq4_nl", "iq3_s": "iq4_nl",
                    "tq1_0": "q4_0", "tq2_0": "q4_0", "q1_0": "q4_0"}.get(kind, kind)
            self.assertIn(kept, [t["type"] for t in report["types"]])
            types = {t["name"]: t["type"] for t in self.json("inspect", target)["tensors"]}
            self.assertEqual(types["blk.0.attn_q.weight"], kept)
            made = self.json("generate", "-m", target, "-p", "the", "-n", "5", "--temp", "0")
            self.assertGreaterEqual(len(made["tokens"]), 0)
        # Overwrites an existing file.
        self.ok("quantize", source, str(self.folder / "made-q4_0.gguf"), "Q4_1")
        self.assertEqual([f.name for f in self.folder.iterdir() if f.name.endswith(".tmp")], [])

    def quantize(self, kind, source="tiny-f32.gguf", *extra):
        target = self.folder / "made.gguf"
        return target, *self.ok("quantize", str(self.folder / source), str(target), kind, *extra)

    def test_summary(self):
        """The summary has a line for each pair of types; -v names the tensors."""
        _, out, err = self.quantize("q4_k")
        self.assertEqual(err, "")
        self.assertRegex(out, r"(?m)^\d+ tensors are q5_0 instead of q4_k: their rows are not "
                              r"a multiple of 256 \(-v lists them\)$")
        self.assertNotIn("blk.0", out)
        self.assertLess(len(out.splitlines()), 8)
        _, verbose, _ = self.quantize("q4_k", "tiny-f32.gguf", "-v")
        self.assertIn("blk.0.attn_q.weight", verbose)
        named = len([line for line in verbose.splitlines() if " becomes " in line])
        counted = sum(int(line.split()[0]) for line in out.splitlines() if "instead of" in line)
        self.assertEqual(named, counted)

    def test_quantised_twice(self):
        for source, kind, warned in [("tiny-q8_0.gguf", "q4_0", True), ("tiny-q4_0.gguf", "q8_0", True),
                                     ("tiny-q8_0.gguf", "q8_0", False), ("tiny-f16.gguf", "q4_0", False),
                                     ("tiny-q4_0.gguf", "f16", False), ("tiny-q4_0.gguf", "f32", False)]:
            _, _, err = self.quantize(kind, source)
            if warned:
                was = source[5:-5]
                self.assertRegex(err, rf"\Awick: warning: quantize: \d+ tensors were converted "
                                      rf"from {was} to {kind}, [^\n]+\n\Z")
            else:
                self.assertEqual(err, "", (source, kind))

    def types(self, kind, *extra, source="tiny-q8_k.gguf"):
        """The types of a new file's weights, whose rows are whole superblocks."""
        target, _, _ = self.quantize(kind, source, *extra)
        return {t["name"]: t["type"] for t in self.json("inspect", str(target))["tensors"]}

    def test_mixtures(self):
        for kind in ["q4_k_m", "Q4_K_M"]:
            types = self.types(kind)
            self.assertEqual(types["blk.0.attn_q.weight"], "q4_k")
            self.assertEqual(types["output.weight"], "q6_k")
            # Of two layers, only the last is in the last eighth.
            self.assertEqual([types[f"blk.{i}.ffn_down.weight"] for i in range(2)], ["q4_k", "q6_k"])
            self.assertEqual([types[f"blk.{i}.attn_v.weight"] for i in range(2)], ["q4_k", "q6_k"])
        for kind, value in [("q2_k", "q3_k"), ("q3_k_l", "q5_k"), ("q4_k_s", "q5_k"), ("q5_k_s", "q5_k")]:
            self.assertEqual(self.types(kind)["blk.0.attn_v.weight"], value, kind)

    def test_types_of_single_weights(self):
        types = self.types("q4_0", "--tensor-type", "blk.1*down=q8_0", "--tensor-type", "ffn=bf16",
                           "--output-type", "q5_k", "--token-embedding-type", "Q3_K")
        self.assertEqual(types["blk.1.ffn_down.weight"], "q8_0")
        self.assertEqual(types["blk.0.ffn_down.weight"], "bf16")
        self.assertEqual(types["blk.0.attn_q.weight"], "q4_0")
        self.assertEqual(types["output.weight"], "q5_k")
        self.assertEqual(types["token_embd.weight"], "q3_k")

    def test_not_finite(self):
        whole = (self.folder / "tiny-f32.gguf").read_bytes()
        broken = self.folder / "nan.gguf"
        broken.write_bytes(whole[:-8] + struct.pack("<ff", math.nan, math.inf))
        last = self.json("inspect", str(broken))["tensors"][-1]["name"]
        _, _, err = self.quantize("f32", "nan.gguf")
        self.assertEqual(err, f"wick: warning: quantize: {last} has 2 values that are NaN or infinite\n")
        report = self.json("quantize", str(broken), str(self.folder / "made.gguf"), "f32")
        self.assertEqual(report["not_finite"], [{"tensor": last, "values": 2}])

    def test_permissions(self):
        """The permissions are those of the source without the bits of the umask, as with cp."""
        source = self.folder / "source.gguf"
        shutil.copy(self.folder / "tiny-f32.gguf", source)
        for mode in [0o600, 0o640, 0o644, 0o666, 0o755, 0o400]:
            for mask in [0o000, 0o022, 0o077, 0o027]:
                source.chmod(mode)
                target, copy = self.folder / "made.gguf", self.folder / "copy"
                target.unlink(missing_ok=True)
                copy.unlink(missing_ok=True)
                self.ok("quantize", str(source), str(target), "q8_0", before=lambda m=mask: os.umask(m))
                subprocess.run(["cp", str(source), str(copy)], check=True,
                               preexec_fn=lambda m=mask: os.umask(m))
                self.assertEqual(target.stat().st_mode, copy.stat().st_mode, (oct(mode), oct(mask)))


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

    def test_architectures(self):
        folder = self.folder / "families"
        folder.mkdir()
        subprocess.run([ARGS.tiny_writer, "--families", str(folder)], check=True, timeout=60)
        paths = sorted(folder.glob("*.gguf"))
        self.assertGreater(len(paths), 40)
        encoders = {"bert", "gemma-embedding", "modern-bert", "nomic-bert"}
        self.assertLessEqual(encoders, {path.stem for path in paths})
        for path in paths:
            if path.stem in encoders:
                self.fails("generate", "-m", str(path), "-p", "the hat", says="this model makes embeddings, not text: use `wick embed`")
                self.assertTrue(self.ok("embed", "-m", str(path), "the hat")[0])
            else:
                self.assertEqual(len(self.generate(model=str(path))["tokens"]), 24, path.name)

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
        for cache in ["q8_0", "q4_0"]:  # need heads of 32 elements, which this model has
            report = self.generate("--cache-type", cache, "--temp", "0",
                                   model=str(self.folder / "tiny-q4_k.gguf"))
            self.assertEqual(len(report["tokens"]), 24, cache)

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
        for context, says in [("12", "(the context of 12 tokens is full: --ctx asks for a longer one)"),
                              ("256", "(the context of 256 tokens is full)")]:
            _, err = self.ok("generate", "-m", self.model, "-p", "the hat", "-n", "-1", "--ignore-eos", "--ctx", context)
            self.assertEqual(err.splitlines()[1], says)
        _, err = self.ok("generate", "-m", self.model, "-p", "the hat", "-n", "2", "--ctx", "12")
        self.assertNotIn("full", err)

    def test_chat(self):
        out, err = self.ok("chat", "-m", self.model, "-n", "8", stdin="hat\n\n/clear\nthe can\n")
        self.assertEqual(err, "")
        self.assertTrue(out.endswith("\n"))
        self.assertGreaterEqual(out.count("\n"), 2)  # two answers, each ending with a newline
        again, _ = self.ok("chat", "-m", self.model, "-n", "8", stdin="hat\n\n/clear\nthe can\n")
        self.assertEqual(out, again)
        none, _ = self.ok("chat", "-m", self.model, stdin="/exit\nhat\n")
        self.assertEqual(none, "")


if __name__ == "__main__":
    sys.exit(main())
