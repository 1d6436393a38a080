#pragma once

#include <cstddef>

namespace wick::cpu {

/// Memory of one packed weight: exactly its size, aligned to 64, on huge pages together with its
/// neighbours. Weights are streamed once a token, and out of cache 4 KiB pages cost up to 1.8
/// times; rounding each weight to whole huge pages, or to the size classes of the caching
/// allocator, would cost a quarter of a small model.
class WeightMemory {
 public:
  WeightMemory() = default;
  /// Errors: out of memory.
  explicit WeightMemory(size_t bytes);
  ~WeightMemory();
  WeightMemory(WeightMemory&& other) noexcept;
  WeightMemory& operator=(WeightMemory&& other) noexcept;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// Counts bytes that live outside the caching allocator in its MemoryInfo (memory.cpp).
void account_outside_bytes(ptrdiff_t delta);

}  // namespace wick::cpu
