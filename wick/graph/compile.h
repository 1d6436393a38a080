#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "wick/base/export.h"
#include "wick/graph/trace.h"

namespace wick {

struct CompileOptions {
  bool fuse = true;              ///< replace compositions of ops by fused ops with the same bits
  bool capture = true;           ///< capture the calls on a GPU into a graph of the driver
  size_t most_executables = 32;  ///< limit of cached executables
};

/// A compiled function over tensors. It is traced once for each combination of its arguments'
/// shapes, dtypes and device; later calls replay the trace without checks, without allocating
/// temporaries and, on GPUs, without launching kernels one by one. The results have the same bits
/// as those of the function.
///
/// The function runs only during tracing, so its side effects happen only then. The compiled
/// function keeps tensors that it refers to alive; its writes to them (slice_set) are repeated at
/// each call. If a gradient is needed, the function itself is called. Any thread may call; calls of
/// one captured graph run one after another.
class WICK_API Compiled {
 public:
  explicit Compiled(graph::Function function, const CompileOptions& options = {});
  ~Compiled();
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;

  /// Runs the function for these arguments. Errors: those of the function; the function reads
  /// values, draws random numbers, moves tensors to another device or makes a Weight from traced
  /// tensors; there are no arguments; arguments are on several devices.
  std::vector<Tensor> operator()(std::span<const Tensor> arguments) const;
  std::vector<Tensor> operator()(std::initializer_list<Tensor> arguments) const {
    return (*this)(std::span(arguments.begin(), arguments.size()));
  }
  /// The number of cached executables.
  size_t executables() const;
  /// The custom ops that only the cached executables keep alive. No other thread may call at the
  /// same time.
  std::vector<const CustomBody*> owned_custom_ops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] inline Compiled compile(graph::Function function, const CompileOptions& options = {}) {
  return Compiled(std::move(function), options);
}

}  // namespace wick
