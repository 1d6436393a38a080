#!/usr/bin/env python3
"""Tests the wick command with model files that change while it reads them. See cli.py."""
import json
import os
import pathlib
import random
import subprocess
import sys
import time

from cli import ARGS, Cli, main, wick


class ChangingFiles(Cli):
    """Model files that another process truncates, overwrites, extends or replaces at random times.
    The command must give the correct result, or exit code 2 with one line, and no signal or other text."""
    SECONDS = 6

    def change(self, path, rng, pause):
        """Changes the file after a pause, while the command runs."""
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
            time.sleep(0.012)  # a change within a tick of the file's clock isn't detected
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


if __name__ == "__main__":
    sys.exit(main())
