#!/usr/bin/env python3
"""Checks that docs/parity-results.md is up to date with the result files, and that parity_table.py notices a change of
them and takes results of other devices.

Usage: parity_table_test.py ROOT"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PAGE, RESULTS = "docs/parity-results.md", "bench/results"


def table(root, *options):
    return subprocess.run([sys.executable, ROOT / "tools/parity_table.py", "--root", root, *options], capture_output=True,
                          text=True, check=False)


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "docs").mkdir()
        (self.root / RESULTS).mkdir(parents=True)
        shutil.copy(ROOT / PAGE, self.root / PAGE)
        for path in (ROOT / RESULTS).glob("*-parity-*.json"):
            shutil.copy(path, self.root / RESULTS)

    def test_the_page_is_up_to_date(self):
        done = table(ROOT, "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(table(self.root, "--check").returncode, 0)

    def test_each_changed_number_is_noticed(self):
        for path in sorted((self.root / RESULTS).glob("*-parity-*.json")):
            text = path.read_text(encoding="utf-8")
            result = json.loads(text)
            rows = result["devices"][sorted(result["devices"])[0]]
            dtypes = rows[sorted(rows)[0]]
            dtypes[sorted(dtypes)[0]][3] += 1
            path.write_text(json.dumps(result), encoding="utf-8")
            done = table(self.root, "--check")
            self.assertEqual(done.returncode, 1, path.name)
            self.assertIn("stale", done.stderr)
            path.write_text(text, encoding="utf-8")

    def test_another_device_adds_a_column(self):
        head = {"date": "2030-01-02", "chip": "NVIDIA H100", "host": "a host", "what": {"rows": "all", "layouts": "all"},
                "seconds": 9}
        new = {**head, "devices": {"cuda:0": {"add": {"f32": [7, 1, 0, 0]}, "no_such_row": {"f16": [0, 0, 0, 2]}}}}
        old = {**head, "date": "2030-01-01", "devices": {"cuda:0": {"add": {"f32": [1, 0, 0, 0]}}}}
        for result in (new, old):
            name = f"{result['date']}-parity-nvidia-h100.json"
            (self.root / RESULTS / name).write_text(json.dumps(result), encoding="utf-8")
        self.assertEqual(table(self.root, "--check").returncode, 1)
        self.assertEqual(table(self.root).returncode, 0)
        self.assertEqual(table(self.root, "--check").returncode, 0)
        page = (self.root / PAGE).read_text(encoding="utf-8")
        self.assertIn("| NVIDIA H100 | 2030-01-02 | NVIDIA H100 | all rows and layouts | 10 | 7 | 1 | 0 | 2 |", page)
        self.assertNotIn("2030-01-01", page)
        lines = [line for line in page.splitlines() if line.startswith("| add | f32 |")]
        self.assertEqual(len(lines), 1)
        self.assertIn("| 7 + 1 |", lines[0])
        self.assertIn("| 0, **2 failed** |", page)


if __name__ == "__main__":
    unittest.main()
