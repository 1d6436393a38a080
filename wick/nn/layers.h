#pragma once

#include <span>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// Rows of a table [vocabulary, hidden] by token id.
class WICK_API Embedding {
 public:
  Embedding() = default;
  explicit Embedding(const Tensor& table) : Embedding(table, table.device()) {}
  Embedding(const Tensor& table, Device device) : table_(table.to(device)) {}
  /// ids [..] (u32) → [.., hidden] f32. Errors: an id out of range.
  Tensor operator()(const Tensor& ids) const { return index_select(table_, ids, 0).to(DType::f32); }
  const Tensor& table() const { return table_; }

 private:
  Tensor table_;
};

/// Root-mean-square norm over the last dimension. Source: Zhang and Sennrich, 2019.
class WICK_API RmsNorm {
 public:
  RmsNorm() = default;
  RmsNorm(const Tensor& weight, float eps) : RmsNorm(weight, eps, weight.device()) {}
  RmsNorm(const Tensor& weight, float eps, Device device) : weight_(weight.to(device)), eps_(eps) {}
  /// [.., hidden] → [.., hidden]
  Tensor operator()(const Tensor& x) const { return rms_norm(x, weight_, eps_); }

 private:
  Tensor weight_;
  float eps_ = 1e-5f;
};

/// Neighbouring rows that belong to sequences of `each` rows.
struct RowRun {
  int64_t rows = 0, each = 0;
};

/// Linear maps of one input: y_i = x W_iᵀ + b_i. Neighbours of one dtype are packed together and
/// computed as one product, the way a model's q, k and v or its gate and up matrices want it.
class WICK_API Projections {
 public:
  Projections() = default;
  /// One matrix [n_i, k] each, and as many biases [n_i] or undefined tensors (or none at all).
  /// `release`: see Weight.
  Projections(std::span<const Tensor> matrices, std::span<const Tensor> biases, Device device,
              bool release);

  /// x [.., k] → the outputs [.., n_i], views into as few tensors as products were computed.
  /// With runs, x is [t, k], and each sequence's rows get the bits that they have alone.
  std::vector<Tensor> operator()(const Tensor& x, std::span<const RowRun> runs = {}) const;
  /// The outputs side by side: [.., Σ n_i].
  Tensor joined(const Tensor& x, std::span<const RowRun> runs = {}) const;

 private:
  struct Group {
    Weight weight;
    Tensor bias;                 // of the whole group, or undefined
    std::vector<int64_t> sizes;  // n_i
  };
  /// What each group computes.
  std::vector<Tensor> products(const Tensor& x, std::span<const RowRun> runs) const;

  std::vector<Group> groups_;
};

/// y = x Wᵀ + b.
class WICK_API Linear {
 public:
  Linear() = default;
  explicit Linear(const Tensor& matrix, const Tensor& bias = {})
      : Linear(matrix, bias, matrix.device(), false) {}
  Linear(const Tensor& matrix, const Tensor& bias, Device device, bool release)
      : projections_(std::span(&matrix, 1), std::span(&bias, 1), device, release) {}
  /// [.., k] → [.., n]. runs: see Projections. Errors: without a matrix.
  Tensor operator()(const Tensor& x, std::span<const RowRun> runs = {}) const {
    std::vector<Tensor> y = projections_(x, runs);
    if (y.empty()) throw Error("linear", "undefined weight");
    return std::move(y.front());
  }

 private:
  Projections projections_;
};

}  // namespace wick::nn
