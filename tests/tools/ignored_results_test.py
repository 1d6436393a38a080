#!/usr/bin/env python3
"""Checks [[nodiscard]]: the compiler must warn about each ignored call in WARNED, and about no call in SILENT.

Usage: ignored_results_test.py COMPILER ROOT"""

import re
import subprocess
import sys
import tempfile

HEAD = """
#include "wick/graph/compile.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/ops.h"
using namespace wick;
void ignored(Tensor x, const Tensor& y, const Weight& weight, std::span<const Tensor> list, graph::Function f) {
"""
# Calls that only compute a result, which is ignored.
WARNED = """
x + y;
x * 2.0;
-x;
x < 1;
x[0];
x[{0, ellipsis}];
x.narrow(0, 0, 1);
x.slice(0, 0, 1);
x.t();
x.permute({1, 0});
x.split(std::vector<int64_t>{1}, 0);
x.chunk(2, 0);
x.flatten();
x.to(DType::f16);
x.requires_grad();
x.grad();
x.to_vector<float>();
x.item<float>();
x.str();
Tensor::zeros({1}, DType::f32);
Tensor::from<float>({1}, {1});
exp(x);
sum(x);
argmax(x, 0);
cat(list);
sort(x);
topk(x, 1);
cumprod(x);
linear(x, weight);
matmul(x, y);
attention(x, x, x);
batch_norm_of_batch(x);
median(x, 0);
unique_all(x);
unbind(x);
meshgrid(list);
equal(x, y);
allclose(x, y);
to_string(x);
gradients(x, list);
compile(f);
""".split("\n")[1:-1]
# Statements with a side effect, or with the result cast to void.
SILENT = """
(void)exp(x);
x += y;
x *= 2.0;
x = x + y;
slice_set(x, y, 0, 0);
const_set(x, 0);
x.zero_grad();
backward(x);
set_seed(1);
""".split("\n")[1:-1]


def main():
    compiler, root = sys.argv[1:]
    calls = WARNED + SILENT
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(HEAD + "\n".join(calls) + "\n}\n")
        source.flush()
        out = subprocess.run([compiler, "-std=c++20", "-Wall", "-fsyntax-only", f"-I{root}", source.name],
                             capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"the calls don't compile:\n{out.stderr}")
    warned = {int(line) for line in re.findall(r"\.cpp:(\d+):\d+: warning: .*(?:ignoring return|unused)", out.stderr)}
    first = HEAD.count("\n") + 1
    wrong = [f"no warning: {call}" for i, call in enumerate(WARNED) if first + i not in warned]
    wrong += [f"a warning: {call}" for i, call in enumerate(SILENT) if first + len(WARNED) + i in warned]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(WARNED)} calls whose results mustn't be ignored")


if __name__ == "__main__":
    main()
