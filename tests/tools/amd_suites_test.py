#!/usr/bin/env python3
"""Tests tools/amd_suites.py without a network and without the emulator. Usage: amd_suites_test.py ROOT"""

import contextlib
import functools
import hashlib
import http.server
import io
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tools"))

from rocm import amd_suites, packages, page, processes, report, suites, wheels  # noqa: E402


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder. endless: wheels don't end."""

    endless = False

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.endless or not self.path.endswith(".whl"):
            return super().do_GET()
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            return None


class Wheels(unittest.TestCase):
    """Triton's wheel, from an index in this process."""

    NAME = "triton-9.0-py3-none-any.whl"

    def setUp(self):
        context = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(context.__enter__())
        self.addCleanup(context.__exit__, None, None, None)
        self.index, self.cache = self.folder / "simple" / "triton", self.folder / "cache"
        self.index.mkdir(parents=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(self.folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        for name, value in (("PIP_CONFIG_FILE", os.devnull), ("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple"),
                            ("PIP_RETRIES", "0"), ("PIP_FIND_LINKS", "")):
            self.addCleanup(self.restore, name, os.environ.get(name))
            os.environ[name] = value
        with zipfile.ZipFile(self.index / self.NAME, "w") as wheel:
            wheel.writestr("triton/__init__.py", "x = 1\n")
            wheel.writestr("triton-9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: triton\nVersion: 9.0\n")
            wheel.writestr("triton-9.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr("triton-9.0.dist-info/RECORD", "")
        (self.index / "index.html").write_text(f'<a href="{self.NAME}">{self.NAME}</a>')
        data = (self.index / self.NAME).read_bytes()
        self.pins = dict(wheels.WHEELS)
        wheels.WHEELS["triton-9.0"] = wheels.Wheel("triton", "9.0", "{}.{}".format(*sys.version_info), len(data),
                                                   hashlib.sha256(data).hexdigest())

    def tearDown(self):
        wheels.WHEELS.clear()
        wheels.WHEELS.update(self.pins)

    @staticmethod
    def restore(name, value):
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    def fails(self, *parts):
        with self.assertRaises(packages.RocmError) as caught:
            wheels.unpacked("triton-9.0", self.cache)
        for part in parts:
            self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_a_wheel_is_unpacked_once(self):
        tree = wheels.unpacked("triton-9.0", self.cache)
        self.assertEqual((tree / "triton/__init__.py").read_text(), "x = 1\n")
        (tree / "triton/__init__.py").write_text("x = 2\n")
        wheels.unpacked("triton-9.0", self.cache)
        self.assertEqual((tree / "triton/__init__.py").read_text(), "x = 1\n")
        (self.index / self.NAME).unlink()  # it isn't fetched again
        self.assertEqual(wheels.unpacked("triton-9.0", self.cache), tree)
        self.assertEqual([path.name for path in self.cache.iterdir()], ["triton-9.0"])

    def test_a_missing_wheel_is_named(self):
        (self.index / self.NAME).unlink()
        (self.index / "index.html").write_text("")
        self.fails("triton 9.0 can't be had: ERROR: No matching distribution")

    def test_a_server_that_cant_be_reached(self):
        os.environ["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
        with self.assertRaises(packages.Unreachable) as caught:
            wheels.unpacked("triton-9.0", self.cache)
        self.assertEqual(str(caught.exception), "triton 9.0 can't be had: PyPI can't be reached")
        self.assertEqual(list(self.cache.iterdir()), [])
        triton = amd_suites.suite("Triton's kernels", "9.0", "triton", (), None, [[]])
        other = amd_suites.suite("nothing", "1", "gtest", (), None, [[]])
        runner = amd_suites.Runner(self.folder, self.cache)
        jobs = [(triton, "9.0", "gfx1100"), (triton, "9.0", "gfx90a"), (other, "1", "gfx1100")]
        self.assertEqual(runner.reachable(jobs), jobs[2:])
        self.assertEqual(processes.guarded("test", lambda: runner.reachable(jobs[:2])), 77)

    def test_a_changed_wheel_is_refused(self):
        data = bytearray((self.index / self.NAME).read_bytes())
        data[40] ^= 1
        (self.index / self.NAME).write_bytes(data)
        self.fails("triton 9.0 can't be had", "SHA-256")

    def test_half_a_wheel_is_refused(self):
        data = (self.index / self.NAME).read_bytes()
        (self.index / self.NAME).write_bytes(data[:len(data) // 2])
        self.fails("triton 9.0 can't be had", "SHA-256")

    def test_another_python_is_refused(self):
        wheels.check_python("triton-9.0")
        wheels.WHEELS["triton-9.0"] = wheels.WHEELS["triton-9.0"]._replace(python="2.7")
        with self.assertRaisesRegex(packages.RocmError, "triton 9.0 is pinned for Python 2.7"):
            amd_suites.Runner(self.folder, self.cache).prepare(
                [amd_suites.suite("Triton's kernels", "9.0", "triton", (), None, [[]])])

    def test_what_a_server_sends_for_ever(self):
        self.addCleanup(setattr, packages, "SPARE", packages.SPARE)
        packages.SPARE = 4096
        self.addCleanup(setattr, Server, "endless", False)
        Server.endless = True
        self.fails("triton 9.0 can't be had: more than", "bytes came")

    def test_a_server_that_sends_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            os.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
            self.addCleanup(setattr, packages, "PATIENCE", packages.PATIENCE)
            packages.PATIENCE = 5
            with self.assertRaisesRegex(packages.Unreachable, "PyPI can't be reached: nothing came in 5 s"):
                wheels.unpacked("triton-9.0", self.cache)

    def test_a_signal_while_a_wheel_is_fetched(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            os.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
            script = ROOT / "bench/peers/llama_rocm.py"
            child = subprocess.Popen([sys.executable, str(script), str(script), "1", "1", "--cache", str(self.cache)],
                                     stderr=subprocess.PIPE, text=True)
            silent.settimeout(60)
            connection = silent.accept()[0]
            self.assertTrue(list(self.cache.glob(".download-*")))
            child.terminate()
            said = child.communicate(timeout=60)[1]
            connection.close()
        self.assertEqual((child.returncode, said.splitlines()[-1]), (143, "llama_rocm: interrupted"))
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_peers_are_skipped_without_a_server(self):
        os.environ["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
        script = ROOT / "bench/peers/llama_rocm.py"
        done = subprocess.run([sys.executable, str(script), str(script), "1", "1", "--cache", str(self.cache)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                         (77, "llama_rocm: inferna-rocm 0.7.0 can't be had: PyPI can't be reached"))
        for kind in ("llama", "ggml"):
            suite = amd_suites.suite("peer", "0.7.0", kind, (), None, [[]])
            with self.assertRaises(packages.Unreachable):
                amd_suites.Runner(self.folder, self.cache).reachable([(suite, "0.7.0", "gfx1100")])


class Judges(unittest.TestCase):
    """What became of programs by what they print."""

    def run_script(self, judge, text, *arguments, calls=1):
        outcome = suites.Outcome()
        command = [sys.executable, "-c", text]
        judge([([*command, *arguments], list(arguments)) for _ in range(calls)], dict(os.environ), 20, outcome)
        return outcome

    def gemm(self, text):
        return self.run_script(amd_suites.run_gemms, text, "--a_type", "f16_r")

    def test_norms_of_errors(self):
        rocblas = "print('transA,M,us,norm_error_1'); print('N,128,5,{}')"
        hipblaslt = "print('[0]:transA,M,norm_error,atol'); print('    N,128,{},1e-6')"
        for text in (rocblas, hipblaslt):
            outcome = self.gemm(text.format(0))
            self.assertEqual((outcome.passed, outcome.failed), (1, 0))
            outcome = self.gemm(text.format("1e-9"))
            self.assertEqual((outcome.passed, outcome.why), (0, ["f16_r: the norm of the errors is 1e-09"]))
            outcome = self.gemm(text.format("nan"))
            self.assertEqual((outcome.passed, outcome.failed), (0, 1))
        for text in ("", "print('transA,us'); print('N,5')", rocblas.format(0) + "; raise SystemExit(1)",
                     rocblas.format(0) + "; print('wick-emu: kernel k: no')"):
            outcome = self.gemm(text)
            self.assertEqual((outcome.passed, outcome.failed), (0, 1), text)

    def test_what_miopen_verified(self):
        good = "print('Forward Convolution Verifies OK on GPU reference (0 < 1.5e-06)')"
        outcome = self.run_script(amd_suites.run_miopen, good, "conv")
        self.assertEqual((outcome.passed, outcome.failed), (1, 0))
        for text in ("", good + "; print('Backward Softmax FAILED: 0.2')", good + "; print('wick-emu: no')",
                     good + "; raise SystemExit(3)"):
            outcome = self.run_script(amd_suites.run_miopen, text, "conv")
            self.assertEqual((outcome.passed, outcome.failed), (0, 1), text)
        self.assertEqual(self.run_script(amd_suites.run_miopen, good, "conv", calls=2).passed, 2)

    def test_lines_of_own_programs(self):
        outcome = self.run_script(amd_suites.run_lines, "print('ok a'); print('bad b: 1 differs')")
        self.assertEqual((outcome.passed, outcome.why), (1, ["b: 1 differs"]))
        outcome = self.run_script(amd_suites.run_lines, "print('wick-emu: kernel k: no'); print('ok a'); print('ok b')")
        self.assertEqual((outcome.passed, outcome.why), (1, ["a: wick-emu: kernel k: no"]))
        outcome = self.run_script(amd_suites.run_lines, "print('skipped a: no Python')")
        self.assertEqual((outcome.passed, outcome.failed, outcome.skipped), (0, 0, 1))
        for text in ("", "print('ok a'); print('wick-emu: no')", "print('ok a'); raise SystemExit(1)"):
            self.assertEqual(self.run_script(amd_suites.run_lines, text).failed, 1, text)

    def llama(self, text):
        outcome = suites.Outcome()
        amd_suites.run_llama([sys.executable, "-c", text], dict(os.environ), 20, outcome)
        return outcome

    def test_tokens_of_llama(self):
        self.assertEqual(self.llama("print('[1, 2]')").passed, 1)
        outcome = self.llama("import sys; print('[1, 2]' if '--cpu' in sys.argv else '[1, 3]')")
        self.assertEqual(outcome.why, ["the CPU's tokens are [1, 2], the chip's [1, 3]"])
        for text in ("", "print('[1, 2]'); raise SystemExit(2)", "print('wick-emu: no'); print('[1, 2]')"):
            self.assertEqual((self.llama(text).passed, self.llama(text).failed), (0, 1), text)


class TheList(unittest.TestCase):
    def test_every_group_is_pinned(self):
        known = {package.group for package in packages.read_list()}
        for suite in amd_suites.all_suites():
            self.assertEqual(set(suite.groups) - known, set(), suite.name)
            self.assertLessEqual(set(suite.chips), set(amd_suites.CHIPS))
            self.assertLessEqual(set(amd_suites.wheels_of(suite)), set(wheels.WHEELS))
        keys = [(suite.name, suite.release) for suite in amd_suites.all_suites()]
        self.assertEqual(len(keys), len(set(keys)))

    def test_programs_of_the_repository_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            folder, source = pathlib.Path(folder), ROOT / "tools" / "rocm"
            processes.compile_c("cc", source / "smi.c", folder / "smi.so", "-shared", "-fPIC", "-Wall", "-Werror")
            processes.compile_c("c++", source / "rccl_calls.cpp", folder / "calls", "-std=c++20", "-Wall", "-Werror", "-ldl")
            done = subprocess.run([folder / "calls", "/no/hip", "/no/rccl"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stdout.startswith("bad start: /no/hip"))
            with self.assertRaisesRegex(packages.RocmError, "smi.c can't be compiled"):
                processes.compile_c("cc", source / "smi.c", folder / "no" / "smi.so", "-shared")


class Command(unittest.TestCase):
    def call(self, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "tools/amd_suites.py"), *arguments], capture_output=True, text=True,
                              check=False)

    def test_what_is_unknown_is_named(self):
        for arguments, text in ((("test", "nonsense"), "there is no suite nonsense"),
                                (("fetch", "nonsense"), "there is no suite nonsense"),
                                (("test", ""), "there is no suite "),
                                (("test", "--chips", "gfx1"), "there is no chip gfx1"),
                                (("test", "--chips", ","), "no chip was chosen"),
                                (("test", "RCCL", "--chips", "gfx942"), "RCCL doesn't run on gfx942"),
                                (("test", "--seconds", "nan"), "nan isn't above 0"),
                                (("--emulator", "/none", "test", "RCCL"), "make emu")):
            done = self.call(*arguments)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(text, done.stderr)

    def test_what_is_missing_is_named_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "lib").mkdir()
            (pathlib.Path(folder) / "lib" / "libwick_emu.so").touch()
            (pathlib.Path(folder) / "broken.json").write_text("[{}]")
            for arguments, text in ((("--build", "/none", "test", "gpu_libraries_test"), "/none/bin is missing"),
                                    (("test", "RCCL", "--record-to", folder + "/broken.json"), "row 1: suite is missing")):
                done = self.call("--emulator", folder, *arguments)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
                self.assertIn(text, done.stderr)

    def test_names(self):
        lines = self.call("test", "--list").stdout.splitlines()
        self.assertIn("rocblas-bench", lines)
        self.assertEqual(len(list(amd_suites.chosen(["rocPRIM"], ("gfx90a",)))), len(amd_suites.ROCPRIM))
        triton = amd_suites.chosen(["Triton"], ("gfx1100",))
        self.assertEqual([suite.release for suite, _, _ in triton], ["3.9.0", "3.6.0", "3.2.0"])
        one = list(amd_suites.chosen(["Triton's kernels 3.9.0"], ("gfx90a", "gfx1100")))
        self.assertEqual([(suite.release, chip) for suite, _, chip in one], [("3.9.0", "gfx1100"), ("3.9.0", "gfx90a")])


class Pages(unittest.TestCase):
    def test_results_are_shown(self):
        outcome = suites.Outcome()
        outcome.passed = 4
        outcome.fail("f16_r: the norm of the errors is 1")
        suite = next(suite for suite in amd_suites.all_suites() if suite.name == "rocblas-bench" and suite.release == "6.4.4")
        text = page.page([], [page.row_of(suite, "6.4.4", "gfx90a", outcome, 3)])
        self.assertIn("| rocblas-bench | 6.4.4 | not run | 4, **1 failed** | – |", text)
        self.assertIn("- rocblas-bench, 6.4.4, gfx90a: 1 failed.\n  - f16_r: the norm of the errors is 1\n", text)

    def test_failures_that_are_explained(self):
        known = {"chip": "gfx1100", "passed": 8, "failed": 1, "why": ["RocprimDeviceSelectTests/5.Flagged: Failure"]}
        other = {"chip": "gfx90a", "passed": 8, "failed": 1, "why": ["RocprimDeviceSelectTests/5.Flagged: Failure"]}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(report.summary([known], 0), 0)
            self.assertEqual(report.summary([known], 1), 1)
            self.assertEqual(report.summary([known, other], 0), 1)
        self.assertTrue(said.getvalue().startswith("8 passed, 1 failed, of which docs/amd.md explains 1\n"), said.getvalue())


if __name__ == "__main__":
    unittest.main()
