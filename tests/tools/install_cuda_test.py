#!/usr/bin/env python3
"""install_cuda_test.py SOURCE: tests how `make` installs NVIDIA's compilers on machines with and without a driver. The
driver is an empty library, pip is a module that writes the files or fails, and cmake is a script that reports its run."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
PIP = """
import pathlib, sys
if {works}:
    folder = pathlib.Path(sys.argv[sys.argv.index("--target") + 1]) / "nvidia" / "cu13"
    for name in ("bin/nvcc", "lib/libnvrtc.so.13"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
else:
    sys.exit("no network")
"""


class ForBuild(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("bin", "lib", "modules/pip", "build"):
            (self.root / name).mkdir(parents=True)
        (self.root / "modules" / "pip" / "__init__.py").write_text("")
        cmake = self.root / "bin" / "cmake"
        cmake.write_text(f'#!/bin/sh\necho "$@" >{self.root}/configured\n')
        cmake.chmod(0o755)
        (self.root / "build" / "CMakeCache.txt").write_text("WICK_NVCC:FILEPATH=WICK_NVCC-NOTFOUND\n")

    def run_it(self, driver=True, pip_works=True, **environment):
        """Runs it and returns its output. The exit status must always be 0."""
        (self.root / "modules" / "pip" / "__main__.py").write_text(PIP.format(works=pip_works))
        if driver:
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", self.root / "lib" / "libcuda.so.1"], check=True)
        # Hides a toolkit or a driver of this machine.
        names = '["libcuda.so.1"]' if driver else '["libwick-no-such-driver.so"]'
        code = (f"import sys, pathlib; sys.path.insert(0, '{SOURCE}/tools'); import install_cuda; "
                f"install_cuda.TOOLKIT = pathlib.Path('{self.root}/none'); install_cuda.DRIVERS = {names}; "
                f"sys.argv = ['install_cuda', '--for-build', '{self.root}/build']; sys.exit(install_cuda.main())")
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], text=True, capture_output=True, check=False,
            env={"PATH": str(self.root / "bin"), "HOME": str(self.root), "PYTHONPATH": str(self.root / "modules"),
                 "LD_LIBRARY_PATH": str(self.root / "lib"), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.splitlines()

    def configured(self):
        return (self.root / "configured").exists()

    def test_fetches_once_and_configures_again(self):
        said = self.run_it()
        self.assertEqual(len(said), 1)
        self.assertIn("fetching NVIDIA's kernel compilers from PyPI", said[0])
        self.assertIn("220 MB, once", said[0])
        nvcc = self.root / ".cache/wick/cuda/nvidia/cu13/bin/nvcc"
        self.assertTrue(os.access(nvcc, os.X_OK))
        self.assertTrue(self.configured())
        self.assertEqual(self.run_it(pip_works=False), [])

    def test_without_a_network_the_build_goes_on(self):
        said = self.run_it(pip_works=False)
        self.assertIn("building without kernels for NVIDIA (python3 tools/install_cuda.py, then make, adds them)", said[-1])
        self.assertFalse(self.configured())

    def test_off_is_one_line(self):
        said = self.run_it(WICK_CUDA_FETCH="off")
        self.assertEqual(len(said), 1)
        self.assertIn("WICK_CUDA_FETCH=off: building without kernels for NVIDIA", said[0])
        self.assertFalse((self.root / ".cache").exists())

    def test_without_a_driver_nothing_happens(self):
        self.assertEqual(self.run_it(driver=False), [])
        self.assertFalse((self.root / ".cache").exists() or self.configured())

    def test_a_toolkit_is_enough(self):
        nvcc = self.root / "bin" / "nvcc"
        nvcc.write_text("")
        nvcc.chmod(0o755)
        self.assertEqual(self.run_it(pip_works=False), [])
        self.assertTrue(self.configured())


if __name__ == "__main__":
    unittest.main()
