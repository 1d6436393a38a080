#pragma once

// Compares gradients with central differences in f64. Every row of ops.def that has a gradient has
// a test Gradient.NAME; gradients_rows_test.cpp checks that.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "wick/op/op.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/ops.h"

namespace wick::test {

using Inputs = const std::vector<Tensor>&;
using Function = std::function<Tensor(Inputs)>;

/// Numbers in [low, high) from a fixed sequence, in f64.
Tensor numbers(const Shape& shape, uint64_t seed, double low = -1.5, double high = 1.5);
/// A strided view of the same elements: every dim stepped, the order of dims reversed in memory.
Tensor strided(const Tensor& x);

/// Compares the gradients of one op with differences. Each function is called with dense inputs and
/// with strided ones, and gets a dense and a strided gradient of its result; under NoGrad and with
/// detached inputs its result needs none.
class GradientCheck {
 public:
  explicit GradientCheck(Op op) : op_(op) {}

  /// Checks first derivatives.
  void once(std::string_view what, const Function& f, Inputs inputs);
  /// Checks first and second derivatives. The second ones are those of a scalar computed from the
  /// gradients.
  void twice(std::string_view what, const Function& f, Inputs inputs);
  enum class Orders : uint8_t { first, both };
  /// Checks first derivatives of a function in f32 against differences of an equal one in f64.
  void against(std::string_view what, const Function& f, const Function& reference, Inputs inputs,
               double tolerance = 2e-5, Orders orders = Orders::both);

  /// Fails the test if nothing was compared, or the op's rule never ran.
  void finish() const;

 private:
  void compare(const std::string& what, const Function& f, const Function& reference, Inputs inputs,
               DType dtype, double tolerance);

  Op op_;
  int64_t compared_ = 0;
  std::set<std::string_view> remembered_;  ///< names of the recorded calls
};

using CheckBody = void (*)(GradientCheck&);
/// Registers a check as a test. Rows without a gradient are skipped.
bool add_gradient_check(Op op, CheckBody body, const char* file, int line);
/// Registers a test that the op rejects a gradient.
bool add_refusal(Op op, void (*body)(), const char* file, int line);
/// The ops that have a check or a rejection test, once for each.
std::multiset<Op>& checked_ops();
std::multiset<Op>& refused_ops();

#define WICK_GRADIENT_CHECK(op)                                                            \
  static void check_of_##op(::wick::test::GradientCheck& check);                           \
  [[maybe_unused]] static const bool has_check_of_##op =                                   \
      ::wick::test::add_gradient_check(::wick::Op::op, check_of_##op, __FILE__, __LINE__); \
  static void check_of_##op(::wick::test::GradientCheck& check)

#define WICK_NO_GRADIENT(op)                                                          \
  static void refusal_of_##op();                                                      \
  [[maybe_unused]] static const bool has_refusal_of_##op =                            \
      ::wick::test::add_refusal(::wick::Op::op, refusal_of_##op, __FILE__, __LINE__); \
  static void refusal_of_##op()

}  // namespace wick::test
