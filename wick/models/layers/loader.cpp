#include "wick/models/layers/loader.h"

#include <fmt/format.h>

namespace wick::models {
namespace {

std::string weight_of(std::string_view name) { return fmt::format("{}.weight", name); }
std::string bias_of(std::string_view name) { return fmt::format("{}.bias", name); }

}  // namespace

bool LayerLoader::has(std::string_view name) const { return weights.contains(weight_of(name)); }

Tensor LayerLoader::vector(std::string_view name, int64_t n) const {
  const Tensor x = weights.rank(name) == 2 ? weights.floats(name, {n, 1}) : weights.vector(name, n);
  return x.reshape({n}).to(device);
}

nn::Norm LayerLoader::norm(std::string_view name, int64_t size) const {
  // Falcon-H1's files have a norm without the suffix.
  if (!has(name) && weights.contains(name)) {
    return {config.norm, weights.vector(name, size), {}, config.norm_eps, device};
  }
  return {config.norm, weights.vector(weight_of(name), size),
          weights.optional_vector(bias_of(name), size), config.norm_eps, device};
}

nn::Norm LayerLoader::head_norm(std::string_view name, int64_t heads, int64_t size,
                                const std::vector<int64_t>& order) const {
  const std::string weight = weight_of(name);
  if (weights.rank(weight) == 2) {
    const Tensor of_heads = weights.floats(weight, {heads, size});
    const Tensor turned = reordered(of_heads.transpose(0, 1).contiguous(), order).transpose(0, 1);
    return {config.norm, turned.contiguous(), {}, config.norm_eps, device};
  }
  return {config.norm, reordered(weights.vector(weight, size), order),
          reordered(weights.optional_vector(bias_of(name), size), order), config.norm_eps, device};
}

AdaptedLinear LayerLoader::linear(std::string_view name, int64_t n, int64_t k) const {
  return projections({{name, n, {}}}, k, false);
}

AdaptedLinear LayerLoader::projections(const std::vector<Projection>& parts, int64_t k,
                                       bool need_biases) const {
  std::vector<AdaptedMatrix> matrices;
  for (const auto& [name, rows, order] : parts) {
    const std::string weight = weight_of(name), bias = bias_of(name);
    matrices.push_back(
        {.name = weights.prefix() + weight,
         .matrix = weights.matrix(weight, rows, k),
         .bias = need_biases ? weights.vector(bias, rows) : weights.optional_vector(bias, rows),
         .order = order,
         .scale = weights.optional_scale(name)});
  }
  return AdaptedLinear(matrices, adapters, device, release);
}

std::vector<int64_t> LayerLoader::rotated_order(int64_t heads) const {
  if (config.rope_style == RopeStyle::interleaved || layer.rope == LayerConfig::kNoRope) return {};
  const int64_t size = layer.key_size;
  const int64_t rotated = config.ropes[static_cast<size_t>(layer.rope)].dims;
  std::vector<int64_t> order;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t from = i >= rotated ? i : i / 2 + (i % 2) * (rotated / 2);
      order.push_back(head * size + from);
    }
  }
  return order;
}

}  // namespace wick::models
