#pragma once

// Shared code of the rows of gpu_bench: a device, memory on it, and times as shares of its limits.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_time.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick::bench {

/// Several arrays in a device's memory that runs use in turn, so that none finds its data in a
/// cache.
class Arrays {
 public:
  /// Fills the arrays with random bits; floats have ordinary magnitudes.
  Arrays(gpu::GpuBackend& backend, DType dtype, int64_t elems, int copies);
  ~Arrays();
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  /// Returns the array of run number `run`.
  View view(int run, const Layout& layout) const;

 private:
  gpu::GpuBackend& backend_;
  DType dtype_;
  size_t bytes_;
  std::vector<void*> data_;
};

class GpuBench {
 public:
  /// `small`: uses shapes that an emulator can handle, and measures no times. Only rows whose name
  /// contains `filter` run.
  GpuBench(Device device, bool small, std::string filter);
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  gpu::GpuBackend& backend() { return backend_; }
  bool small() const { return small_; }
  /// Returns the size for a GPU, or for an emulator.
  int64_t size(int64_t large, int64_t small) const { return small_ ? small : large; }
  /// Returns whether a row is selected.
  bool wants(std::string_view row) const { return row.find(filter_) != std::string_view::npos; }
  std::unique_ptr<Arrays> arrays(DType dtype, int64_t elems, int copies = 2) {
    return std::make_unique<Arrays>(backend_, dtype, elems, copies);
  }

  /// Measures a row: the device time of a call, and its share of the copy speed, which is measured
  /// in between. `bytes` are those read and written.
  void row(std::string_view name, double bytes, const std::function<void(int run)>& call);

 private:
  /// Captures consecutive calls as a graph.
  std::unique_ptr<DeviceGraph> recorded(int times, const std::function<void(int run)>& call);
  /// Returns the device time of a graph launch in seconds.
  double seconds(DeviceGraph& recording);

  gpu::GpuBackend& backend_;
  const bool small_;
  const std::string filter_;
  GpuTime time_{backend_.gpu()};
  std::unique_ptr<Arrays> copied_, copy_;
  std::unique_ptr<DeviceGraph> copying_;
  double copy_bytes_ = 0;  ///< bytes that copying_ reads and writes
};

/// Registers rows: `const bool added = add_rows([](GpuBench& bench) { … });`.
bool add_rows(std::function<void(GpuBench&)> rows);

}  // namespace wick::bench
