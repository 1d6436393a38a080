#pragma once

// What the rows of gpu_bench share: a device, memory on it, and times as shares of what it can do.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_time.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick::bench {

/// Memory of a device for several runs in turn, so that none finds its data in a cache.
class Arrays {
 public:
  /// Random bits; floats of ordinary magnitude.
  Arrays(gpu::GpuBackend& backend, DType dtype, int64_t elems, int copies);
  ~Arrays();
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  /// The array of run number `run`.
  View view(int run, const Layout& layout) const;

 private:
  gpu::GpuBackend& backend_;
  DType dtype_;
  size_t bytes_;
  std::vector<void*> data_;
};

class GpuBench {
 public:
  /// `small`: shapes that an emulator can do, and no times. Only rows whose name has `filter` in it
  /// are run.
  GpuBench(Device device, bool small, std::string filter);
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  gpu::GpuBackend& backend() { return backend_; }
  bool small() const { return small_; }
  /// A size that an emulator gets a small one for.
  int64_t size(int64_t large, int64_t small) const { return small_ ? small : large; }
  /// Whether a row is wanted.
  bool wants(std::string_view row) const { return row.find(filter_) != std::string_view::npos; }
  std::unique_ptr<Arrays> arrays(DType dtype, int64_t elems, int copies = 2) {
    return std::make_unique<Arrays>(backend_, dtype, elems, copies);
  }

  /// A row: the time of a call as the device counts it, and the share of the speed of copying,
  /// which is measured in between. `bytes`: read and written.
  void row(std::string_view name, double bytes, const std::function<void(int run)>& call);

 private:
  /// Calls in a row, recorded.
  std::unique_ptr<DeviceGraph> recorded(int times, const std::function<void(int run)>& call);
  /// Seconds of a recording.
  double seconds(DeviceGraph& recording);

  gpu::GpuBackend& backend_;
  const bool small_;
  const std::string filter_;
  GpuTime time_{backend_.gpu()};
  std::unique_ptr<Arrays> copied_, copy_;
  std::unique_ptr<DeviceGraph> copying_;
  double copy_bytes_ = 0;  ///< that copying_ reads and writes
};

/// Adds rows to the benchmark: `const bool added = add_rows([](GpuBench& bench) { … });`.
bool add_rows(std::function<void(GpuBench&)> rows);

}  // namespace wick::bench
