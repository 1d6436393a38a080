#!/usr/bin/env python3
"""Tests `wick imatrix`, and `wick quantize` with its files. See cli.py."""
import os
import pathlib
import signal
import subprocess
import sys
import time

from cli import ARGS, Cli, main
from cli_models_test import with_keys


class Imatrix(Cli):
    def setUp(self):
        self.text = self.folder / "text.txt"
        self.text.write_text("the hat and the can on the mat " * 20)
        self.out = self.folder / "imatrix.gguf"

    def imatrix(self, *extra, model="tiny-f32.gguf"):
        return self.json("imatrix", "-m", str(self.folder / model), "-f", str(self.text), "-o",
                         str(self.out), *extra)

    def test_imatrix(self):
        report = self.imatrix("-c", "32")
        self.assertEqual(report["chunk_size"], 32)
        self.assertEqual(report["tokens"], 32 * report["chunks"])
        self.assertEqual(report["weights"], 14)  # seven in each of two layers
        shown = self.json("inspect", str(self.out))
        names = [t["name"] for t in shown["tensors"]]
        self.assertIn("blk.1.ffn_down.weight.in_sum2", names)
        self.assertIn("blk.1.ffn_down.weight.counts", names)
        chunks = report["chunks"]
        self.assertEqual(self.imatrix("-c", "32", "--chunk", "1")["chunks"], chunks - 1)
        self.assertEqual(self.imatrix("-c", "32", "--chunks", "2")["chunks"], 2)
        out, err = self.ok("imatrix", "-m", str(self.folder / "tiny-f32.gguf"), "-f", str(self.text), "-o",
                           str(self.out))
        self.assertEqual(err, "wick: warning: imatrix: chunks of 256 tokens instead of 512: the model was trained for no "
                              "more\n")
        self.assertRegex(out, r"\A14 weights, \d+ chunks of \d+ tokens -> ")

    def test_quantize_with_it(self):
        self.imatrix("-c", "32")
        target = self.folder / "made.gguf"
        plain = self.json("quantize", str(self.folder / "tiny-f32.gguf"), str(target), "q4_0")
        before = target.read_bytes()
        report = self.json("quantize", str(self.folder / "tiny-f32.gguf"), str(target), "q4_0",
                           "--imatrix", str(self.out))
        self.assertEqual(report["types"], plain["types"])
        self.assertEqual(report["without_importance"], [])
        self.assertNotEqual(target.read_bytes(), before)
        self.assertIn("quantize.imatrix.file", self.json("inspect", str(target))["metadata"])
        self.json("generate", "-m", str(target), "-p", "the", "-n", "3", "--temp", "0")

    def test_types_of_few_bits(self):
        """The types that need a matrix are refused without one. Models of all types of few bits load and generate."""
        model, target = str(self.folder / "tiny-q8_k.gguf"), self.folder / "few-bits.gguf"
        for kind in ["iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m", "iq3_xxs", "iq3_xs"]:
            self.fails("quantize", model, str(target), kind, says="needs an importance matrix: blk.0.")
            self.assertFalse(target.exists())
        self.imatrix("-c", "32", model="tiny-q8_k.gguf")
        for kind, of_queries in [("iq1_s", "iq1_s"), ("iq1_m", "iq1_m"), ("iq2_xxs", "iq2_xxs"), ("iq2_xs", "iq2_xs"),
                                 ("iq2_s", "iq2_xs"), ("iq2_m", "iq2_s"), ("iq3_xxs", "iq2_s"), ("iq3_xs", "iq3_xxs"),
                                 ("iq3_s", "iq3_s"), ("iq3_m", "iq3_s"), ("tq1_0", "tq1_0"), ("tq2_0", "tq2_0"),
                                 ("nvfp4", "nvfp4"), ("q1_0", "q1_0"), ("q2_0", "q2_0")]:
            self.ok("quantize", model, str(target), kind, "--imatrix", str(self.out))
            types = {t["name"]: t["type"] for t in self.json("inspect", str(target))["tensors"]}
            self.assertEqual(types["blk.0.attn_q.weight"], of_queries, kind)
            made = self.json("generate", "-m", str(target), "-p", "the", "-n", "5", "--temp", "0", "--ignore-eos")
            self.assertEqual(len(made["tokens"]), 5, kind)

    def test_bad_input(self):
        model, target = str(self.folder / "tiny-f32.gguf"), str(self.folder / "no.gguf")
        run = ["imatrix", "-m", model, "-f", str(self.text), "-o", target]
        for extra, says in [(["-c", "0"], "--ctx: out of range: 0"),
                            (["-c", "100000"], "--ctx: out of range: 100000: the model was trained for 256"),
                            (["--chunk", "-1"], "--chunk: out of range"),
                            (["--chunk", "9999"], "no text after the first chunks"),
                            (["--chunks", "-1"], "--chunks: out of range"), (["--chunks", "x"], "--chunks")]:
            self.fails(*run, *extra, says=says)
        self.fails("imatrix", "-m", model, "-f", str(self.folder / "none"), "-o", target, says="none")
        self.fails("imatrix", "-m", model, "-f", str(self.text), "-o", "/no/such/folder/x", says="no such folder")
        # Before the work, and before the model is loaded.
        self.fails("imatrix", "-m", "/none", "-f", str(self.text), "-o", str(self.folder), says="Is a directory")
        for out in [model, str(self.text)]:
            before = pathlib.Path(out).read_bytes()
            self.fails("imatrix", "-m", model, "-f", str(self.text), "-o", out,
                       says=f"--output: input and output are the same file: {out}\n")
            self.assertEqual(pathlib.Path(out).read_bytes(), before)
        link = self.folder / "link.txt"
        link.symlink_to(self.text)
        self.fails("imatrix", "-m", model, "-f", str(self.text), "-o", str(link),
                   says=f"the same file: {self.text} and {link}\n")
        # Options are checked before the model is loaded.
        for extra in [["-c", "0"], ["--chunk", "-1"], ["--chunks", "-1"]]:
            self.fails("imatrix", "-m", "/none", "-f", str(self.text), "-o", target, *extra, says=": out of range: ")
        self.fails("imatrix", "-m", model, "-o", target, says="--file")
        self.fails("imatrix", "-m", model, "-f", str(self.text), says="--output")
        empty = self.folder / "empty.txt"
        empty.write_text("")
        self.fails("imatrix", "-m", model, "-f", str(empty), "-o", target, says="the text has no tokens")
        for bad, says in [(model, "not an importance matrix"), (str(self.text), "not an importance matrix"),
                          (str(self.folder / "none"), "none"), (str(empty), "empty")]:
            self.fails("quantize", model, target, "q4_0", "--imatrix", bad, says=says)
        self.fails("quantize", model, target, "q4_0", "--imatrix", str(self.text),
                   says=f"{self.text}: not an importance matrix: it is neither a GGUF file nor in llama.cpp's older format")
        self.imatrix("-c", "32")
        before = self.out.read_bytes()
        os.link(self.out, self.folder / "hard.gguf")
        for out in [self.out, self.folder / "hard.gguf"]:
            self.fails("quantize", model, str(out), "q4_0", "--imatrix", str(self.out),
                       says="quantize: input and output are the same file: ")
            self.assertEqual(self.out.read_bytes(), before)
        for args in [["quantize", str(self.out), target, "q4_0"], ["generate", "-m", str(self.out), "-p", "a"]]:
            self.fails(*args, says=f"{self.out}: not a model: it is an importance matrix")
        self.fails("quantize", str(self.folder / "tiny-q8_k.gguf"), target, "q4_0", "--imatrix",
                   str(self.out), says="importance matrix of another model")
        self.assertFalse(os.path.exists(target))

    def test_chunks_of_one_token(self):
        model = with_keys(self.folder / "tiny-f32.gguf", self.folder / "bos.gguf", {"tokenizer.ggml.add_bos_token": True},
                          prefix="")
        run = ["imatrix", "-m", model, "-f", str(self.text), "-o", str(self.folder / "bos.imatrix")]
        self.fails(*run, "-c", "1", says="imatrix: chunks of one token have no text: ")
        self.json(*run, "-c", "2")

    def test_notes(self):
        _, err = self.ok("imatrix", "-m", str(self.folder / "tiny-f32.gguf"), "-f", str(self.text), "-o", str(self.out),
                         "-c", "32", "-v")
        self.assertRegex(err, r"(?m)^\[ *[\d.]+ s\] memory: at most [\d.]+ \w+ resident; cpu: ")

    def test_interrupted(self):
        self.text.write_text("the hat and the can on the mat " * 200000)
        files = sorted(self.folder.iterdir())
        process = subprocess.Popen([ARGS.wick, "imatrix", "-m", str(self.folder / "tiny-f32.gguf"), "-f",
                                    str(self.text), "-o", str(self.folder / "no.gguf")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        self.assertIsNone(process.poll(), "the text is too short for this machine")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out, err), (130, b"", b""))
        self.assertEqual(sorted(self.folder.iterdir()), files)


if __name__ == "__main__":
    sys.exit(main())
