"""Shared code of the tests of the wick command, which run it on tiny models with random weights.
Usage of each: NAME_test.py --wick BINARY --tiny-writer BINARY [--emulator LIBRARY] [--stand-in LIBRARY]
[CLASS…]. They exit with 77 if all requested tests had to be skipped."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

COMMANDS = ["generate", "chat", "bench", "perplexity", "embed", "tokenize", "inspect", "quantize", "imatrix",
            "devices", "help", "completion"]
TYPES = ["f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q8_0", "q4_k", "q6_k"]
ARGS = argparse.Namespace()


def wick(*args, env=None, stdin="", timeout=60, before=None):
    """Runs the command. Its output is returned as bytes, as a terminal receives it."""
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

    def json(self, *args, warns=(), **kwargs):
        """Returns the report of a command, and checks that its warnings on stderr contain `warns`."""
        out, err = self.ok(*args, "--json", **kwargs)
        self.assertEqual(len(err.splitlines()), len(warns), (args, err))
        for line, words in zip(err.splitlines(), warns):
            self.assertRegex(line, rf"\Awick: warning: {words}", args)
        return json.loads(out)

    def fails(self, *args, says="", **kwargs):
        """Checks that invalid input gives exit code 2, one line on stderr and nothing on stdout."""
        code, out, err = wick(*args, **kwargs)
        text = err.decode()
        self.assertEqual(code, 2, f"{args}: {text}")
        self.assertRegex(text, r"\Awick: [^\n]*\n\Z", args)
        self.assertIn(says, text, args)
        self.assertEqual(out, b"", args)
        return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wick", required=True)
    parser.add_argument("--tiny-writer", required=True)
    parser.add_argument("--emulator", default="", help="the runtime of a software AMD GPU")
    parser.add_argument("--stand-in", default="", help="a stand-in for NVIDIA's driver that runs no kernels")
    _, rest = parser.parse_known_args(namespace=ARGS)
    # The command leaves signals alone that are ignored when it starts, as SIGINT is in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    result = unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        return 1
    return 77 if result.skipped and result.testsRun == 0 else 0
