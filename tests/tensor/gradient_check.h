#pragma once

// Gradients against central differences in f64.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/tensor/autograd.h"
#include "wick/tensor/ops.h"

namespace wick::test {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// Numbers in [low, high) from a fixed sequence, in f64.
inline Tensor numbers(const Shape& shape, uint64_t seed, double low = -1.5, double high = 1.5) {
  std::vector<double> values;
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    values.push_back(low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53);
  }
  return Tensor::from(values, shape);
}

/// The inner product of a result with numbers of our own: one number with a gradient.
inline Tensor weighed(const Tensor& y) { return sum(y * numbers(y.shape(), 99)); }

/// The derivative of weighed(f) by each element of each input, by differences.
inline std::vector<std::vector<double>> differences(const Function& f,
                                                    const std::vector<Tensor>& inputs) {
  constexpr double kStep = 1e-5;
  const NoGrad none;
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values = inputs[i].to_vector<double>(), slopes;
    for (double& value : values) {
      const double before = value;
      double side[2];
      for (int s = 0; s < 2; ++s) {
        value = before + (s == 0 ? -kStep : kStep);
        std::vector<Tensor> moved = inputs;
        moved[i] = Tensor::from(values, inputs[i].shape());
        side[s] = weighed(f(moved)).item<double>();
      }
      value = before;
      slopes.push_back((side[1] - side[0]) / (2 * kStep));
    }
    all.push_back(std::move(slopes));
  }
  return all;
}

inline void expect_gradients(std::string_view what, const Function& f,
                             const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.requires_grad());
  const std::vector<Tensor> given = gradients(weighed(f(leaves)), leaves);
  const auto wanted = differences(f, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(given[i].defined()) << what << ", input " << i << ": no gradient";
    ASSERT_EQ(given[i].shape(), inputs[i].shape()) << what << ", input " << i;
    const std::vector<double> got = given[i].to_vector<double>();
    for (size_t e = 0; e < got.size(); ++e) {
      const double off = std::fabs(got[e] - wanted[i][e]);
      ASSERT_LE(off, 1e-6 * (1 + std::fabs(wanted[i][e])))
          << what << ", input " << i << ", element " << e << ": " << got[e] << ", not "
          << wanted[i][e];
    }
  }
}

/// Gradients, and gradients of a number made of them.
inline void check_gradients(std::string_view what, const Function& f,
                            const std::vector<Tensor>& inputs) {
  expect_gradients(what, f, inputs);
  if (testing::Test::HasFailure()) return;
  const Function slopes = [&](const std::vector<Tensor>& at) {
    // Differences move plain tensors; gradients of gradients come through the leaves they are.
    const bool tracked = at.front().needs_grad();
    std::vector<Tensor> leaves;
    for (const Tensor& x : at) leaves.push_back(tracked ? x : x.requires_grad());
    std::vector<Tensor> given;
    {
      struct On {
        On() { set_grad_enabled(true); }
        ~On() { set_grad_enabled(before); }
        bool before = grad_enabled();
      } const on;
      given = gradients(weighed(sqr(f(leaves))), leaves, {}, true);
    }
    std::vector<Tensor> flat;
    for (const Tensor& g : given) flat.push_back(g.flatten());
    const Tensor all = cat(flat, 0);
    return tracked ? all : all.detach();
  };
  expect_gradients(std::string(what) + ", second order", slopes, inputs);
}

}  // namespace wick::test
