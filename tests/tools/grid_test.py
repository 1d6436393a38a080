#!/usr/bin/env python3
"""Checks that the parity tests attribute each failure to the device that caused it, and to no other, and that they
notice a GPU whose results the host computes.

Usage: grid_test.py [Grid | OnGpu] BINARY    OnGpu: on the GPU hip:0"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop()


def run(pattern, devices=None):
    """Returns {full name: "pass", "fail" or "skip"} and the exit status."""
    tests, code = report(pattern, devices)
    return {name: verdict for name, (verdict, _, _) in tests.items()}, code


def report(pattern, devices=None):
    """Returns {full name: (verdict, message, kernels that the GPU ran)} and the exit status."""
    env = {key: value for key, value in os.environ.items() if key != "WICK_TEST_DEVICES"}
    if devices:
        env["WICK_TEST_DEVICES"] = devices
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([BINARY, f"--gtest_filter={pattern}", f"--gtest_output=json:{file.name}"], env=env,
                              capture_output=True, text=True, check=False)
        tests = {}
        for suite in json.load(file)["testsuites"]:
            for test in suite["testsuite"]:
                verdict = "fail" if test.get("failures") else "skip" if test["result"] == "SKIPPED" else "pass"
                message = test["failures"][0]["failure"] if test.get("failures") else ""
                tests[f"{suite['name']}.{test['name']}"] = (verdict, message, test.get("device_work"))
        return tests, done.returncode


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


class OnGpu(unittest.TestCase):
    def test_the_gpu_computes(self):
        tests, code = report("Parity/*", "hip:0")
        self.assertEqual(code, 1)
        on_gpu = {name.removeprefix("Parity/"): test for name, test in tests.items() if name.endswith(".hip:0")}
        self.assertNotIn("skip", {test[0] for test in on_gpu.values()})
        for row, message in [("by_the_host", "ops on hip:0 copied 16 bytes to the host"),
                             ("by_the_host_once", "ops on hip:0 copied 16 bytes to the host"),
                             ("no_kernel", "no kernel of hip:0 ran"), ("never_called", "no kernel of hip:0 ran")]:
            verdict, text, _ = on_gpu[f"{row}.f32.contiguous.hip:0"]
            self.assertEqual(verdict, "fail", row)
            self.assertIn(message, text)
            # The CPU, which shares the test's operands, isn't at fault.
            self.assertEqual({test[0] for name, test in tests.items()
                              if name.startswith(f"Parity/{row}.") and ".cpu-" in name}, {"pass"})
        self.assertEqual(on_gpu["never_called.f32.empty.hip:0"][0], "pass")  # there is nothing to compute
        self.assertEqual(on_gpu["never_called.f32.empty.hip:0"][2], "0")
        self.assertGreater(int(on_gpu["kernel_differs.f32.contiguous.hip:0"][2]), 0)


if __name__ == "__main__":
    unittest.main()
