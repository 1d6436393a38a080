// How fast ops are on a GPU, each as a share of the speed of copying on it, as lines of JSON.
//
//   gpu_bench DEVICE [--small] [--filter TEXT]
//
// Times are the device's, of recorded calls in a row on memory that isn't in its caches: the median
// of nine rounds, each behind copies that its share is of. Rows are in the files
// gpu_bench_*.cpp; gpu_table.py makes tables of them.

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

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
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
    backend.upload(data, bits.data(), bits.size());
    for (size_t done = bits.size(); done < bytes_; done *= 2) {
      const auto more = static_cast<int64_t>(std::min(done, bytes_ - done));
      const Layout piece = Layout::contiguous({more});
      backend.copy({data + done, DType::u8, piece}, {data, DType::u8, piece});
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
  std::string rate = "null";
  if (!small_) {
    // Much larger copies are slower: the driver takes another way.
    const int64_t bytes = int64_t{1} << 28;
    const Layout layout = Layout::contiguous({bytes});
    copied_ = arrays(DType::u8, bytes, 2), copy_ = arrays(DType::u8, bytes, 2);
    constexpr int kTimes = 4;
    copy_bytes_ = kTimes * 2.0 * static_cast<double>(bytes);
    copying_ = recorded(
        kTimes, [&](int i) { backend_.copy(copy_->view(i, layout), copied_->view(i, layout)); });
    std::vector<double> times;
    for (int round = 0; round < 20; ++round) times.push_back(seconds(*copying_));
    rate = fmt::format("{:.0f}", copy_bytes_ / median(times) / 1e9);
  }
  fmt::print(
      "{{\"device\": \"{}\", \"name\": \"{}\", \"architecture\": \"{}\", \"driver\": \"{}\", "
      "\"copy_gb_s\": {}}}\n",
      device.str(), gpu.info.name, gpu.compiled_for(), gpu.driver.version(), rate);
}

std::unique_ptr<DeviceGraph> GpuBench::recorded(int times, const std::function<void(int)>& call) {
  return backend_.record([&] {
    for (int i = 0; i < times; ++i) call(i);
  });
}

double GpuBench::seconds(DeviceGraph& recording) {
  return time_.best(1, [&] { recording.replay(); });
}

void GpuBench::row(std::string_view name, double bytes, const std::function<void(int run)>& call) {
  if (!wants(name)) return;
  call(0);  // loads what is to be loaded
  backend_.synchronize();
  if (small_) {
    fmt::print("{{\"op\": \"{}\"}}\n", name);
  } else {
    constexpr int kRounds = 9;
    // Some two milliseconds.
    const double guess = 2e-6 + bytes / 4e12;
    const int times = static_cast<int>(std::clamp(2e-3 / guess, 8.0, 200.0));
    const auto calls = recorded(times, call);
    calls->replay();
    std::vector<double> microseconds, shares;
    for (int round = 0; round < kRounds; ++round) {
      const double copying = seconds(*copying_), time = seconds(*calls) / times;
      microseconds.push_back(1e6 * time);
      shares.push_back(bytes / time / (copy_bytes_ / copying));
    }
    const double us = median(microseconds);
    fmt::print("{{\"op\": \"{}\", \"us\": {:.2f}, \"gb_s\": {:.0f}, \"share_of_copy\": {:.3f}}}\n",
               name, us, bytes / us / 1e3, median(shares));
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
