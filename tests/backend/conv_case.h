#pragma once

// Operands of convolutions on a device in any layout, and the exact results.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/spatial/convolution_library.h"
#include "wick/math/half.h"

namespace wick::gpu {

struct ConvCase {
  Shape x, w;
  ConvParams params;

  Shape out() const {
    int64_t size[2];
    for (int i = 0; i < 2; ++i) {
      const int64_t reach = params.dilation[i] * (w[2 + i] - 1) + 1;
      size[i] = (x[2 + i] + 2 * params.padding[i] - reach) / params.stride[i] + 1;
    }
    return {x[0], w[0], size[0], size[1]};
  }
};

inline double half_ulp_of(DType dtype, double x) {
  const int bits = dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  const int least = dtype == DType::f16 ? -14 : -126;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(0.5, std::max(exponent - 1, least) - bits + 1);
}

inline double load_float(DType dtype, const char* at) {
  if (dtype == DType::f32) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == DType::f16 ? math::to_f32(math::f16{bits}) : math::to_f32(math::bf16{bits});
}
inline void store_float(DType dtype, char* at, float x) {
  if (dtype == DType::f32) {
    std::memcpy(at, &x, sizeof x);
    return;
  }
  const uint16_t bits =
      dtype == DType::f16 ? math::from_f32<math::f16>(x).bits : math::from_f32<math::bf16>(x).bits;
  std::memcpy(at, &bits, sizeof bits);
}

/// How an operand lies in memory. `offset` begins at an odd element, `stepped` has gaps and rows in
/// descending order, `repeated` has one image for the whole batch.
enum class ConvPlace { first, last, offset, stepped, repeated };

inline Layout conv_layout(const Shape& s, ConvPlace place) {
  Layout::Strides strides{};
  const auto dense = dense_strides(s, place == ConvPlace::last);
  std::copy(dense.begin(), dense.end(), strides.begin());
  if (place == ConvPlace::offset) return Layout(s, strides, 1);
  if (place == ConvPlace::repeated) strides[0] = 0;
  if (place != ConvPlace::stepped) return Layout(s, strides, 0);
  strides = {s[1] * s[2] * s[3] * 3, s[2] * s[3] * 3, -s[3] * 3, 3};
  return Layout(s, strides, (s[2] - 1) * s[3] * 3);
}

/// An operand on a device and on the host. Elements of the memory that don't belong to it are 77.
class ConvTensor {
 public:
  /// random: null for a result.
  ConvTensor(Gpu& gpu, DType dtype, const Shape& shape, ConvPlace place, std::mt19937* random)
      : gpu_(gpu), dtype_(dtype), layout_(conv_layout(shape, place)) {
    int64_t most = layout_.offset();
    for (int d = 0; d < 4; ++d) {
      most += std::max<int64_t>(layout_.stride(d), 0) * (shape[d] - 1);
    }
    host_.resize(static_cast<size_t>(most + 2) * size());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < most + 2; ++i) store_float(dtype, address(i), 77);
    for (int64_t i = 0; random != nullptr && i < shape.elems(); ++i) {
      store_float(dtype, address(position(i)), uniform(*random));
    }
    memory_ = gpu.pool.take(host_.size());
    gpu.check(gpu.driver.api.copy_to_device(memory_, host_.data(), host_.size(), gpu.stream()),
              "copy");
  }
  ~ConvTensor() { gpu_.pool.give(memory_); }
  ConvTensor(const ConvTensor&) = delete;
  ConvTensor& operator=(const ConvTensor&) = delete;

  View view() const { return {memory_, dtype_, layout_}; }
  ConvOperand operand() const { return {layout_.shape(), memory_}; }
  double get(int64_t i) const {
    return load_float(dtype_, const_cast<ConvTensor*>(this)->address(position(i)));
  }
  /// Reads the device's memory. False if elements outside the tensor were written.
  bool fetch() {
    const std::vector<char> before = host_;
    gpu_.check(gpu_.driver.api.copy_to_host(host_.data(), memory_, host_.size(), gpu_.stream()),
               "copy");
    gpu_.synchronize();
    std::vector<bool> inside(host_.size() / size());
    for (int64_t i = 0; i < layout_.elems(); ++i) inside[static_cast<size_t>(position(i))] = true;
    for (size_t i = 0; i < inside.size(); ++i) {
      if (!inside[i] && std::memcmp(&host_[i * size()], &before[i * size()], size()) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  size_t size() const { return dtype_ == DType::f32 ? 4 : 2; }
  char* address(int64_t i) { return host_.data() + static_cast<size_t>(i) * size(); }
  int64_t position(int64_t i) const {
    int64_t at = layout_.offset();
    for (int d = 3; d >= 0; i /= layout_.shape()[d--]) {
      at += i % layout_.shape()[d] * layout_.stride(d);
    }
    return at;
  }

  Gpu& gpu_;
  const DType dtype_;
  const Layout layout_;
  std::vector<char> host_;
  void* memory_ = nullptr;
};

/// x, w and y of a case. The result of a form is overwritten.
struct ConvOperands {
  ConvTensor x, w, y;

  /// The operands have `places`, in the order x, w, y.
  ConvOperands(Gpu& gpu, DType dtype, const ConvCase& c, ConvForm form,
               const std::array<ConvPlace, 3>& places, std::mt19937& random)
      : x(gpu, dtype, c.x, places[0], form == ConvForm::input ? nullptr : &random),
        w(gpu, dtype, c.w, places[1], form == ConvForm::weight ? nullptr : &random),
        y(gpu, dtype, c.out(), places[2], form == ConvForm::forward ? nullptr : &random) {}

  ConvTensor& result(ConvForm form) {
    return form == ConvForm::forward ? y : form == ConvForm::input ? x : w;
  }
  ConvCall call(const ConvCase& c, ConvForm form, DType dtype, bool channels_last) const {
    return {.form = form,
            .dtype = dtype,
            .channels_last = channels_last,
            .x = x.operand(),
            .w = w.operand(),
            .y = y.operand(),
            .params = c.params};
  }
  /// Calls the backend's method for a form.
  void run(GpuBackend& backend, ConvForm form, const ConvParams& params) {
    if (form == ConvForm::forward) return backend.conv2d(y.view(), x.view(), w.view(), params);
    if (form == ConvForm::input) return backend.conv2d_input(x.view(), y.view(), w.view(), params);
    backend.conv2d_weight(w.view(), x.view(), y.view(), params);
  }
  /// Compares the result on the device with the exact one.
  void check(const ConvCase& c, ConvForm form, DType dtype) {
    ConvTensor& out = result(form);
    EXPECT_TRUE(out.fetch()) << "memory outside the result was written";
    const auto count = static_cast<size_t>(out.view().layout.elems());
    std::vector<double> exact(count), magnitude(count), terms(count);
    const Shape &xs = c.x, &ws = c.w, ys = c.out();
    const int64_t per_group = ws[0] / c.params.groups, taps = ws[2] * ws[3];
    for (int64_t at = 0; at < ys.elems(); ++at) {
      const int64_t j = at % ys[3], i = at / ys[3] % ys[2], o = at / (ys[3] * ys[2]) % ys[1],
                    b = at / (ys[3] * ys[2] * ys[1]);
      for (int64_t k = 0; k < ws[1] * taps; ++k) {
        const int64_t row =
            i * c.params.stride[0] - c.params.padding[0] + k % taps / ws[3] * c.params.dilation[0];
        const int64_t col =
            j * c.params.stride[1] - c.params.padding[1] + k % ws[3] * c.params.dilation[1];
        if (row < 0 || row >= xs[2] || col < 0 || col >= xs[3]) continue;
        const int64_t channel = o / per_group * ws[1] + k / taps;
        const int64_t in_x = ((b * xs[1] + channel) * xs[2] + row) * xs[3] + col,
                      in_w = o * ws[1] * taps + k;
        const double product = form == ConvForm::forward ? x.get(in_x) * w.get(in_w)
                               : form == ConvForm::input ? y.get(at) * w.get(in_w)
                                                         : y.get(at) * x.get(in_x);
        const auto to = static_cast<size_t>(form == ConvForm::forward ? at
                                            : form == ConvForm::input ? in_x
                                                                      : in_w);
        exact[to] += product;
        magnitude[to] += std::abs(product);
        terms[to] += 1;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const double bound =
          half_ulp_of(dtype, exact[i]) + 4 * std::sqrt(terms[i]) * std::ldexp(magnitude[i], -24);
      ASSERT_NEAR(out.get(static_cast<int64_t>(i)), exact[i], bound) << "element " << i;
    }
  }
};

inline const char* form_name(ConvForm form) {
  constexpr const char* kNames[] = {"forward", "input", "weight"};
  return kNames[static_cast<int>(form)];
}

}  // namespace wick::gpu
