#pragma once

// Rotates the pairs (x[.., 2i], x[.., 2i + 1]) of x [heads, tokens, d] in place, by angles whose
// cosines and sines are [tokens, d / 2]. x may have any strides.

#include "wick/tensor/custom.h"

namespace examples {

using namespace wick;

struct Rotary : InplaceOp3 {
  Rotary() : InplaceOp3("rotary") {}

  void check(const Tensor& x, const Tensor& cos, const Tensor& sin) const override {
    const bool fits = x.rank() == 3 && x.size(2) % 2 == 0 && x.dtype() == DType::f32 &&
                      cos.dtype() == DType::f32 && sin.dtype() == DType::f32 &&
                      cos.shape() == Shape{x.size(1), x.size(2) / 2} && sin.shape() == cos.shape();
    if (!fits) {
      throw Error(name(), "operands don't fit", x.str() + ", cos " + cos.str(),
                  "need f32 [h, t, d] and [t, d / 2]");
    }
  }

  void cpu(const CustomOutput& x, const CustomInput& cos, const CustomInput& sin) const override {
    const int64_t pairs = x.size(2) / 2;
    for (int64_t h = 0; h < x.size(0); ++h) {
      for (int64_t t = 0; t < x.size(1); ++t) {
        float* const row = x.data<float>() + h * x.stride(0) + t * x.stride(1);
        for (int64_t i = 0; i < pairs; ++i) {
          float &a = row[2 * i * x.stride(2)], &b = row[(2 * i + 1) * x.stride(2)];
          const float c = cos.values<float>()[static_cast<size_t>(t * pairs + i)];
          const float s = sin.values<float>()[static_cast<size_t>(t * pairs + i)];
          const float first = a * c - b * s;
          b = a * s + b * c;
          a = first;
        }
      }
    }
  }

  void gpu(GpuContext& gpu, const CustomOutput& x, const CustomInput& cos,
           const CustomInput& sin) const override {
    gpu.launch({.body = R"(
      const i64 pair = global_index();
      if (pair >= x_elems / 2) return;
      const i64 at = offset_of(2 * pair, x_shape, x_strides);
      const float a = x[at], b = x[at + x_strides[2]];
      const float c = cos[pair % cos_elems], s = sin[pair % sin_elems];
      x[at] = a * c - b * s;
      x[at + x_strides[2]] = a * s + b * c;
    )"},
               KernelGrid::over(x.elems() / 2), {{"x", x}, {"cos", cos}, {"sin", sin}});
  }
};

}  // namespace examples
