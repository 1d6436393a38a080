#!/usr/bin/env python3
"""Models that lie in several files: split GGUF files and Hugging Face directories (see cli.py)."""
import json
import os
import pathlib
import subprocess
import sys

import cli
from cli import Cli


class ModelFiles(Cli):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([cli.ARGS.tiny_writer, "--files", str(cls.folder)], check=True, timeout=60)
        cls.whole = str(cls.folder / "tiny.gguf")
        cls.parts = [str(cls.folder / f"tiny-0000{i}-of-00003.gguf") for i in (1, 2, 3)]
        cls.directory = str(cls.folder / "qwen3")

    def test_parts(self):
        generate = ["-p", "the", "-n", "8", "--temp", "0"]
        expected = self.json("generate", "-m", self.whole, *generate)["tokens"]
        tensors = [t["name"] for t in self.json("inspect", self.whole)["tensors"]]
        target = str(self.folder / "joined.gguf")
        for part in self.parts:
            self.assertEqual(self.json("generate", "-m", part, *generate)["tokens"], expected)
            report = self.json("inspect", part)
            self.assertEqual(report["format"], "GGUF version 3 in 3 files")
            self.assertEqual(report["files"], self.parts)
            self.assertEqual(report["file_bytes"], sum(map(os.path.getsize, self.parts)))
            self.assertEqual([t["name"] for t in report["tensors"]], tensors)
            self.ok("quantize", part, target, "q8_0")
            self.assertEqual(self.json("generate", "-m", target, *generate)["tokens"], expected)
        os.rename(self.parts[1], self.parts[1] + "x")
        for args in [["generate", "-m", self.parts[0], "-p", "a"], ["inspect", self.parts[2]],
                     ["quantize", self.parts[0], target, "q8_0"]]:
            self.fails(*args, says="parts of the split model are missing: tiny-00002-of-00003.gguf")
        os.rename(self.parts[1] + "x", self.parts[1])

    def test_directory(self):
        report = self.json("inspect", self.directory)
        self.assertEqual(report["format"], "Hugging Face directory, 2 safetensors files")
        self.assertEqual(report["metadata"]["general.architecture"], "qwen3")
        self.assertIn("token_embd.weight", [t["name"] for t in report["tensors"]])
        self.assertNotIn("version", report)
        out, _ = self.ok("inspect", self.directory)
        self.assertIn("qwen3.block_count", out)
        target = str(self.folder / "qwen3.gguf")
        made = self.json("quantize", self.directory, target, "q8_0")
        self.assertEqual(made["bytes_out"], os.path.getsize(target))
        self.assertIn("q8_0", [t["type"] for t in made["types"]])
        for model in (self.directory, target):
            self.json("bench", "-m", model, "-p", "4", "-n", "2", "-r", "1")
        for shard in os.listdir(self.directory):
            if shard.endswith(".safetensors"):
                self.fails("quantize", self.directory, os.path.join(self.directory, shard), "q8_0",
                           says="input and output are the same file")
        os.chmod(os.path.join(self.directory, "model-00001-of-00002.safetensors"), 0o600)
        os.remove(target)
        self.ok("quantize", self.directory, target, "q8_0")
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)

    def test_tokenizer_of_a_directory(self):
        self.fails("generate", "-m", self.directory, "-p", "0", says="folder has no tokenizer.json")
        file = pathlib.Path(self.directory) / "tokenizer.json"
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        file.write_text(json.dumps({
            "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": byte_level,
            "decoder": byte_level, "post_processor": None,
            "model": {"type": "BPE", "vocab": {chr(ord("0") + i): i for i in range(40)}, "merges": []}}))
        target = str(self.folder / "with-tokenizer.gguf")
        self.ok("quantize", self.directory, target, "f32")
        made = {}
        for model in (self.directory, target):
            self.assertEqual(self.json("tokenize", "-m", model, "-p", "0123")["tokens"], [0, 1, 2, 3])
            made[model] = self.json("generate", "-m", model, "-p", "0413", "-n", "12", "--temp", "0",
                                    "--ignore-eos")["tokens"]
            self.assertEqual(len(made[model]), 12)
        self.assertEqual(made[self.directory], made[target])
        # Generation ends at every end token of generation_config.json.
        end = made[target][3]
        generation = pathlib.Path(self.directory) / "generation_config.json"
        generation.write_text(json.dumps({"eos_token_id": [2, end]}))
        ended = self.json("generate", "-m", self.directory, "-p", "0413", "-n", "12", "--temp", "0")
        stop = next(i for i, token in enumerate(made[target]) if token in (2, end))
        self.assertEqual(ended["tokens"], made[target][:stop])
        generation.unlink()
        file.write_text("{}")
        self.fails("generate", "-m", self.directory, "-p", "0", says="tokenizer.json")
        file.unlink()

    def test_invalid_directory(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for args in [["bench", "-m", str(empty)], ["inspect", str(empty)],
                     ["generate", "-m", str(empty), "-p", "a"],
                     ["quantize", str(empty), str(self.folder / "out.gguf"), "q8_0"]]:
            self.fails(*args, says="config.json")
        (empty / "config.json").write_text('{"model_type": "unknown"}')
        self.fails("inspect", str(empty), says="unsupported model_type: 'unknown'")


if __name__ == "__main__":
    sys.exit(cli.main())
