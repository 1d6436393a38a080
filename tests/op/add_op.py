"""Adds an op to copies of the sources, following docs/adding-an-op.md: softsign, in three places, and its
reference in the parity suite. add_reduction.py uses this module to add it and a reduction."""

import sys

# (file, the line after which the text is added, the text). The row is added last, so that object
# files of the unchanged tree can be linked, whose tables are shorter.
PLACES = [
    ("wick/op/ops.def",
     'WICK_OP(gated_delta_scan, ',
     'WICK_UNARY(softsign, Floats, exact, rule, "x / (1 + |x|)")\n'),
    ("wick/math/arithmetic.h",
     "/// x·by, rounded, plus a number, rounded.",
     """/// x/(1 + |x|). Worst 1.5 ulp.
template <Real T>
WICK_FN T softsign(T x) {
  return x / (T(1) + abs(x));
}
"""),
    ("wick/tensor/gradients.cpp",
     "    {Op::gelu_erf, {gelu_erf_rule}},",
     """    {Op::softsign, {WICK_GRADIENT({ v.to_x(v.grad() / sqr(plus(abs(v.x()), 1.0))); })}},
"""),
    # The reference for the parity tests.
    ("tests/parity/elementwise_test.cpp",
     "long double sigmoid(long double x)",
     "long double softsign(long double x) { return x / (1 + std::fabs(x)); }\n"),
]


def add(places, source, overlay):
    """Writes each file of `places` with the added text."""
    for name in dict.fromkeys(place[0] for place in places):
        lines = (source / name).read_text(encoding="utf-8").splitlines(keepends=True)
        for _, anchor, added in (place for place in places if place[0] == name):
            at = [i for i, line in enumerate(lines) if line.startswith(anchor)]
            if len(at) != 1:
                sys.exit(f"{name}: {len(at)} lines begin with {anchor!r}, not one")
            # A comment belongs to the code after it; a row ends with a bracket.
            where = at[0] if anchor.startswith("///") else at[0] + 1
            while name.endswith(".def") and not lines[where - 1].rstrip().endswith(")"):
                where += 1
            lines.insert(where, added)
        path = overlay / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
