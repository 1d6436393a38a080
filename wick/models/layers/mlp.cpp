#include "wick/models/layers/mlp.h"

#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

constexpr double kSwigluLimit = 7.0, kSwigluAlpha = 1.702;

Tensor activated(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return silu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_erf:
      return gelu_erf(x);
    case Activation::relu_squared:
      return sqr(relu(x));
    case Activation::clamped_swiglu:
      break;
  }
  throw Error("mlp", "this activation needs a gate");
}

}  // namespace

Tensor gated(Activation activation, const Tensor& gate, const Tensor& up) {
  if (activation != Activation::clamped_swiglu) return activated(activation, gate) * up;
  const Tensor g = clamp(gate, -INFINITY, kSwigluLimit);
  const Tensor u = clamp(up, -kSwigluLimit, kSwigluLimit);
  return g * sigmoid(g * kSwigluAlpha) * (u + 1.0);
}

Mlp::Mlp(const LayerLoader& loader, int64_t width, std::string_view suffix)
    : activation_(loader.config.activation), gated_(loader.config.gated) {
  const int64_t hidden = loader.config.hidden;
  const auto name = [&](const char* stem) { return std::string(stem) + std::string(suffix); };
  const std::string gate = name("ffn_gate"), up = name("ffn_up"), down = name("ffn_down");
  if (gated_ && !loader.has(gate)) {
    const std::string both = up + ".weight";
    if (!loader.has(up)) loader.weights.missing(both);
    if (loader.weights.rows(both) != 2 * width) {
      loader.weights.wrong_shape(both, fmt::format("[{},{}], with the rows of the gate, or a {}",
                                                   2 * width, hidden, gate));
    }
    in_ = loader.projections({{up, 2 * width}}, hidden, false);
  } else if (gated_) {
    in_ = loader.projections({{gate, width}, {up, width}}, hidden, false);
  } else {
    in_ = loader.projections({{up, width}}, hidden, false);
  }
  down_ = loader.linear(down, hidden, width);
}

Tensor Mlp::operator()(const Tensor& x, Runs runs) const {
  const Tensor y = in_(x, runs);
  if (!gated_) return down_(activated(activation_, y), runs);
  const std::vector<Tensor> halves = y.chunk(2, -1);
  return down_(gated(activation_, halves[0], halves[1]), runs);
}

}  // namespace wick::models
