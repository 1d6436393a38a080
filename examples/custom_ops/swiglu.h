#pragma once

// silu(gate) * up as one op, with its gradient. The GPU's body takes every float dtype, the CPU's
// body f32.

#include "wick/math/scalar.h"
#include "wick/tensor/custom.h"
#include "wick/tensor/ops.h"

namespace examples {

using namespace wick;

struct Swiglu : CustomOp2 {
  Swiglu() : CustomOp2("swiglu") {}

  ResultSpec shape(const Tensor& gate, const Tensor& up) const override {
    if (!(gate.shape() == up.shape()) || gate.dtype() != up.dtype() || !is_float(gate.dtype())) {
      throw Error(name(), "gate and up differ", gate.str() + ", " + up.str(),
                  "need floats of one shape and dtype");
    }
    return like(gate);
  }

  void cpu(const CustomOutput& y, const CustomInput& gate, const CustomInput& up) const override {
    const auto g = gate.values<float>(), u = up.values<float>();
    const auto out = y.values<float>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = math::silu(g[i]) * u[i];
  }

  void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& gate,
           const CustomInput& up) const override {
    // widen() converts an element to the type that computes, narrow() rounds the result.
    gpu.launch({.body = R"(
      const i64 i = global_index();
      if (i < y_elems) y[i] = narrow<y_type>(silu(widen(gate[i])) * widen(up[i]));
    )"},
               KernelGrid::over(y.elems()), {{"gate", gate}, {"up", up}, {"y", y}});
  }

  std::vector<Tensor> backward(const Tensor& gate, const Tensor& up, const Tensor&,
                               const Tensor& grad) const override {
    const Tensor s = sigmoid(gate);
    const Tensor slope = s * (gate * affine(s, -1, 1) + 1);  // the derivative of silu
    return {grad * up * slope, grad * silu(gate)};
  }
};

}  // namespace examples
