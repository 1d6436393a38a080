#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/graph/trace.h"

namespace wick {

struct CompileOptions {
  bool fuse = true;              ///< whether compositions of ops become fused ops, of equal bits
  bool capture = true;           ///< whether calls on a GPU become a graph of the driver
  size_t most_executables = 32;  ///< kept, by the arguments' shapes and dtypes
};

/// A function over tensors, traced once for each combination of its arguments' shapes, dtypes and
/// device, and replayed from then on: without checks, allocations of temporaries and (on GPUs)
/// launches one by one. The results have the bits that the function itself gives.
///
/// The function runs only while it is traced: what it does beside calling ops happens then, tensors
/// that it refers to are kept, and what it writes to them (slice_set) is written at each call.
/// Where a gradient is wanted, the function itself is called. Calls may come from any thread; calls
/// that were captured take turns.
class WICK_API Compiled {
 public:
  explicit Compiled(graph::Function function, const CompileOptions& options = {});
  ~Compiled();
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;

  /// Errors: those of the function; it reads values, draws random numbers, moves tensors to another
  /// device or makes a Weight of traced ones; no arguments, or arguments on several devices.
  std::vector<Tensor> operator()(std::span<const Tensor> arguments) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> arguments) const {
    return (*this)(std::span(arguments.begin(), arguments.size()));
  }
  /// How many combinations of shapes and dtypes it is kept for.
  size_t executables() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] inline Compiled compile(graph::Function function, const CompileOptions& options = {}) {
  return Compiled(std::move(function), options);
}

}  // namespace wick
