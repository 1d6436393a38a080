#include "tests/tensor/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "wick/tensor/tape.h"

namespace wick::test {

Tensor numbers(const Shape& shape, uint64_t seed, double low, double high) {
  std::vector<double> values;
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    values.push_back(low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53);
  }
  return Tensor::from(values, shape);
}

Tensor strided(const Tensor& x) {
  if (x.rank() == 0 || x.rank() == Shape::kMaxRank) return x;
  std::vector<int> order;
  for (int d = x.rank(); d-- > 0;) order.push_back(d);
  // Stores x with reversed dims and another value behind each element; returns a view like x.
  const Tensor turned = x.permute(order).contiguous();
  const Tensor both[] = {turned, affine(turned, -1, 0.5)};
  return stack(both, -1).slice(-1, 0, 1).squeeze(-1).permute(order);
}

namespace {

/// The inner product of a result with fixed numbers: a scalar whose gradient is checked.
Tensor weighed(const Tensor& y) { return sum(y * numbers(y.shape(), 99).to(y.dtype())); }

/// The derivatives of weighed(f) by each element of each input, by central differences.
std::vector<std::vector<double>> differences(const Function& f, Inputs inputs) {
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

struct GradientsOn {
  GradientsOn() { set_grad_enabled(true); }
  ~GradientsOn() { set_grad_enabled(before); }
  bool before = grad_enabled();
};

/// The gradients of a scalar computed from f, as a function of f's inputs.
Function slopes_of(const Function& f) {
  return [f](Inputs at) {
    // Differences pass plain tensors, which become leaves here; second derivatives pass leaves.
    const bool tracked = grad_enabled() && at.front().needs_grad();
    std::vector<Tensor> leaves, flat;
    for (const Tensor& x : at) leaves.push_back(tracked ? x : x.requires_grad());
    {
      const GradientsOn on;
      const std::vector<Tensor> given = gradients(weighed(sqr(f(leaves))), leaves, {}, true);
      for (const Tensor& g : given) flat.push_back(g.flatten());
    }
    const Tensor all = cat(flat, 0);
    return tracked ? all : all.detach();
  };
}

void collect_names(const Tensor& y, std::set<std::string_view>& names) {
  std::set<const tape::Node*> seen;
  std::vector<const tape::Node*> open = {y.node().get()};
  while (!open.empty()) {
    const tape::Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    names.insert(node->name);
    for (const Tensor& x : node->inputs) open.push_back(x.node().get());
  }
}

class CheckTest : public testing::Test {
 public:
  CheckTest(Op op, CheckBody body) : op_(op), body_(body) {}
  void TestBody() override {
    GradientCheck check(op_);
    body_(check);
    if (!HasFailure()) check.finish();
  }

 private:
  Op op_;
  CheckBody body_;
};

class RefusalTest : public testing::Test {
 public:
  explicit RefusalTest(void (*body)()) : body_(body) {}
  void TestBody() override { body_(); }

 private:
  void (*body_)();
};

}  // namespace

void GradientCheck::compare(const std::string& what, const Function& f, const Function& reference,
                            Inputs inputs, DType dtype, double tolerance) {
  const auto wanted = differences(reference, inputs);
  for (const bool with_strides : {false, true}) {
    const auto laid_out = [&](const Tensor& x) { return with_strides ? strided(x) : x; };
    std::vector<Tensor> plain, leaves;
    for (const Tensor& x : inputs) {
      plain.push_back(laid_out(x.to(dtype)));
      leaves.push_back(plain.back().requires_grad());
    }
    const Tensor y = f(leaves);
    collect_names(y, remembered_);
    const std::vector<Tensor> given =
        gradients(y, leaves, laid_out(numbers(y.shape(), 99).to(y.dtype())));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string where =
          what + (with_strides ? ", strided" : "") + ", input " + std::to_string(i) + ", element ";
      ASSERT_TRUE(given[i].defined()) << where << "none: no gradient";
      ASSERT_EQ(given[i].shape(), inputs[i].shape()) << where;
      ASSERT_EQ(given[i].dtype(), dtype) << where;
      const std::vector<double> got = given[i].to(DType::f64).to_vector<double>();
      for (size_t e = 0; e < got.size(); ++e) {
        ASSERT_LE(std::fabs(got[e] - wanted[i][e]), tolerance * (1 + std::fabs(wanted[i][e])))
            << where << e << ": " << got[e] << ", not " << wanted[i][e];
        ++compared_;
      }
    }
    EXPECT_FALSE(f(plain).needs_grad()) << what;
    const NoGrad none;
    EXPECT_FALSE(f(leaves).needs_grad()) << what;
  }
}

void GradientCheck::once(std::string_view what, const Function& f, Inputs inputs) {
  if (testing::Test::HasFailure()) return;
  compare(std::string(what), f, f, inputs, DType::f64, 1e-6);
}

void GradientCheck::twice(std::string_view what, const Function& f, Inputs inputs) {
  once(what, f, inputs);
  if (testing::Test::HasFailure()) return;
  const Function slopes = slopes_of(f);
  compare(std::string(what) + ", second order", slopes, slopes, inputs, DType::f64, 1e-6);
}

void GradientCheck::against(std::string_view what, const Function& f, const Function& reference,
                            Inputs inputs, double tolerance, Orders orders) {
  if (testing::Test::HasFailure()) return;
  std::vector<Tensor> rounded;
  for (const Tensor& x : inputs) rounded.push_back(x.to(DType::f32).to(DType::f64));
  compare(std::string(what), f, reference, rounded, DType::f32, tolerance);
  if (testing::Test::HasFailure() || orders == Orders::first) return;
  compare(std::string(what) + ", second order", slopes_of(f), slopes_of(reference), rounded,
          DType::f32, 10 * tolerance);
}

void GradientCheck::finish() const {
  EXPECT_GT(compared_, 0) << "nothing was compared";
  if (info(op_).gradient == Gradient::rule) {
    EXPECT_TRUE(remembered_.contains(name(op_))) << "no call was remembered by the op's rule";
  }
}

std::multiset<Op>& checked_ops() {
  static std::multiset<Op> ops;
  return ops;
}
std::multiset<Op>& refused_ops() {
  static std::multiset<Op> ops;
  return ops;
}

bool add_gradient_check(Op op, CheckBody body, const char* file, int line) {
  const Gradient g = info(op).gradient;
  if (g != Gradient::rule && g != Gradient::composed) return false;
  checked_ops().insert(op);
  testing::RegisterTest("Gradient", std::string(name(op)).c_str(), nullptr, nullptr, file, line,
                        [=]() -> testing::Test* { return new CheckTest(op, body); });
  return true;
}

bool add_refusal(Op op, void (*body)(), const char* file, int line) {
  const Gradient g = info(op).gradient;
  if (g == Gradient::rule || g == Gradient::composed) return false;
  refused_ops().insert(op);
  testing::RegisterTest("NoGradient", std::string(name(op)).c_str(), nullptr, nullptr, file, line,
                        [=]() -> testing::Test* { return new RefusalTest(body); });
  return true;
}

}  // namespace wick::test
