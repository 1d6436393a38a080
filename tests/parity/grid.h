#pragma once

// Names of parity tests: `Parity/silu.bf16.sliced.cpu-v3` is the row silu in bf16 with sliced
// operands on one device. All tests of one row, dtype and layout run at once: operands and
// reference are made once for all devices that the filter selects, their results are compared, and
// each test then reports the result of its device.

#include <functional>
#include <string>
#include <string_view>

#include "tests/parity/harness.h"

namespace wick::parity {

// A test fails if its GPU ran no kernel, unless the operands are empty, or if an op copied anything
// to the host. The property `device_work` of a test in GoogleTest's report is the number of kernels
// and copies that its GPU ran.

/// Returns the layout name in a test's name: contiguous, transposed, broadcast (some or all strides
/// are 0), sliced, stepped, scattered; empty for no elements; rank0 and rank8 for these ranks.
std::string_view layout_of(Place place, const Shape& shape);

/// Returns whether the running test includes a case. Every body asks this about each of its cases
/// before it makes anything. During registration a body runs once with the answer false each time,
/// which collects the layouts of its cases.
bool here(Place place, const Shape& shape);
inline bool here(const Geometry& g) { return here(g.place, g.shape); }
/// The same question by the layout's name.
bool here(std::string_view layout);

/// Adds tests `Parity/<row>.<dtype>.<layout>.<device>` for every device and every layout of which
/// `body` has cases. Call it while static objects are constructed: `const bool added = [] {
/// …add_row(…)…; return true; }();`
void add_row(std::string_view row, std::string_view dtype, std::function<void()> body);

/// Adds rows for each of some dtypes, or for each real dtype of an op's row. `check(dtype)` is the
/// body.
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

/// Adds a single test `Parity.<name>` that runs on all targets().
void add(const std::string& name, std::function<void()> body);

/// Returns whether the running body has failed so far.
bool failed();

/// Creates the GoogleTest tests of everything that was added. Called by main.
void register_tests();

}  // namespace wick::parity
