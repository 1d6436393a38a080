#pragma once

#include <string>
#include <vector>

#include "wick/models/adapter.h"
#include "wick/models/layers/step.h"

namespace wick::models {

/// The low-rank updates that adapters have for stacks of matrices, of which each row chooses some:
/// those of experts, and of the heads of latent attention.
class StackUpdates {
 public:
  /// Adds the updates of the tensor `name`, `count` matrices [n, k], to the columns from `offset`
  /// of the product. Errors: those of Adapter::find_stack.
  void add(const std::string& name, int64_t count, int64_t n, int64_t k, int64_t offset,
           std::span<const Adapter> adapters, Device device);
  /// Adds an update whose factors are a [count, rank, k] and b [count, n, rank].
  void add(int64_t adapter, const Tensor& a, const Tensor& b, int64_t offset, Device device);

  bool empty() const { return updates_.empty(); }
  /// y [t, m, w] plus the updates of x [p, k], of whose rows each chooses the matrices ids u32 [p,
  /// q], p · q = t · m. runs: of t tokens; without scales nothing is added.
  Tensor operator()(const Tensor& y, const Tensor& x, const Tensor& ids, Runs runs) const;

 private:
  struct Update {
    int64_t adapter, offset;
    std::vector<Weight> a, b;  // of each matrix
  };
  std::vector<Update> updates_;
};

}  // namespace wick::models
