// Rows that fail on purpose. tests/tools/grid_test.py checks the reports of their tests.

#include <algorithm>

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

bool is_gpu(const Backend& backend) { return backend.device().kind != DeviceKind::cpu; }

/// Fills a result on the host, whatever the device.
void fill_by_the_host(Backend& backend, const View& out) {
  const auto bytes = static_cast<size_t>(bytes_of(out.dtype, out.layout.elems()));
  std::vector<std::byte> host(bytes);
  backend.download(host.data(), out.data, bytes);
  std::fill(host.begin(), host.end(), std::byte{0});
  backend.upload(out.data, host.data(), bytes);
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
    run_everywhere("planted", out, {},
                   [](Backend& b, const View& o, auto) { b.fill(o, &b == last_here() ? 2 : 1); });
  });
  // A GPU has to compute itself. On CPUs these rows are right.
  add_row("by_the_host", "f32", [] {
    if (!here("contiguous")) return;
    TestTensor out(DType::f32, Place::contiguous, {4}, 0, true);
    run_everywhere("planted", out, {}, [](Backend& b, const View& o, auto) {
      if (is_gpu(b)) return fill_by_the_host(b, o);
      b.fill(o, 0);
    });
  });
  add_row("by_the_host_once", "f32", [] {
    if (!here("contiguous")) return;
    for (const Target& target : targets()) {
      TestTensor out(DType::f32, Place::contiguous, {4}, 0, true);
      const OnDevice there(*target.backend, out.storage());
      target.backend->fill(there.view(out.view()), 0);
      if (is_gpu(*target.backend)) fill_by_the_host(*target.backend, there.view(out.view()));
    }
  });
  add_row("no_kernel", "f32", [] {
    if (!here("contiguous")) return;
    TestTensor out(DType::f32, Place::contiguous, {4}, 0, true);
    run_everywhere("planted", out, {}, [](Backend& b, const View& o, auto) {
      if (!is_gpu(b)) b.fill(o, 0);
    });
  });
  add_row("never_called", "f32", [] {
    if (!here("contiguous") && !here("empty")) return;
    for (const Target& target : targets()) EXPECT_NE(target.backend, nullptr);
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
