#pragma once

// A softmax along the last dim with its gradient, for the CPU and for GPUs, in 25 lines.

#include <algorithm>

#include "wick/math/scalar.h"
#include "wick/tensor/custom.h"
#include "wick/tensor/ops.h"

namespace examples {

using namespace wick;

struct Softmax : CustomOp1 {
  Softmax() : CustomOp1("my_softmax") {}
  ResultSpec shape(const Tensor& x) const override { return like(x); }
  void cpu(const CustomOutput& y, const CustomInput& x) const override {
    for (int64_t row = 0, n = x.size(-1); row < x.elems(); row += n) {
      const float *in = x.data<float>() + row, top = *std::max_element(in, in + n);
      float *out = y.data<float>() + row, sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += out[i] = math::exp(in[i] - top);
      for (int64_t i = 0; i < n; ++i) out[i] /= sum;
    }
  }
  void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& x) const override {
    const int64_t n = x.size(-1), rows = x.elems() / n;
    gpu.launch({.body = R"(if (global_index() >= rows) return;
      const float* in = x + global_index() * n;
      float *out = y + global_index() * n, top = in[0], sum = 0;
      for (i64 i = 1; i < n; ++i) top = larger(top, in[i]);
      for (i64 i = 0; i < n; ++i) sum += out[i] = exp(in[i] - top);
      for (i64 i = 0; i < n; ++i) out[i] /= sum;)"},
               KernelGrid::over(rows), {{"x", x}, {"y", y}, {"n", n}, {"rows", rows}});
  }
  Tensor backward(const Tensor&, const Tensor& y, const Tensor& grad) const override {
    return y * (grad - sum(y * grad, -1, true));
  }
};

}  // namespace examples
