#pragma once

#include <cstddef>

namespace wick::cpu {

/// Memory of one packed weight: exactly its size, aligned to 64 bytes, on huge pages that it shares
/// with its neighbours. Weights are read once per token, which takes up to 1.8 times as long with 4
/// KiB pages. Rounding each weight to whole huge pages, or to the size classes of the caching
/// allocator, would add up to a quarter of a small model's size.
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

/// Adds bytes that don't come from the caching allocator to its MemoryInfo (memory.cpp); negative
/// when they are freed.
void account_outside_bytes(ptrdiff_t delta);

}  // namespace wick::cpu
