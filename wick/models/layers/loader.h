#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wick/models/decoder_config.h"
#include "wick/models/layers/adapted_linear.h"
#include "wick/models/weights.h"
#include "wick/nn/layers.h"

namespace wick::models {

/// A matrix [rows, k] with its bias. `order` lists the rows that are used; empty: all, in the
/// file's order.
struct Projection {
  std::string_view name;
  int64_t rows;
  std::vector<int64_t> order = {};
};

/// Loads the parts of a layer from the tensors under a prefix. Errors of all functions: those of
/// Weights.
struct LayerLoader {
  const DecoderConfig& config;
  const LayerConfig& layer;
  Weights weights;
  Device device;
  bool release;  ///< see nn::Projections
  std::span<const Adapter> adapters = {};
  Device experts = {};  ///< the device of the experts' matrices

  bool has(std::string_view name) const;
  /// A norm over `size` elements, with a bias if the file has one.
  nn::Norm norm(std::string_view name, int64_t size) const;
  /// The norm of `heads` heads: one weight [size] for all, or [heads, size]. `order` permutes the
  /// elements of a head.
  nn::Norm head_norm(std::string_view name, int64_t heads, int64_t size,
                     const std::vector<int64_t>& order) const;
  AdaptedLinear linear(std::string_view name, int64_t n, int64_t k) const;
  /// A vector [n] of floats on the device. The file may have it as [n, 1]. `name` is the full name.
  Tensor vector(std::string_view name, int64_t n) const;
  AdaptedLinear projections(const std::vector<Projection>& parts, int64_t k,
                            bool need_biases) const;
  /// The order of the rows of `heads` heads that rope_interleaved needs; empty: the file's order.
  std::vector<int64_t> rotated_order(int64_t heads) const;
};

}  // namespace wick::models
