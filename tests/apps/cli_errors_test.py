#!/usr/bin/env python3
"""Tests the wick command with invalid input: files, words, numbers and the environment. See cli.py."""
import math
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys

from cli import ARGS, Cli, main, wick


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

    def test_layers(self):
        for option in ["--gpu-layers", "--cpu-experts"]:
            self.run_fails(option, "-3", says=f"{option}: out of range: -3: need at least 0")
            self.run_fails(option, "9" * 30, says=f"{option}: out of range: 9")
            for word in ["", "some", "3x", "0.5"]:
                self.run_fails(option, word, says=f"{option}: not a number of layers: '{word}'")
        self.run_fails("--device", "cpu,cpu", says="a list of devices with the CPU")
        self.run_fails("--device", "cpu,", says="not a device: ''")
        self.json("generate", "-m", self.model, "-p", "the", "-n", "2", "--device", "cpu",
                  "--gpu-layers", "9", warns=["--gpu-layers: ignored: no GPU is used"])

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
        self.assertEqual((code, out), (2, b"the\n"))  # the error starts on its own line
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
                   says="not a weight type: 'q9_9': use f32, f16, bf16, q8_0, ")
        for kind in ["q6_k_l", "q8_k", "i32", "q4_k_xl", ""]:
            self.fails("quantize", self.model, str(self.folder / "out.gguf"), kind,
                       says=f"not a weight type: '{kind}'")
        for option in ["--output-type", "--token-embedding-type"]:
            for kind in ["q4_k_m", "i32", "q8_k", "x"]:
                self.fails("quantize", self.model, str(self.folder / "out.gguf"), "q8_0", option, kind,
                           says=f"{option}: not a dtype that can be written: '{kind}'")
        for given, says in [("attn", "not an assignment: 'attn'"), ("=q8_0", "not an assignment"),
                            ("attn=q9", "not a dtype that can be written: 'q9'"), ("", "--tensor-type")]:
            self.fails("quantize", self.model, str(self.folder / "out.gguf"), "q8_0", "--tensor-type",
                       given, says=says)
        self.run_fails("--device", "tpu", says="not a device: 'tpu': use cpu, cuda:N or hip:N")
        self.run_fails("--device", "cuda:99", says="no such device here: cuda:99")
        self.run_fails("--frobnicate", says="--frobnicate")
        self.run_fails("stray", says="stray")
        self.run_fails("--cache-type", "q4_1", says="--cache-type: not a cache type: 'q4_1': use "
                                                    "bf16, f16, f32, q4_0 or q8_0")
        self.run_fails("--cache-type", "q8_0", says="q8_0 needs heads of a multiple of 32 elements: "
                                                    "this model's keys have 16")
        self.fails("generate", "-p", "a", says="--model")
        for command in ["generate", "tokenize"]:
            self.fails(command, "-m", self.model, says="give -p or -f")
        self.fails("devices", "extra", says="extra")

    def test_empty_values(self):
        out = str(self.folder / "out.gguf")
        for option in ["--save-session", "--load-session", "--samplers", "--dry-breaker", "--stop", "--lora"]:
            self.run_fails(option, "", says=f"{option}: the value is empty")
            # CLI11 would take the next word.
            self.fails("generate", "-m", self.model, f"{option}=", "-p", "the", says=f"{option}: the value is empty")
        for option in ["--imatrix", "--output-type", "--token-embedding-type"]:
            self.fails("quantize", self.model, out, "q8_0", option, "", says=f"{option}: the value is empty")
        for args, name in [(["quantize", "", out, "q8_0"], "IN"), (["quantize", self.model, "", "q8_0"], "OUT"),
                           (["generate", "-m", "", "-p", "a"], "--model"), (["embed", "-m", self.model, "-f", ""], "--file"),
                           (["imatrix", "-m", self.model, "-f", "", "-o", out], "--file"),
                           (["imatrix", "-m", self.model, "-f", out, "-o", ""], "--output"),
                           (["perplexity", "-m", self.model, "-f", ""], "--file"),
                           (["tokenize", "-m", self.model, "-f", ""], "--file"), (["help", ""], "COMMAND")]:
            self.fails(*args, says=f"{name}: the value is empty")
        for name in ["", "  ", "\n"]:
            self.fails("inspect", name, says="model: the name is empty: ")
        self.assertIn("--stop=", self.ok("generate", "-m", self.model, "-n", "1", "-p", "--stop=")[0])
        # Empty texts have a meaning.
        for args in [["-p", ""], ["--prompt="], ["-p", "a", "--chat", "--system="]]:
            self.ok("generate", "-m", self.model, "-n", "1", *args)

    def test_biases_of_tokens_that_arent_there(self):
        for token in [40, 2**31 - 1]:
            self.run_fails("--logit-bias", f"{token}=1",
                           says=f"--logit-bias: token id out of range: {token}: the vocabulary has 40 tokens")
        self.run_fails("--logit-bias", "-1=1", says="logit_bias = -1: need token ids of at least 0")

    def test_words_that_arent_expected_keep_their_order(self):
        self.fails("inspect", "a", "b", "c", "d", says="The following arguments were not expected: b c d (see")
        self.fails("quantize", "a", "b", "f16", "c", "d", says="The following arguments were not expected: c d (see")
        self.fails("devices", "one", says="The following argument was not expected: one (see")
        self.fails("tokenize", "-m", self.model, "--", "-p", "x", says="The following arguments behind -- were not expected: -p x (see")
        self.fails("tokenize", "-m", self.model, "-p", "x", "--", "y", says="The following argument behind -- was not expected: y (see")

    def test_options_of_llama_cpp(self):
        for words, own in [("-ngl 99", "--gpu-layers"), ("--n-gpu-layers=99", "--gpu-layers"), ("-b 64", "--batch"),
                           ("-ub 64", "--batch"), ("-ctk q8_0", "--cache-type"), ("--temperature 1", "--temp"),
                           ("--repeat-penalty 1.1", "--repetition-penalty"), ("-l 3+1", "--logit-bias ID=N"),
                           ("--ctx-size 64", "--ctx"), ("--n-predict 5", "--tokens"), ("-r x", "--stop")]:
            name = words.split(" ")[0].split("=")[0]
            self.run_fails(*words.split(" "), says=f"wick: unknown option: {name}: use {own} (see wick generate --help)")
        self.run_fails("-fa", says="unknown option: -fa: leave it out: attention is always fused (see")
        self.run_fails("-s", "5", says="--system: works only with a chat template: add --chat; the random seed is --seed")
        self.fails("embed", "-m", self.model, "-p", "a", says="unknown option: -p: use TEXT without an option")
        self.fails("imatrix", "-m", self.model, "-p", "a", says="unknown option: -p: use --file")
        # A command that lacks wick's option doesn't suggest it; values of options aren't options.
        self.fails("inspect", "-ngl", "99", self.model, says="-ngl")
        self.ok("generate", "-m", self.model, "-n", "1", "-p", "-ngl")
        # Each suggestion is an option of a command, and no command has the other spelling.
        root = pathlib.Path(__file__).resolve().parents[2]
        rows = re.findall(r'\{"(-[^"]+)", "([^"]+)"', (root / "apps/wick/spellings.cpp").read_text())
        helps = {command: set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*|TEXT)\b", self.ok(command, "--help")[0]))
                 for command in ["generate", "chat", "embed", "tokenize", "quantize", "imatrix", "perplexity", "bench"]}
        self.assertGreater(len(rows), 50)
        for foreign, own in rows:
            if " " not in own:
                self.assertTrue(any(own in words for words in helps.values()), own)
                self.assertTrue(any(own in words and foreign not in words for words in helps.values()), foreign)

    def test_experts_that_arent_there(self):
        for value in ["1", "all"]:
            self.json("generate", "-m", self.model, "-p", "the", "-n", "1", "--device", "cpu", "--cpu-experts", value,
                      warns=["--cpu-experts: ignored: no GPU is used, so all layers are on the CPU"])
        self.json("generate", "-m", self.model, "-p", "the", "-n", "1", "--device", "cpu", "--cpu-experts", "auto")

    def test_patterns_that_fit_no_weight(self):
        out = str(self.folder / "out.gguf")
        run = ["quantize", str(self.folder / "tiny-f32.gguf"), out, "q8_0", "--tensor-type", "attn=q4_0", "--tensor-type",
               "no*such=q4_0"]
        _, err = self.ok(*run)
        self.assertEqual(err, "wick: warning: --tensor-type: no weight gets the type of 'no*such'\n")
        self.assertEqual(self.json(*run)["unused_patterns"], ["no*such"])
        os.remove(out)

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

    def test_adapters(self):
        folder = self.folder / "adapter"
        folder.mkdir()
        self.run_fails("--lora", str(folder), says=f"{folder}/adapter_config.json")
        (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "use_qalora": true}')
        self.run_fails("--lora", f"{folder}=0.5", says="adapter_config.json: value isn't supported: use_qalora")
        (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
        self.run_fails("--lora", f"{folder}=0.5", says=f"{folder}/adapter_model.safetensors")
        (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
        self.run_fails("--lora", f"{folder}=half", says="--lora: not a scale: 'half'")
        self.run_fails("--lora", f"{folder}=inf", says="--lora: not a scale: 'inf'")
        # An = in a path: the last one counts, and a path that exists as a whole wins.
        odd = self.folder / "a=b"
        shutil.copytree(folder, odd)
        self.run_fails("--lora", f"{odd}", says=f"{odd}: adapter has no factors")
        self.run_fails("--lora", f"{odd}=0.5", says=f"{odd}: adapter has no factors")
        self.run_fails("--lora", f"{odd}=half", says="--lora: not a scale: 'half'")
        shutil.copytree(folder, self.folder / "a=0.5")
        self.run_fails("--lora", f"{self.folder}/a=0.5", says=f"{self.folder}/a=0.5: adapter has no factors")
        self.run_fails("--lora", f"{self.folder}/a=0.5=2", says=f"{self.folder}/a=0.5: adapter has no factors")
        self.run_fails("--lora", f"{self.folder}/none=c", says=f"{self.folder}/none=c")
        self.run_fails("--lora", self.model, says="not an adapter")
        self.run_fails("--lora", str(folder), says=f"{folder}: adapter has no factors")

    def test_hopeless_texts_are_not_encoded(self):
        """Texts of many times the context are refused by their length, before they become tokens."""
        text = self.folder / "hopeless"
        text.write_text("the hat " * 200_000)
        says = "the text is too long: 1"
        for args in [["generate", "-f", str(text)], ["generate", "--chat", "-f", str(text)]]:
            self.fails(*args, "-m", self.model, "--ctx", "12", says=says)
        self.fails("embed", "-m", self.model, "-f", str(text), says=f"{text}: line 1: tokenize: {says}")
        self.fails("chat", "-m", self.model, "--ctx", "12", stdin=text.read_text() + "\n", says="the text is too long: ")
        self.ok("tokenize", "-m", self.model, "-f", str(text))

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
        # As cp does, the command writes through a symbolic link.
        other = self.folder / "other.gguf"
        other.write_bytes(b"old")
        link.symlink_to("other.gguf")
        self.ok("quantize", source, str(link), "q8_0")
        self.assertTrue(link.is_symlink())
        self.assertEqual(other.read_bytes()[:4], b"GGUF")
        link.unlink()
        other.unlink()
        files = sorted(self.folder.iterdir())
        for target in [str(self.folder), str(self.folder / "no" / "such" / "out.gguf"),
                       source + "/out.gguf", "/dev/full", ""]:
            self.fails("quantize", source, target, "q8_0")
        limit = 4096  # limit on the size of files, which a signal announces first
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
        # Files that the command opens must not become its standard streams.
        source, out = str(self.folder / "tiny-f32.gguf"), self.folder / "closed.gguf"
        shell = f"'{ARGS.wick}' quantize '{source}' '{out}' q8_0 <&- >&- 2>&-"
        done = subprocess.run(["sh", "-c", shell], timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.ok("inspect", str(out))
        out.unlink()

    def test_standard_input_that_cannot_be_read(self):
        out = str(self.folder / "out.gguf")
        for command in [["generate", "-f", "-"], ["tokenize", "-f", "-"], ["perplexity", "-f", "-"], ["embed", "-f", "-"],
                        ["imatrix", "-f", "-", "-o", out], ["chat"]]:
            shell = " ".join(f"'{word}'" for word in [ARGS.wick, *command, "-m", self.model])
            for source, says in [("<&-", "it is closed"), (f"<'{self.folder}'", "Is a directory")]:
                done = subprocess.run(["sh", "-c", f"{shell} {source}"], capture_output=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr.decode()),
                                 (2, b"", f"wick: stdin: cannot read: {says}\n"), (command, source))


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(**keys):
    """Returns a GGUF file with metadata only: strings and u16 numbers. In keys, "__" stands for a dot."""
    entries = b""
    for key, value in keys.items():
        entries += text(key.replace("__", "."))
        if isinstance(value, str):
            entries += struct.pack("<I", 8) + text(value)
        elif isinstance(value, list):
            entries += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        else:
            entries += struct.pack("<IH", 2, value)
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + entries
    return head + bytes(-len(head) % 32) + bytes(32)


class Loading(Cli):
    """For a file that can't be run, the first error concerns its split into several files, its architecture, its
    vocabulary or its split pattern, in this order."""

    def models(self, path):
        return [["generate", "-m", path, "-p", "a"], ["chat", "-m", path],
                ["bench", "-m", path, "-n", "1"], ["perplexity", "-m", path, "-f", "/dev/null"]]

    def write(self, **keys):
        path = self.folder / "made.gguf"
        path.write_bytes(gguf(**keys))
        return str(path)

    def test_architectures(self):
        for architecture in ["rwkv6", "dbrx", "mamba", "t5", "grok", "gpt_oss", "Llama"]:
            for model, pre in [("llama", "default"), ("gpt2", "no-such"), ("gpt2", "qwen2"), ("t5", "")]:
                path = self.write(general__architecture=architecture, tokenizer__ggml__model=model,
                                  tokenizer__ggml__pre=pre, tokenizer__ggml__tokens=["a"])
                for args in self.models(path):
                    text = self.fails(
                        *args, says=f"unsupported architecture: '{architecture}': this version supports llama, ")
                    for known in ["qwen2", "qwen3", "phi3", "gemma", "gemma2", "gemma3"]:
                        self.assertIn(f" {known}, ", text)
        path = self.write(general__architecture="mamba")  # and without a vocabulary
        for args in self.models(path):
            self.fails(*args, says="unsupported architecture: 'mamba'")

    def test_vocabularies(self):
        for model in ["rwkv", "other"]:
            for pre in ["default", "no-such", "smollm"]:
                path = self.write(general__architecture="qwen2", tokenizer__ggml__model=model,
                                  tokenizer__ggml__pre=pre, tokenizer__ggml__tokens=["a"])
                for args in [["generate", "-m", path, "-p", "a"], ["chat", "-m", path],
                             ["tokenize", "-m", path, "-p", "a"]]:
                    self.fails(*args, says=f"unsupported vocabulary: '{model}': need gpt2 or gemma4 (BPE), "
                                           "llama or t5 (SentencePiece), bert (WordPiece) or none")
        # A file with an unknown split pattern is read, with a warning.
        path = self.write(general__architecture="llama", tokenizer__ggml__model="gpt2",
                          tokenizer__ggml__pre="no-such", tokenizer__ggml__tokens=["a"])
        result = self.json("tokenize", "-m", path, "-p", "a", warns=[
            f"{path}: unknown pre-tokenizer 'no-such': text is split by the pattern of 'default', and the tokens may "
            "differ from the model's"])
        self.assertEqual(result["tokens"], [0])
        path = self.write(general__architecture="gemma3", tokenizer__ggml__model="llama",
                          tokenizer__ggml__tokens=["a"])
        self.fails("tokenize", "-m", path, "-p", "a",
                   says="tokens and scores differ in number: 1 tokens, 0 scores")

    def test_parts(self):
        for count in [2, 3, 99]:
            for part in [0, 1, count - 1, count]:
                which = f"part {part + 1} of {count}" if part < count else f"split.no = {part} of {count}"
                says = f"file is one part of a split model: {which}"
                first = {"general__architecture": "mamba"} if part == 0 else {}
                path = self.write(**first, split__no=part, split__count=count)
                for args in [*self.models(path), ["tokenize", "-m", path, "-p", "a"],
                             ["quantize", path, str(self.folder / "out.gguf"), "q8_0"]]:
                    self.assertIn("-00001-of-00002.gguf", self.fails(*args, says=says))
                self.ok("inspect", path)
        whole = self.write(general__architecture="mamba", split__no=0, split__count=1)
        self.fails("generate", "-m", whole, "-p", "a", says="unsupported architecture")


class Environment(Cli):
    """An invalid value of a WICK_ variable is an error; an unknown variable is a warning."""
    CHOICES = ["WICK_GPU_ATTENTION", "WICK_GPU_CONV", "WICK_GPU_GEMM", "WICK_GPU_IMAGES",
               "WICK_GPU_LIBRARIES", "WICK_GPU_LINEAR", "WICK_GPU_POOL", "WICK_GPU_RECORD", "WICK_PRECISION",
               "WICK_REPRODUCIBLE"]

    def commands(self):
        words = self.folder / "words"
        words.write_text("the hat and the can")
        return [["generate", "-m", self.model, "-p", "the", "-n", "1"], ["chat", "-m", self.model],
                ["bench", "-m", self.model, "-p", "4", "-n", "1", "-r", "1"],
                ["perplexity", "-m", self.model, "-f", str(words)],
                ["tokenize", "-m", self.model, "-p", "the"], ["inspect", self.model], ["devices"],
                ["quantize", str(self.folder / "tiny-f32.gguf"), str(self.folder / "o.gguf"), "q8_0"]]

    def test_bad_values(self):
        bad = [(name, value, name + ": no such choice: ") for name in self.CHOICES
               for value in ["2", "perhaps", "ON", " "]]
        bad += [("WICK_KERNEL_CACHE_MIB", value, "WICK_KERNEL_CACHE_MIB: not a size: ")
                for value in ["x", "-1", "1.5", "1e3", "99999999999999999999", "4 MiB"]]
        bad += [("WICK_KERNEL_CACHE", self.model, "WICK_KERNEL_CACHE: not a folder: "),
                ("WICK_CPU_ISA", "v9", "WICK_CPU_ISA: not available on this machine: 'v9'")]
        for name, value, says in bad:
            for args in self.commands():
                self.fails(*args, env={name: value}, says=says)
            for args in [["--help"], ["--version"], ["help"]]:
                self.ok(*args, env={name: value})

    def test_good_values(self):
        for name, value in [("WICK_REPRODUCIBLE", "1"), ("WICK_GPU_IMAGES", "off"),
                            ("WICK_GPU_LIBRARIES", "only"), ("WICK_KERNEL_CACHE", "off"),
                            ("WICK_KERNEL_CACHE", str(self.folder / "none")),
                            ("WICK_KERNEL_CACHE_MIB", "0"), ("WICK_REPRODUCIBLE", ""),
                            ("WICK_EMU_DEVICES", "gfx1100"), ("WICK_TEST_MODEL", "x"),
                            ("WICK", "x"), ("MY_WICK_X", "x"), ("WICK_UNKNOWN", "")]:
            _, err = self.ok("inspect", self.model, env={name: value})
            self.assertEqual(err, "", name)

    def test_an_empty_value_is_none(self):
        names = self.documented() | {"WICK_UNKNOWN"}
        plain, _ = self.ok("devices", env={})
        for env in [{name: ""} for name in names] + [dict.fromkeys(names, "")]:
            for args in [["devices"], ["inspect", self.model],
                         ["generate", "-m", self.model, "-p", "the", "-n", "1"]]:
                out, err = self.ok(*args, env=env)
                self.assertNotIn("WICK_", err, (args, env))
            self.assertEqual(self.ok("devices", env=env)[0], plain, env)

    def documented(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        return set(re.findall(r"`(WICK_[A-Z_]+)(?:=[^`]*)?`",
                              (root / "docs/design/architecture.md").read_text()))

    def test_unknown_names(self):
        for name, nearest in [("WICK_REPRODUCABLE", "WICK_REPRODUCIBLE"), ("WICK_TRACES", "WICK_TRACE"),
                              ("WICK_CPUISA", "WICK_CPU_ISA"), ("WICK_KERNELCACHE", "WICK_KERNEL_CACHE"),
                              ("WICK_CUDA_LIB", "WICK_CUDA_LIBRARY"), ("WICK_GPU_IMAGE", "WICK_GPU_IMAGES"),
                              ("WICK_", ""), ("WICK_FOO", ""), ("WICK_" + "X" * 300, ""),
                              ("WICK_two\nlines", "")]:
            for args in [["inspect", self.model], ["devices"], ["tokenize", "-m", self.model, "-p", "a"]]:
                _, err = self.ok(*args, env={name: "1"})
                hint = f": did you mean {nearest}?" if nearest else ""
                self.assertRegex(err, r"\Awick: warning: WICK_[^\n]*: unknown environment variable"
                                      + hint.replace("?", r"\?") + r"\n\Z")

    def test_the_table_is_whole(self):
        """The command knows every variable in the sources and the documentation."""
        root = pathlib.Path(__file__).resolve().parents[2]
        names = self.documented()
        for file in (root / "wick").rglob("*.cpp"):
            names |= set(re.findall(r'environment\w*\(\s*"(WICK_\w+)"', file.read_text()))
            names |= set(re.findall(r'"(WICK_\w+_LIBRARY)"', file.read_text()))
        self.assertGreater(len(names), 15)
        names -= {"WICK_REPRODUCIBLE", *self.CHOICES, "WICK_CPU_ISA", "WICK_KERNEL_CACHE_MIB"}
        for name in names:
            _, err = self.ok("inspect", self.model, env={name: "/none"})
            self.assertNotIn("unknown", err, name)

    def test_libraries_without_a_gpu(self):
        """The libraries of GPUs aren't looked for if none is used; a driver only with --device auto."""
        libraries = {name: "/none/lib.so" for name in self.documented() if name.endswith("_LIBRARY")}
        drivers = ["WICK_CUDA_LIBRARY", "WICK_HIP_LIBRARY"]
        self.assertLess(len(drivers) + 5, len(libraries))
        for args in self.commands():
            runs = "-m" in args and args[0] != "tokenize"
            _, err = self.ok(*args, *(["--device", "cpu"] if runs else []), env=libraries)
            self.assertNotIn("_LIBRARY", err, args)
            _, err = self.ok(*args, env=libraries)
            self.assertEqual(sorted(re.findall(r"WICK_\w+_LIBRARY", err)), drivers if runs else [], args)

    def test_trace_without_a_gpu(self):
        trace = str(self.folder / "trace.json")
        for args in self.commands():
            _, err = self.ok(*args, *(["--device", "cpu"] if "-m" in args and args[0] != "tokenize"
                                      else []), env={"WICK_TRACE": trace})
            self.assertEqual(err.count("wick: warning: WICK_TRACE: nothing is traced: "), 1, args)
        self.assertFalse(os.path.exists(trace))

    def test_context_beyond_training(self):
        for args in self.commands()[:2] + self.commands()[3:4]:
            for context, warned in [("256", False), ("257", True), ("1000", True)]:
                _, err = self.ok(*args, "-c", context)
                says = f"wick: warning: --ctx: {context} is more than the 256 tokens that the model was"
                self.assertEqual(says in err, warned, (args, context))


if __name__ == "__main__":
    sys.exit(main())
