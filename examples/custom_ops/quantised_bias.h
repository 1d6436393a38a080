#pragma once

// Adds a bias that is stored as bytes: element i of the bias is scales[i / 32] * (codes[i] - 128).

#include "wick/tensor/custom.h"

namespace examples {

using namespace wick;

struct QuantisedBias : CustomOp3 {
  static constexpr int kBlock = 32;

  QuantisedBias() : CustomOp3("quantised_bias") {}

  ResultSpec shape(const Tensor& x, const Tensor& codes, const Tensor& scales) const override {
    const int64_t n = x.size(-1);
    if (x.dtype() != DType::f32 || codes.dtype() != DType::u8 || scales.dtype() != DType::f32 ||
        !(codes.shape() == Shape{n}) || !(scales.shape() == Shape{(n + kBlock - 1) / kBlock})) {
      throw Error(name(), "operands don't fit",
                  x.str() + ", codes " + codes.str() + ", scales " + scales.str(),
                  "need f32 [.., n], u8 [n] and f32 [n / 32]");
    }
    return like(x);
  }

  void cpu(const CustomOutput& y, const CustomInput& x, const CustomInput& codes,
           const CustomInput& scales) const override {
    const auto in = x.values<float>();
    const auto out = y.values<float>();
    const auto n = static_cast<size_t>(x.size(-1));
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t column = i % n;
      const int code = codes.values<uint8_t>()[column] - 128;
      out[i] = in[i] + scales.values<float>()[column / kBlock] * static_cast<float>(code);
    }
  }

  void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& x, const CustomInput& codes,
           const CustomInput& scales) const override {
    gpu.launch({.body = R"(
      const i64 i = global_index();
      if (i >= y_elems) return;
      const i64 column = i % codes_elems;
      y[i] = x[i] + scales[column / block] * static_cast<float>(int{codes[column]} - 128);
    )",
                .constants = {{"block", kBlock}}},
               KernelGrid::over(y.elems()),
               {{"x", x}, {"codes", codes}, {"scales", scales}, {"y", y}});
  }

  /// Bytes have no gradient, and the scales are constants.
  std::vector<Tensor> backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor& grad) const override {
    return {grad, {}, {}};
  }
};

}  // namespace examples
