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
            for rows in result["devices"].values():
                for dtypes in rows.values():
                    for counts in dtypes.values():
                        counts[3] += 1
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
        self.assertIn("| NVIDIA H100 | 2030-01-02 | not recorded | NVIDIA H100 | – | all rows and layouts | 10 | 7 | 1 | 0 | 2 |",
                      page)
        self.assertNotIn("2030-01-01", page)
        lines = [line for line in page.splitlines() if line.startswith("| add | f32 |")]
        self.assertEqual(len(lines), 1)
        self.assertIn("| 7 + 1 |", lines[0])
        self.assertIn("| 0, **2 failed** |", page)

    def write(self, number, layouts, rows, **more):
        result = {"date": "2030-01-01", "finished": f"2030-01-01T0{number}:00:00Z", "commit": f"commit{number}",
                  "chip": "emulated gfx1", "checks": ["memory", "exact blocks"], "reports": 0, "host": "a host",
                  "what": {"rows": "all", "layouts": layouts}, "seconds": 9, **more, "devices": {"hip:0": rows}}
        name = f"2030-01-01-parity-emulated-gfx1-{number}.json"
        (self.root / RESULTS / name).write_text(json.dumps(result), encoding="utf-8")

    def made_page(self):
        done = table(self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.root / PAGE).read_text(encoding="utf-8")

    def cells_of(self, page, row):
        lines = [line for line in page.splitlines() if line.startswith(f"| {row} |")]
        self.assertEqual(len(lines), 1, lines)
        heads = next(line for line in page.splitlines() if line.startswith("| row |"))
        return lines[0].split(" | ")[heads.split(" | ").index("emulated gfx1")]

    def test_runs_of_other_layouts_add_up(self):
        self.write(1, "contiguous,empty", {"row_a": {"f32": [10, 1, 0, 0]}, "row_b": {"f32": [20, 0, 0, 0]},
                                           "row_c": {"f32": [30, 0, 0, 0]}, "linear": {"t_1": [40, 0, 0, 0]}})
        self.write(2, "stepped", {"row_a": {"f32": [100, 0, 0, 0]}, "linear": {"t_1": [400, 0, 0, 0]}})
        self.write(3, "contiguous,sliced", {"row_b": {"f32": [200, 0, 0, 0]}})
        page = self.made_page()
        self.assertEqual(self.cells_of(page, "row_a | f32"), "110 + 1")
        self.assertEqual(self.cells_of(page, "row_b | f32"), "200")  # contiguous isn't counted twice
        self.assertEqual(self.cells_of(page, "row_c | f32"), "30")
        self.assertEqual(self.cells_of(page, "linear | t_1"), "400")  # its tests have no layouts
        self.assertIn("| commit1 | emulated gfx1 | memory, exact blocks: no reports | layouts: contiguous,empty | 41 |", page)
        self.assertIn("| commit2 | emulated gfx1 | memory, exact blocks: no reports | layouts: stepped | 500 |", page)
        self.write(4, "all", {row: {"f32": [7, 0, 0, 0]} for row in ("row_a", "row_b", "row_c")}, reports=2, checks=[])
        self.write(5, "rank0", {"linear": {"t_1": [8, 0, 0, 0]}}, reports=1)
        page = self.made_page()
        for row in ("row_a | f32", "row_b | f32", "row_c | f32"):
            self.assertEqual(self.cells_of(page, row), "7")
        for gone in ("commit1", "commit2", "commit3"):
            self.assertNotIn(gone, page)
        self.assertIn("| commit4 | emulated gfx1 | none | all rows and layouts | 21 |", page)
        self.assertIn("| commit5 | emulated gfx1 | memory, exact blocks: 1 report | layouts: rank0 | 8 |", page)


if __name__ == "__main__":
    unittest.main()
