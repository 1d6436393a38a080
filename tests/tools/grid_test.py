#!/usr/bin/env python3
"""Checks that the parity tests attribute each failure to the device that caused it, and to no other.

Usage: grid_test.py BINARY"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop()


def run(pattern, devices=None):
    """Returns {full name: "pass", "fail" or "skip"} and the exit status."""
    env = {key: value for key, value in os.environ.items() if key != "WICK_TEST_DEVICES"}
    if devices:
        env["WICK_TEST_DEVICES"] = devices
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = subprocess.run([BINARY, f"--gtest_filter={pattern}", f"--gtest_output=json:{report.name}"], env=env,
                              capture_output=True, text=True, check=False)
        verdicts = {}
        for suite in json.load(report)["testsuites"]:
            for test in suite["testsuite"]:
                verdict = "fail" if test.get("failures") else "skip" if test["result"] == "SKIPPED" else "pass"
                verdicts[f"{suite['name']}.{test['name']}"] = verdict
        return verdicts, done.returncode


class Grid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all, cls.code = run("*")
        cls.devices = sorted({name.split(".")[-1] for name in cls.all if name.startswith("Parity/")})
        cls.here = [d for d in cls.devices if cls.all[f"Parity/right.f32.sliced.{d}"] != "skip"]

    def failed(self, row):
        return {name for name, verdict in self.all.items() if name.startswith(f"Parity/{row}.") and verdict == "fail"}

    def test_names(self):
        for layout in "contiguous transposed broadcast sliced stepped empty rank0 rank8".split():
            for device in self.here:
                self.assertEqual(self.all[f"Parity/right.f32.{layout}.{device}"], "pass")

    def test_failures_are_laid_to_their_device(self):
        self.assertEqual(self.code, 1)
        self.assertEqual(self.failed("right"), set())
        # The slowest target fails; the others ran again without it and passed.
        self.assertEqual(self.failed("one_wrong"), {f"Parity/one_wrong.f32.sliced.{self.here[0]}"})
        self.assertEqual(self.failed("all_wrong"), {f"Parity/all_wrong.f32.stepped.{d}" for d in self.here})
        self.assertEqual(self.failed("throws"), {f"Parity/throws.f32.contiguous.{d}" for d in self.here})

    def test_a_device_that_differs(self):
        if len(self.here) > 1:
            self.assertEqual(self.failed("kernel_differs"), {f"Parity/kernel_differs.f32.contiguous.{self.here[-1]}"})

    def test_one_name_alone(self):
        name = f"Parity/one_wrong.f32.sliced.{self.here[0]}"
        self.assertEqual(run(name), ({name: "fail"}, 1))
        name = f"Parity/right.f32.rank8.{self.here[-1]}"
        self.assertEqual(run(name), ({name: "pass"}, 0))

    def test_references_are_shared(self):
        self.assertEqual(self.all["Parity.the_references"], "pass")

    def test_absent_devices_are_skipped(self):
        verdicts, code = run("Parity/right.*", "cuda:63,nonsense")
        self.assertEqual(code, 0)
        self.assertEqual(verdicts["Parity/right.f32.sliced.cuda:63"], "skip")
        self.assertEqual(verdicts["Parity/right.f32.sliced.nonsense"], "skip")
        self.assertEqual(verdicts[f"Parity/right.f32.sliced.{self.here[-1]}"], "pass")


if __name__ == "__main__":
    unittest.main()
