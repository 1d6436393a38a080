#pragma once

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
};

/// A linear layer of one or several matrices with one input, and the updates of adapters: y = x Wᵀ
/// + b + Σ scale · (x Aᵀ) Bᵀ, with a scale for each row and adapter. Reports x to the thread's
/// InputObserver.
class AdaptedLinear {
 public:
  AdaptedLinear() = default;
  AdaptedLinear(const std::vector<AdaptedMatrix>& matrices, std::span<const Adapter> adapters,
                Device device, bool release);

  /// x [t, k] → the concatenated outputs [t, Σ n].
  Tensor operator()(const Tensor& x, Runs runs) const;

 private:
  struct Update {
    int64_t adapter, offset, size;  // columns [offset, offset + size) of the output
    nn::Linear a, b;
  };
  /// Takes the biases, which must follow the factors, from base_.
  void set_scales(const std::vector<AdaptedMatrix>& matrices, std::vector<Tensor>& biases,
                  Device device);

  std::vector<std::string> names_;  // of the weights, each once
  nn::Projections base_;
  Tensor scales_, biases_;  // [Σ n], if a matrix has a factor
  std::vector<Update> updates_;
};

}  // namespace wick::models
