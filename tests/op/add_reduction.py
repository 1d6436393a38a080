#!/usr/bin/env python3
"""Adds two ops to copies of the sources, following docs/adding-an-op.md: softsign as in add_op.py, and the reduction
sum_of_squares, with kernels for CPUs and GPUs. Also adds their references in the parity suite. The build of tests/op
compiles the code that uses these copies and tests it.

Usage: add_reduction.py SOURCE_FOLDER OVERLAY_FOLDER"""

import pathlib
import sys

import add_op

PLACES = [
    # The row is added last, so that object files of the unchanged tree can be linked, whose tables
    # are shorter.
    ("wick/op/ops.def",
     "WICK_OP(gated_delta_scan, ",
     'WICK_REDUCE(sum_of_squares, Floats, tree, rule, "Sum of x * x; narrow floats accumulate in f32. The sum of no elements is 0.")\n'),
    ("wick/math/reducers.h",
     "/// Product of the elements.",
     """/// Sum of squares.
struct SumOfSquares : Sum {
  template <class A>
  static WICK_FN A map(A x) {
    return x * x;
  }
};

"""),
    ("wick/math/reducers.h",
     "#define WICK_REDUCERS(reducer)",
     "  reducer(sum_of_squares, SumOfSquares) \\\n"),
    ("wick/tensor/gradients.cpp",
     "    {Op::sum, {sum_rule}},",
     "    {Op::sum_of_squares, {WICK_GRADIENT({ v.to_x(kept_grad(v) * times(v.x(), 2)); })}},\n"),
]
# The reference for the parity tests.
REFERENCES = [
    ("tests/parity/reduce_reference.h",
     "    A y = 0;",
     """    if (op == Op::sum_of_squares) {
      for (A& v : values) v = v * v;
      op = Op::sum;
    }
"""),
]
MOST_FILES = 5


def main():
    files = {place[0] for place in PLACES}
    if len(files) > MOST_FILES:
        sys.exit(f"a reduction takes {len(files)} files: {' '.join(sorted(files))}")
    add_op.add(add_op.PLACES + PLACES + REFERENCES, *(pathlib.Path(p) for p in sys.argv[1:]))


if __name__ == "__main__":
    main()
