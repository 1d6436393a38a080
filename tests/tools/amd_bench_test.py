#!/usr/bin/env python3
"""Tests what the benchmarks about AMD GPUs say of wrong options and files. Usage: amd_bench_test.py ROOT"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
KERNEL = {"name": "k", "architecture": "gfx1100", "launches": 2, "waves": 8, "groups": 4, "waves_per_simd": 4, "matrix_cycles": 0,
          "instructions": {"total": 90, "valu": 60, "vmem": 8, "smem": 4}, "lds": {"accesses": 0, "conflict_cycles": 0},
          "global": {"touched_bytes": 4096, "transactions_64": 64}}


class Benchmarks(unittest.TestCase):
    def call(self, script, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "bench" / script), *map(str, arguments)], capture_output=True,
                              text=True, check=False)

    def fails(self, text, *command):
        done = self.call(*command)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        self.assertIn(text, done.stderr)

    def test_options(self):
        for script in ("amd_economy.py", "amd_times_check.py"):
            self.fails("there is no /none", script, "--library", "/none")
        with tempfile.NamedTemporaryFile() as library:
            some = "amd_economy.py", "--library", library.name
            self.fails("invalid choice: 'gfx1'", *some, "--architectures", "gfx1")
            self.fails("no model has nothing in its name", *some, "--models", "nothing")
            self.fails("no wick binary at /none", *some, "--wick", "/none")
            self.fails("there is no folder /none", *some, "--wick", sys.executable, "--out", "/none/x")
            some = "amd_times_check.py", "--library", library.name
            self.fails("invalid choice: 99", *some, "--rows", "99")
            self.fails("there is no /none", *some, "--folder", "/none")
        self.fails("there is no /none", "peers/llama_rocm.py", "/none", "1", "1")
        self.fails("invalid ids value: 'a'", "peers/llama_rocm.py", __file__, "a", "1")
        self.fails("there is no /none", "peers/ggml_rocm.py", "--library", "/none")

    def test_profiles(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "profile.json"
            self.fails("No such file", "amd_times.py", file)
            for text in ("", "[", "[]", "{}", '{"kernels": 5}', '{"kernels": [5]}'):
                file.write_text(text)
                self.fails("isn't a profile of the emulator", "amd_times.py", file)
            for key, value in (("launches", 0), ("waves", None), ("global", []), ("architecture", "gfx1"), ("architecture", [])):
                file.write_text(json.dumps({"kernels": [{**KERNEL, key: value}]}))
                self.fails("isn't a profile of the emulator", "amd_times.py", file)
            file.write_text(json.dumps({"kernels": [KERNEL]}))
            self.assertEqual(self.call("amd_times.py", file).returncode, 0)


if __name__ == "__main__":
    unittest.main()
