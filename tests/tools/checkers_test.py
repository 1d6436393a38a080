#!/usr/bin/env python3
"""Checks that each checker of tools/ finds its violation in a small tree that contains one."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def layers(files):
    """Returns the output of check_layers.py for a tree with these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "layers.txt").write_text("math\nbase math\nbackend base backend/cpu\n"
                                         "backend/cpu base math backend\napps *\n")
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        done = subprocess.run([sys.executable, TOOLS / "check_layers.py", "--root", folder],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class Layers(unittest.TestCase):
    def breach(self, path, text, says):
        code, out = layers({path: text})
        self.assertEqual(code, 1, out)
        self.assertIn(says, out)
        self.assertIn(path, out)

    def test_clean(self):
        code, out = layers({"wick/base/a.cpp": '#include "wick/math/b.h"\n#include <vector>\n',
                            "apps/x/main.cpp": '#include "wick/base/a.h"\n'})
        self.assertEqual((code, out), (0, "layers: clean\n"))

    def test_breaches(self):
        self.breach("wick/math/a.h", '\n#include "wick/base/b.h"\n',
                    "wick/math/a.h:2: math must not")
        self.breach("wick/base/a.cpp", '#include "wick/backend/cpu/x.h"\n', "base must not include")
        self.breach("wick/other/a.cpp", "int x;\n", "no line in layers.txt")
        self.breach("wick/base/a.h", "#include <fmt/format.h>\n", "standard headers only")
        self.breach("wick/base/a.h", "#include <nlohmann/json.hpp>\n", "standard headers only")
        self.breach("wick/base/a.cpp", "int r = cuInit(0);\n", "vendor name 'cuInit'")
        self.breach("apps/x/a.cpp", "hipMalloc(&p, 1);\n", "vendor name 'hipMalloc'")


class Kernels(unittest.TestCase):
    """The interface between the host and the GPU kernels."""
    CLEAN = {
        "kernels/x/x_abi.h": "struct CopyArgs {\n};\ninline constexpr u32 kTile = 64, kSide = 8;\n",
        "kernels/x/x.gpu": "WICK_KERNEL(copy, CopyArgs, wick::gpu::kTile) { f(args.out); }\n",
        "x/x.cpp": 'const KernelFamily<CopyArgs, DType> kCopy("x", "copy");\nconstexpr int kMost = 3;\n',
    }

    def check(self, path="", text=""):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**self.CLEAN, **({path: text} if path else {})}.items():
                file = pathlib.Path(folder) / "wick/backend/gpu" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            done = subprocess.run([sys.executable, TOOLS / "check_kernels.py", "--root", folder],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_clean(self):
        self.assertEqual(self.check(), (0, "kernels: clean\n"))
        # A constant with the same name but another number is allowed, and so is one defined by another name.
        self.assertEqual(self.check("y/y.cpp", "constexpr int64_t kTile = 32, kRows = kSide;\n")[0], 0)

    def test_breaches(self):
        for path, text, says in (
                ("y/y.cpp", "constexpr int64_t kRows = 1, kTile = 64;\n", "kTile = 64 is also defined in"),
                ("y/y.cpp", "constexpr int64_t kRows = 1;  // as in kernels/x/x.gpu\n", "y/y.cpp:1: 'as in kernels/"),
                ("kernels/x/y.gpu", "WICK_KERNEL(f, FillArgs, 64) {}\n", "f takes FillArgs, which no *_abi.h declares"),
                ("kernels/x/y.gpu", 'extern "C" __global__ void f(int x) {}\n', "declare kernels by WICK_KERNEL"),
                ("kernels/x/y.h", "#pragma unroll 3\n", "kernels/x/y.h:1: '#pragma unroll 3': unroll by a power of two"),
                ("kernels/x/y.h", "#if __AMDGCN_WAVEFRONT_SIZE__ == 64\n", "kernels/x/y.h:1: newer compilers lack"),
                ("kernels/y/y_abi.h", "struct FillArgs {\n};\n", "no kernel takes FillArgs"),
                ("kernels/y/y_abi.h", "struct FillArgs {\n};\n", "no KernelFamily is of FillArgs")):
            code, out = self.check(path, text)
            self.assertEqual(code, 1, text)
            self.assertIn(says, out)


class Symbols(unittest.TestCase):
    def check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder) / "wick" / "wick_kernels_x_v3.dir"
            home.mkdir(parents=True)
            (home / "a.cpp").write_text(source)
            subprocess.run(["g++", "-O1", "-c", "a.cpp", "-o", "a.cpp.o"], cwd=home, check=True)
            done = subprocess.run([sys.executable, TOOLS / "check_symbols.py", folder],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_symbols(self):
        table = "namespace wick::cpu { extern const int table[]; const int table[] = {1, 2}; }\n"
        self.assertEqual(self.check(table)[0], 0)
        code, out = self.check("inline int f() { return 1; } int (*p)() = &f;")
        self.assertEqual(code, 1)
        self.assertIn("weak symbol f()", out)
        self.assertIn("global symbol p", out)
        self.assertIn("publish it through the table", self.check("int g() { return 1; }")[1])

    def test_nothing_to_check_is_no_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, TOOLS / "check_symbols.py", folder],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)


class OpsDocs(unittest.TestCase):
    """The check of docs/ops.md fails if the page doesn't match the sources."""

    def check(self, path, old, new):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for part in ("wick/op", "wick/tensor", "wick/base", "wick/math", "wick/backend/gpu"):
                shutil.copytree(TOOLS.parent / part, root / part)
            (root / "docs").mkdir()
            shutil.copy(TOOLS.parent / "docs/ops.md", root / "docs/ops.md")
            text = (root / path).read_text()
            self.assertIn(old, text)
            (root / path).write_text(text.replace(old, new, 1))
            done = subprocess.run([sys.executable, TOOLS / "ops_docs.py", "--check", "--root", folder],
                                  capture_output=True, text=True, check=False)
            return done.returncode, done.stderr

    def test_as_it_is(self):
        self.assertEqual(self.check("docs/ops.md", "# Ops", "# Ops"), (0, ""))

    def test_stale(self):
        for path, old, new in (
                ("docs/ops.md", "`tanh`", "`tan`"),
                ("wick/op/ops.def", "Hyperbolic tangent", "The hyperbolic tangent"),
                ("wick/tensor/ops.h", "exp(x - max) / sum(exp(x - max)) along a dim",
                 "exp(x) / sum(exp(x)) along a dim"),
                ("wick/op/ops.def", "WICK_OP(softmax, Floats, tree, rule", "WICK_OP(softmax, Floats, tree, composed")):
            self.assertEqual(self.check(path, old, new),
                             (1, "ops_docs: docs/ops.md is stale: run tools/ops_docs.py\n"), path)

    def test_functions_of_no_row(self):
        code, out = self.check("wick/tensor/ops.h", "WICK_API Tensor softmax(", "WICK_API Tensor softmin(")
        self.assertEqual(code, 1)
        self.assertIn("functions of no row; name them in SERVES: softmin", out)


if __name__ == "__main__":
    unittest.main()
