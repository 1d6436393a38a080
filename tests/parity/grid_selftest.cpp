// Rows that fail on purpose. tests/tools/grid_test.py checks the reports of their tests.

#include "tests/parity/grid.h"

namespace wick::parity {
namespace {

int64_t made = 0;  // number of references, independent of the number of devices

/// Returns the last backend that is present on this machine.
const Backend* last_here() {
  const Backend* last = nullptr;
  for (const Target& target : all_targets()) {
    if (target.backend != nullptr) last = target.backend;
  }
  return last;
}

void check(std::string_view wrong_on) {
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    ++made;
    for (const Target& target : targets()) {
      const Blame blame(target, g.name);
      if (target.name == wrong_on && g.name == "sliced") ADD_FAILURE() << "planted";
    }
    if (failed()) return;
  }
}

const bool added = [] {
  add_row("right", "f32", [] { check(""); });
  add_row("one_wrong", "f32", [] { check(all_targets().front().name); });
  add_row("all_wrong", "f32", [] {
    check("");
    if (here(Place::stepped, {3, 4})) ADD_FAILURE() << "planted";
  });
  add_row("throws", "f32", [] {
    if (here("contiguous")) throw std::runtime_error("planted");
  });
  add_row("kernel_differs", "f32", [] {
    if (!here("contiguous")) return;
    TestTensor out(DType::f32, Place::contiguous, {4}, 0, true);
    run_everywhere("planted", out, {}, [](Backend& b, const View& o, auto) {
      b.fill(o, &b == last_here() ? 2 : 1);
    });
  });
  // The name makes this test run last.
  add("the_references", [] {
    EXPECT_GE(made, 33);
    EXPECT_LE(made, 34) << "made once for each device";
  });
  return true;
}();

}  // namespace
}  // namespace wick::parity
