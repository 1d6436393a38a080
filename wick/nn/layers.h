#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick::nn {

/// Looks up rows of a table [vocabulary, hidden] by token id.
class WICK_API Embedding {
 public:
  Embedding() = default;
  explicit Embedding(const Tensor& table) : Embedding(table, table.device()) {}
  Embedding(const Tensor& table, Device device) : table_(table.to(device)) {}
  /// ids u32 [..] → f32 [.., hidden]. Errors: an id is out of range.
  Tensor operator()(const Tensor& ids) const { return index_select(table_, ids, 0).to(DType::f32); }
  const Tensor& table() const { return table_; }

 private:
  Tensor table_;
};

enum class NormKind : uint8_t {
  rms,    ///< x / sqrt(mean(x²) + eps)
  layer,  ///< (x − mean) / sqrt(variance + eps)
};

/// RMS norm or layer norm over the last dim. Sources: Zhang and Sennrich, 2019; Ba et al., 2016.
class WICK_API Norm {
 public:
  Norm() = default;
  /// weight [d], or [h, d] with weights for each head. A layer norm may lack the bias.
  Norm(NormKind kind, const Tensor& weight, const Tensor& bias, float eps, Device device)
      : kind_(kind),
        weight_(weight.to(device)),
        bias_(bias.defined() ? bias.to(device) : Tensor()),
        eps_(eps) {}
  /// x [.., d] → [.., d]; with weights of each head, x [.., h, d].
  Tensor operator()(const Tensor& x) const;

 private:
  NormKind kind_ = NormKind::rms;
  Tensor weight_, bias_;
  float eps_ = 1e-5f;
};

/// A run of adjacent rows that belong to sequences of `each` rows.
struct RowRun {
  int64_t rows = 0, each = 0;
};

/// Several linear layers of one input: y_i = x W_iᵀ + b_i. Adjacent matrices of one dtype are
/// packed together and run as one gemm, for example q, k and v, or gate and up.
class WICK_API Projections {
 public:
  Projections() = default;
  /// Takes matrices [n_i, k] and biases [n_i], which may be undefined or missing. `release`: see
  /// Weight.
  Projections(std::span<const Tensor> matrices, std::span<const Tensor> biases, Device device,
              bool release);

  /// x [.., k] → the outputs [.., n_i], as views of one tensor per gemm. With runs, x is [t, k],
  /// and each sequence's rows get the bits that they have alone.
  std::vector<Tensor> operator()(const Tensor& x, std::span<const RowRun> runs = {}) const;
  /// x [.., k] → the concatenated outputs [.., Σ n_i].
  Tensor joined(const Tensor& x, std::span<const RowRun> runs = {}) const;

 private:
  struct Group {
    Weight weight;
    Tensor bias;                 // bias of the whole group, or undefined
    std::vector<int64_t> sizes;  // n_i
  };
  /// Returns the output of each group.
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
  /// x [.., k] → [.., n]. runs: see Projections. Errors: the layer has no matrix.
  Tensor operator()(const Tensor& x, std::span<const RowRun> runs = {}) const {
    std::vector<Tensor> y = projections_(x, runs);
    if (y.empty()) throw Error("linear", "undefined weight");
    return std::move(y.front());
  }

 private:
  Projections projections_;
};

}  // namespace wick::nn
