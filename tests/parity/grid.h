#pragma once

// Names for parity tests: `Parity/silu.bf16.sliced.cpu-v3` is the row silu in bf16 with sliced
// operands on one device. Tests of one row, dtype and layout run as one: operands and reference are
// made once for all devices that the filter lets through, whose results are compared, and each test
// then says what was its device's.

#include <functional>
#include <string>
#include <string_view>

#include "tests/parity/harness.h"

namespace wick::parity {

/// The layout that a test's name says: contiguous, transposed, broadcast (some strides or all are
/// 0), sliced, stepped, scattered; of no elements empty, and by rank rank0 and rank8.
std::string_view layout_of(Place place, const Shape& shape);

/// Whether the running test is about a case; every body asks it about each of its cases, before it
/// makes anything. That is also how the layouts are found out that a row has cases of: a body runs
/// once and is told no each time.
bool here(Place place, const Shape& shape);
inline bool here(const Geometry& g) { return here(g.place, g.shape); }
/// Likewise by the layout's name.
bool here(std::string_view layout);

/// Adds tests `Parity/<row>.<dtype>.<layout>.<device>` for every layout that `body` has cases of
/// and every device. Call it while static objects are constructed: `const bool added = [] {
/// …add_row(…)…; return true; }();`
void add_row(std::string_view row, std::string_view dtype, std::function<void()> body);

/// The same for each of some dtypes, or for each real one that an op's row has: `check(dtype)` is
/// the body.
template <class Check>
void add_rows(std::string_view row, DTypeSet dtypes, const Check& check) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtypes.contains(dtype)) add_row(row, name(dtype), [=] { check(dtype); });
  }
}
template <class Check>
void add_rows(Op op, const Check& check) {
  add_rows(name(op), info(op).dtypes, check);
}

/// Adds a test `Parity.<name>` of something else, on whatever targets() are.
void add(const std::string& name, std::function<void()> body);

/// Whether the running body has failed so far.
bool failed();

/// Makes GoogleTest tests of what was added. For main.
void register_tests();

}  // namespace wick::parity
