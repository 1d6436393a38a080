// How fast ops are on a GPU, each as a share of the speed of copying on it, as lines of JSON.
//
//   gpu_bench DEVICE [--small] [--filter TEXT]
//
// Times are the device's, of calls in a row on memory that isn't in its caches. Rows are in the
// files gpu_bench_*.cpp.

#include "bench/gpu_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "wick/base/error.h"

namespace wick::bench {
namespace {

std::vector<std::function<void(GpuBench&)>>& families() {
  static std::vector<std::function<void(GpuBench&)>> all;
  return all;
}

}  // namespace

bool add_rows(std::function<void(GpuBench&)> rows) {
  families().push_back(std::move(rows));
  return true;
}

Arrays::Arrays(gpu::GpuBackend& backend, DType dtype, int64_t elems, int copies)
    : backend_(backend), dtype_(dtype), bytes_(static_cast<size_t>(bytes_of(dtype, elems))) {
  // A piece of random bits again and again.
  const auto step = static_cast<size_t>(info(dtype).block_bytes);
  std::vector<unsigned char> bits(std::min<size_t>(bytes_, (size_t{1} << 20) / step * step));
  uint32_t state = 12345;
  for (unsigned char& b : bits) {
    state = state * 1664525u + 1013904223u;
    b = static_cast<unsigned char>(state >> 24);
  }
  // The exponent's upper bits are those of numbers around 1.
  for (size_t i = step; is_float(dtype) && step > 1 && i <= bits.size(); i += step) {
    bits[i - 1] = static_cast<unsigned char>((bits[i - 1] & 0x80) | 0x3f);
  }
  for (int copy = 0; copy < copies; ++copy) {
    auto* const data = static_cast<char*>(backend.alloc(bytes_));
    data_.push_back(data);
    for (size_t at = 0; at < bytes_; at += bits.size()) {
      backend.upload(data + at, bits.data(), std::min(bits.size(), bytes_ - at));
    }
  }
}

Arrays::~Arrays() {
  for (void* data : data_) backend_.free(data, bytes_);
}

View Arrays::view(int run, const Layout& layout) const {
  return {data_[static_cast<size_t>(run) % data_.size()], dtype_, layout};
}

GpuBench::GpuBench(Device device, bool small, std::string filter)
    : backend_(gpu::backend_of(device)), small_(small), filter_(std::move(filter)) {
  gpu::Gpu& gpu = backend_.gpu();
  gpu.enter();
  for (void*& event : events_) gpu.check(gpu.driver.api.event_create(&event, 0), "an event");
  copy_rate_ = measure_copy();
  fmt::print(
      "{{\"device\": \"{}\", \"name\": \"{}\", \"architecture\": \"{}\", \"driver\": \"{}\", "
      "\"copy_gb_s\": {}}}\n",
      device.str(), gpu.info.name, gpu.info.architecture, gpu.driver.version(),
      small_ ? "null" : fmt::format("{:.0f}", copy_rate_ / 1e9));
}

GpuBench::~GpuBench() {
  for (void* event : events_) backend_.gpu().driver.api.event_destroy(event);
}

double GpuBench::measure_copy() {
  if (small_) return NAN;
  const int64_t bytes = int64_t{1} << 30;
  const Arrays a(backend_, DType::u8, bytes, 1), b(backend_, DType::u8, bytes, 1);
  const Layout layout = Layout::contiguous({bytes});
  return 2.0 * static_cast<double>(bytes) /
         seconds([&](int) { backend_.copy(b.view(0, layout), a.view(0, layout)); });
}

double GpuBench::seconds(const std::function<void(int run)>& call) {
  constexpr int kTimes = 20;
  gpu::Gpu& gpu = backend_.gpu();
  call(0);  // loads what is to be loaded
  gpu.synchronize();
  if (small_) return NAN;
  const auto& api = gpu.driver.api;
  void *captured = nullptr, *graph = nullptr;
  gpu.check(api.capture_begin(gpu.stream(), 0), "beginning a capture");
  for (int i = 0; i < kTimes; ++i) call(i);
  gpu.check(api.capture_end(gpu.stream(), &captured), "ending a capture");
  gpu.check(api.graph_instantiate(&graph, captured, 0), "making a graph");
  double best = INFINITY;
  for (int round = 0; round < 5; ++round) {
    gpu.check(api.event_record(events_[0], gpu.stream()), "an event");
    gpu.check(api.graph_launch(graph, gpu.stream()), "launching a graph");
    gpu.check(api.event_record(events_[1], gpu.stream()), "an event");
    gpu.check(api.event_synchronize(events_[1]), "waiting");
    float ms = 0;
    gpu.check(api.event_elapsed(&ms, events_[0], events_[1]), "an event");
    best = std::min(best, static_cast<double>(ms) * 1e-3 / kTimes);
  }
  api.graph_exec_destroy(graph);
  api.graph_destroy(captured);
  gpu.check_faults();
  return best;
}

void GpuBench::memory_row(std::string_view row, double bytes,
                          const std::function<void(int run)>& call) {
  if (!wants(row)) return;
  const double time = seconds(call);
  if (small_) {
    fmt::print("{{\"op\": \"{}\"}}\n", row);
  } else {
    fmt::print("{{\"op\": \"{}\", \"us\": {:.2f}, \"gb_s\": {:.0f}, \"share_of_copy\": {:.3f}}}\n",
               row, time * 1e6, bytes / time / 1e9, bytes / time / copy_rate_);
  }
  std::fflush(stdout);
}

void GpuBench::compute_row(std::string_view row, double operations,
                           const std::function<void(int run)>& call) {
  if (!wants(row)) return;
  const double time = seconds(call);
  if (small_) {
    fmt::print("{{\"op\": \"{}\"}}\n", row);
  } else {
    fmt::print("{{\"op\": \"{}\", \"us\": {:.2f}, \"tera_ops\": {:.2f}}}\n", row, time * 1e6,
               operations / time / 1e12);
  }
  std::fflush(stdout);
}

}  // namespace wick::bench

int main(int argc, char** argv) {
  using namespace wick;
  std::string device, filter;
  bool small = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (std::strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
      filter = argv[++i];
    } else {
      device = argv[i];
    }
  }
  if (device.empty()) {
    fmt::print(stderr, "gpu_bench DEVICE [--small] [--filter TEXT]\n");
    return 2;
  }
  try {
    bench::GpuBench bench(Device::parse(device), small, filter);
    for (const auto& rows : bench::families()) rows(bench);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 1;
  }
}
