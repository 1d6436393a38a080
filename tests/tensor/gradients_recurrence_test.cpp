// Gradients of recurrences, which are compared with equivalent ops in f64.

#include <gmock/gmock.h>

#include "tests/expect_error.h"
#include "tests/tensor/gradient_check.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using test::GradientCheck;
using test::Inputs;
using test::numbers;

constexpr int64_t kEach = 3, kSequences = 2, kStates = 3;

/// Each sequence's row of the state, which the calls don't visit in order.
Tensor slots() { return Tensor::from(std::vector<uint32_t>{2, 0}, {kSequences}); }

/// The rows of the states [s, ..] that belong to the sequences, in f64.
Tensor of_sequences(const Tensor& states) { return index_select(states, slots(), 0); }

/// x [t, ..] → row i of each sequence, [b, ..].
Tensor row(const Tensor& x, int64_t i) {
  std::vector<uint32_t> rows;
  for (int64_t b = 0; b < kSequences; ++b) rows.push_back(static_cast<uint32_t>(b * kEach + i));
  return index_select(x, Tensor::from(rows, {kSequences}), 0);
}

/// The rows [b, ..] of each step → [t, ..].
Tensor in_order(const std::vector<Tensor>& steps) {
  const Tensor all = stack(steps, 1);
  std::vector<int64_t> sizes = {all.size(0) * all.size(1)};
  for (int d = 2; d < all.rank(); ++d) sizes.push_back(all.size(d));
  return all.reshape(Shape(std::span<const int64_t>(sizes)));
}

/// The vectors of groups [b, g, m] for all heads [b, h, m].
Tensor for_heads(const Tensor& x, int64_t heads) {
  return repeat_interleave(x, heads / x.size(1), 1);
}

WICK_GRADIENT_CHECK(causal_conv) {
  constexpr int64_t kChannels = 4;
  for (const int64_t taps : {1, 2, 4}) {
    const Tensor before = numbers({kStates, taps - 1, kChannels}, 30);
    const auto call = [&](Inputs i, const Tensor& bias) {
      return causal_conv(i[0], i[1], before.to(DType::f32), slots(), bias);
    };
    const auto reference = [&](Inputs i, const Tensor& bias) {
      const Tensor parts[] = {of_sequences(before), i[0].reshape({kSequences, kEach, kChannels})};
      const Tensor all = (taps == 1 ? parts[1] : cat(parts, 1)).transpose(1, 2);
      const Tensor y = conv1d(all, i[1].unsqueeze(1), {}, {.groups = kChannels}).transpose(1, 2);
      const Tensor rows = y.reshape({kSequences * kEach, kChannels});
      return bias.defined() ? rows + bias : rows;
    };
    const Tensor x = numbers({kSequences * kEach, kChannels}, 31),
                 weight = numbers({kChannels, taps}, 32), bias = numbers({kChannels}, 33);
    check.against(
        "with a bias", [&](Inputs i) { return call(i, i[2]); },
        [&](Inputs i) { return reference(i, i[2]); }, {x, weight, bias});
    check.against(
        "without a bias", [&](Inputs i) { return call(i, {}); },
        [&](Inputs i) { return reference(i, {}); }, {x, weight});
  }
}

WICK_GRADIENT_CHECK(ssm_scan) {
  constexpr int64_t kHeads = 4, kGroups = 2, kM = 3, kColumns = 2, kRows = kSequences * kEach;
  const Tensor before = numbers({kStates, kHeads, kM, kColumns}, 40);
  const auto reference = [&](Inputs i, const Tensor& d) {
    Tensor s = of_sequences(before);
    std::vector<Tensor> ys;
    for (int64_t t = 0; t < kEach; ++t) {
      const Tensor x = row(i[0], t), dt = row(i[1], t);
      const Tensor operands[] = {dt.unsqueeze(-1) * x, for_heads(row(i[3], t), kHeads)};
      s = exp(dt * i[2]).reshape({kSequences, kHeads, 1, 1}) * s +
          einsum("bhp,bhn->bhnp", operands);
      const Tensor read[] = {s, for_heads(row(i[4], t), kHeads)};
      const Tensor y = einsum("bhnp,bhn->bhp", read);
      ys.push_back(d.defined() ? y + d.unsqueeze(-1) * x : y);
    }
    return in_order(ys);
  };
  const auto call = [&](Inputs i, const Tensor& d) {
    return ssm_scan(i[0], i[1], i[2], i[3], i[4], before.to(DType::f32), slots(), d);
  };
  const Tensor x = numbers({kRows, kHeads, kColumns}, 41),
               dt = numbers({kRows, kHeads}, 42, 0.1, 1), a = numbers({kHeads}, 43, -1.5, -0.2),
               b = numbers({kRows, kGroups, kM}, 44), c = numbers({kRows, kGroups, kM}, 45),
               d = numbers({kHeads}, 46);
  check.against(
      "with d", [&](Inputs i) { return call(i, i[5]); },
      [&](Inputs i) { return reference(i, i[5]); }, {x, dt, a, b, c, d}, 5e-5);
  check.against(
      "without d", [&](Inputs i) { return call(i, {}); },
      [&](Inputs i) { return reference(i, {}); }, {x, dt, a, b, c}, 5e-5);
}

WICK_GRADIENT_CHECK(gated_delta_scan) {
  constexpr int64_t kHeads = 4, kGroups = 2, kM = 3, kColumns = 2, kRows = kSequences * kEach;
  const Tensor before = numbers({kStates, kHeads, kM, kColumns}, 50);
  const auto reference = [&](Inputs i) {
    Tensor s = of_sequences(before);
    std::vector<Tensor> ys;
    for (int64_t t = 0; t < kEach; ++t) {
      const Tensor k = for_heads(row(i[1], t), kHeads);
      s = s * exp(row(i[3], t)).reshape({kSequences, kHeads, 1, 1});
      const Tensor held[] = {s, k};
      const Tensor change =
          (row(i[2], t) - einsum("bhmp,bhm->bhp", held)) * row(i[4], t).unsqueeze(-1);
      const Tensor written[] = {k, change};
      s = s + einsum("bhm,bhp->bhmp", written);
      const Tensor read[] = {s, for_heads(row(i[0], t), kHeads)};
      ys.push_back(einsum("bhmp,bhm->bhp", read));
    }
    return in_order(ys);
  };
  const Tensor q = numbers({kRows, kGroups, kM}, 51, -0.8, 0.8),
               k = numbers({kRows, kGroups, kM}, 52, -0.8, 0.8),
               v = numbers({kRows, kHeads, kColumns}, 53), g = numbers({kRows, kHeads}, 54, -1, 0),
               beta = numbers({kRows, kHeads}, 55, 0.1, 0.9);
  check.against(
      "heads in groups",
      [&](Inputs i) {
        return gated_delta_scan(i[0], i[1], i[2], i[3], i[4], before.to(DType::f32), slots());
      },
      reference, {q, k, v, g, beta}, 5e-5);
}

TEST(GradientOf, RecurrencesAdvanceTheirStates) {
  const Tensor x = numbers({4, 2, 3}, 60).to(DType::f32),
               dt = numbers({4, 2}, 61, 0.1, 1).to(DType::f32);
  const Tensor a = numbers({2}, 62, -1, 0).to(DType::f32),
               b = numbers({4, 1, 5}, 63).to(DType::f32);
  const Tensor start = numbers({3, 2, 5, 3}, 64).to(DType::f32);
  const Tensor plain = start.clone(), recorded = start.clone();
  const Tensor y = ssm_scan(x, dt, a, b, b, plain, slots());
  const Tensor leaf = x.clone().requires_grad();
  const Tensor z = ssm_scan(leaf, dt, a, b, b, recorded, slots());
  EXPECT_TRUE(z.needs_grad());
  const auto near = [](const Tensor& got, const Tensor& want) {
    const auto g = got.to_vector<float>(), w = want.to_vector<float>();
    ASSERT_EQ(g.size(), w.size());
    for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], w[i], 1e-5f) << i;
  };
  near(z.detach(), y);
  near(recorded, plain);
  const auto row_of = [](const Tensor& states) {
    return states.narrow(0, 1, 1).to_vector<float>();  // of no sequence
  };
  EXPECT_EQ(row_of(recorded), row_of(start));
  EXPECT_THAT(
      error_of([&] { (void)ssm_scan(x, dt, a, b, b, start.clone().requires_grad(), slots()); }),
      testing::HasSubstr("it writes to its state; detach it"));
}

}  // namespace
}  // namespace wick
