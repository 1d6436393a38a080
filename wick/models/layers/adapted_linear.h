#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/models/adapter.h"
#include "wick/models/layers/step.h"
#include "wick/nn/layers.h"

namespace wick::models {

/// A matrix [rows, k] of a linear layer, and the name of the tensor in the file. `order` permutes
/// the rows; empty: the file's order. `scale` [1] is a factor of the matrix, or undefined.
struct AdaptedMatrix {
  std::string name;
  Tensor matrix, bias;
  std::vector<int64_t> order;
  Tensor scale = {};
  std::string adapted = {};  ///< the name in adapters; empty: `name`
};

/// A linear layer of one or several matrices with one input, and the changes of adapters: y = x Wᵀ
/// + b + Σ c · (y' − y), see MatrixChange, with a scale c for each row and adapter. Reports x to
/// the thread's InputObserver.
class AdaptedLinear {
 public:
  AdaptedLinear() = default;
  AdaptedLinear(const std::vector<AdaptedMatrix>& matrices, std::span<const Adapter> adapters,
                Device device, bool release);

  /// x [t, k] → the concatenated outputs [t, Σ n].
  Tensor operator()(const Tensor& x, Runs runs) const;

 private:
  /// y' − y = b(a(x)) + gain · y + shift, where y is the product without the bias. Without factors,
  /// b is a whole matrix.
  struct Update {
    int64_t adapter, offset, size;  // columns [offset, offset + size) of the output
    std::optional<nn::Linear> a = {}, b = {};
    Tensor gain = {}, shift = {};  // f32 [size], or undefined
  };
  void add_updates(const AdaptedMatrix& m, int64_t offset, std::span<const Adapter> adapters,
                   Device device);
  Tensor difference(const Update& update, const Tensor& x, const Tensor& product, Runs runs) const;
  /// Takes the biases from base_ if they must follow factors or updates.
  void set_scales(const std::vector<AdaptedMatrix>& matrices, std::vector<Tensor>& biases,
                  Device device);

  std::vector<std::string> names_;  // of the weights, each once
  nn::Projections base_;
  Tensor scales_, biases_;  // [Σ n], or undefined
  std::vector<Update> updates_;
};

/// y [.., w] with `part` [.., n] added to the columns from `offset`.
Tensor with_columns_added(const Tensor& y, int64_t offset, const Tensor& part);

}  // namespace wick::models
