// causal_conv, ssm_scan and gated_delta_scan: results and states have the bits of the order in
// docs/design/numerics/recurrence.md. f32 calls go to the backend; narrow dtypes go through the
// functions, which compute in f32 and round once. States without a sequence don't change, and a
// sequence without a valid slot is an error.

#include <fmt/format.h>

#include <cmath>

#include "tests/expect_error.h"
#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "tests/parity/tensors.h"
#include "wick/math/exp_log.h"
#include "wick/tensor/ops.h"

namespace wick::parity {
namespace {

using Floats = std::vector<float>;

struct Case {
  Place place;
  int64_t sequences, each;  ///< rows: sequences · each
  int64_t heads, columns;   ///< of causal_conv: heads · columns channels
  int64_t groups, m;        ///< of causal_conv: m taps
  bool optional = true;     ///< whether the call has a bias, or d
};

const Case kCases[] = {
    {Place::contiguous, 1, 1, 4, 64, 2, 16},      {Place::contiguous, 3, 7, 4, 64, 1, 128},
    {Place::contiguous, 2, 5, 3, 100, 3, 4},      {Place::contiguous, 1, 40, 2, 33, 1, 3, false},
    {Place::contiguous, 5, 1, 2, 128, 2, 64},     {Place::contiguous, 2, 3, 1, 16, 1, 256},
    {Place::contiguous, 1, 2, 1, 5, 1, 1, false}, {Place::transposed, 2, 4, 4, 20, 2, 8},
    {Place::sliced, 2, 3, 2, 48, 1, 32, false},   {Place::stepped, 3, 2, 4, 17, 2, 5},
    {Place::scattered, 2, 6, 2, 24, 2, 100},      {Place::broadcast, 2, 3, 4, 32, 2, 16},
    {Place::scalar, 1, 3, 2, 40, 1, 20},          {Place::contiguous, 2, 0, 2, 8, 1, 4},
    {Place::contiguous, 1, 2, 3, 0, 1, 4},        {Place::contiguous, 70, 1, 2, 24, 1, 12},
};

/// What differs between the rows.
struct Kind {
  Op op;
  std::vector<Shape> (*shapes)(const Case&);  ///< of the operands; the first has y's shape
  Shape (*state)(const Case&);                ///< a sequence's state
  void (*backend)(Backend&, const View& out, std::span<const ConstView>, const Recurrence&);
  Tensor (*tensors)(std::span<const Tensor>, const Tensor& state, const Tensor& slots);
  /// One row of one sequence: reads the row's operands, advances the state and returns y.
  Floats (*row)(const Case&, const std::vector<Floats>& operands, int64_t row, Floats& state);
};

int64_t channels(const Case& c) { return c.heads * c.columns; }

Floats conv_row(const Case& c, const std::vector<Floats>& x, int64_t row, Floats& state) {
  const int64_t n = channels(c), taps = c.m;
  Floats window = state;
  for (int64_t i = 0; i < n; ++i) window.push_back(x[0][static_cast<size_t>(row * n + i)]);
  Floats y;
  for (int64_t i = 0; i < n; ++i) {
    float sum = x.size() > 2 ? x[2][static_cast<size_t>(i)] : 0.0f;
    for (int64_t j = 0; j < taps; ++j) {
      sum = std::fma(x[1][static_cast<size_t>(i * taps + j)],
                     window[static_cast<size_t>(j * n + i)], sum);
    }
    y.push_back(sum);
  }
  state.assign(window.begin() + static_cast<ptrdiff_t>(n), window.end());
  return y;
}

/// Operands: x, dt, a, b, c, d.
Floats ssm_row(const Case& c, const std::vector<Floats>& of, int64_t row, Floats& state) {
  Floats y;
  for (int64_t h = 0; h < c.heads; ++h) {
    const int64_t group = h / (c.heads / c.groups), first = (row * c.groups + group) * c.m;
    const float dt = of[1][static_cast<size_t>(row * c.heads + h)];
    const float decay = math::exp(dt * of[2][static_cast<size_t>(h)]);
    for (int64_t p = 0; p < c.columns; ++p) {
      const float x = of[0][static_cast<size_t>((row * c.heads + h) * c.columns + p)];
      float sum = 0;
      for (int64_t n = 0; n < c.m; ++n) {
        float& s = state[static_cast<size_t>((h * c.m + n) * c.columns + p)];
        s = std::fma(s, decay, (dt * x) * of[3][static_cast<size_t>(first + n)]);
        sum = std::fma(s, of[4][static_cast<size_t>(first + n)], sum);
      }
      if (of.size() > 5) sum = std::fma(of[5][static_cast<size_t>(h)], x, sum);
      y.push_back(sum);
    }
  }
  return y;
}

/// Operands: v, q, k, g, beta.
Floats delta_row(const Case& c, const std::vector<Floats>& of, int64_t row, Floats& state) {
  Floats y;
  for (int64_t h = 0; h < c.heads; ++h) {
    const int64_t group = h / (c.heads / c.groups), first = (row * c.groups + group) * c.m;
    const float decay = math::exp(of[3][static_cast<size_t>(row * c.heads + h)]);
    const float beta = of[4][static_cast<size_t>(row * c.heads + h)];
    const float *q = of[1].data() + first, *k = of[2].data() + first;
    for (int64_t p = 0; p < c.columns; ++p) {
      const float v = of[0][static_cast<size_t>((row * c.heads + h) * c.columns + p)];
      const auto at = [&](int64_t n) -> float& {
        return state[static_cast<size_t>((h * c.m + n) * c.columns + p)];
      };
      float held = 0, sum = 0;
      for (int64_t n = 0; n < c.m; ++n) {
        at(n) *= decay;
        held = std::fma(at(n), k[n], held);
      }
      const float change = (v - held) * beta;
      for (int64_t n = 0; n < c.m; ++n) {
        at(n) = std::fma(k[n], change, at(n));
        sum = std::fma(at(n), q[n], sum);
      }
      y.push_back(sum);
    }
  }
  return y;
}

const Kind kConv{
    Op::causal_conv,
    [](const Case& c) -> std::vector<Shape> {
      std::vector<Shape> all = {{c.sequences * c.each, channels(c)}, {channels(c), c.m}};
      if (c.optional) all.push_back({channels(c)});
      return all;
    },
    [](const Case& c) -> Shape {
      return {c.m - 1, channels(c)};
    },
    [](Backend& b, const View& out, std::span<const ConstView> x, const Recurrence& where) {
      b.causal_conv(out, x[0], x[1], x.size() > 2 ? x[2] : ConstView{}, where);
    },
    [](std::span<const Tensor> x, const Tensor& state, const Tensor& slots) {
      return causal_conv(x[0], x[1], state, slots, x.size() > 2 ? x[2] : Tensor());
    },
    conv_row};

const Kind kSsm{
    Op::ssm_scan,
    [](const Case& c) -> std::vector<Shape> {
      const int64_t t = c.sequences * c.each;
      std::vector<Shape> all = {
          {t, c.heads, c.columns}, {t, c.heads}, {c.heads}, {t, c.groups, c.m}, {t, c.groups, c.m}};
      if (c.optional) all.push_back({c.heads});
      return all;
    },
    [](const Case& c) -> Shape {
      return {c.heads, c.m, c.columns};
    },
    [](Backend& b, const View& out, std::span<const ConstView> x, const Recurrence& where) {
      b.ssm_scan(out, {x[0], x[1], x[2], x[3], x[4], x.size() > 5 ? x[5] : ConstView{}}, where);
    },
    [](std::span<const Tensor> x, const Tensor& state, const Tensor& slots) {
      return ssm_scan(x[0], x[1], x[2], x[3], x[4], state, slots, x.size() > 5 ? x[5] : Tensor());
    },
    ssm_row};

const Kind kDelta{
    Op::gated_delta_scan,
    [](const Case& c) -> std::vector<Shape> {
      const int64_t t = c.sequences * c.each;
      return {{t, c.heads, c.columns},
              {t, c.groups, c.m},
              {t, c.groups, c.m},
              {t, c.heads},
              {t, c.heads}};
    },
    [](const Case& c) -> Shape {
      return {c.heads, c.m, c.columns};
    },
    [](Backend& b, const View& out, std::span<const ConstView> x, const Recurrence& where) {
      b.gated_delta_scan(out, {.q = x[1], .k = x[2], .v = x[0], .g = x[3], .beta = x[4]}, where);
    },
    [](std::span<const Tensor> x, const Tensor& state, const Tensor& slots) {
      return gated_delta_scan(x[1], x[2], x[0], x[3], x[4], state, slots);
    },
    delta_row};

/// The operands of a call. One state row belongs to no sequence; the others are in reverse order.
struct Call {
  std::vector<TestTensor> operands;
  TestTensor state, slots, out;

  Call(const Kind& kind, const Case& c, DType dtype, Values values, Random& random)
      : state(DType::f32, Place::contiguous, kind.state(c).with_inserted(0, c.sequences + 1), 1,
              true),
        slots(DType::u32, c.place == Place::stepped ? Place::stepped : Place::contiguous,
              {c.sequences}, 2),
        out(DType::f32, Place::contiguous, kind.shapes(c)[0], 3, true) {
    int index = 4;
    for (const Shape& shape : kind.shapes(c)) {
      operands.emplace_back(dtype, c.place, shape, index++);
      operands.back().fill(values, random);
    }
    state.fill(Values::normal, random);
    slots.fill_bits([&](int64_t i) { return static_cast<uint64_t>(c.sequences - i); });
  }
};

/// The expected result and states.
struct Expected {
  Floats y, state;

  Expected(const Kind& kind, const Case& c, const Call& call) : state(elements<float>(call.state)) {
    std::vector<Floats> operands;
    for (const TestTensor& x : call.operands) operands.push_back(elements<float>(x));
    const auto size = static_cast<size_t>(kind.state(c).elems());
    for (int64_t i = 0; i < c.sequences; ++i) {
      const auto first =
          state.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(c.sequences - i) * size);
      Floats own(first, first + static_cast<ptrdiff_t>(size));
      for (int64_t j = 0; j < c.each; ++j) {
        const Floats row = kind.row(c, operands, i * c.each + j, own);
        y.insert(y.end(), row.begin(), row.end());
      }
      std::copy(own.begin(), own.end(), first);
    }
  }
};

std::vector<uint64_t> rounded(const Floats& x, DType dtype) {
  std::vector<uint64_t> bits;
  for (const float v : x) bits.push_back(encode(dtype, v));
  return bits;
}

void check_on_backends(const Kind& kind, const Case& c, Call& call, const std::string& what) {
  const Expected want(kind, c, call);
  const std::vector<uint64_t> before = call.state.bits();
  for (const Target& target : targets()) {
    const Blame blame(target, what);
    call.state.fill_bits([&](int64_t i) { return before[static_cast<size_t>(i)]; });
    call.out.wipe();
    Backend& backend = *target.backend;
    const OnDevice out(backend, call.out.storage()), state(backend, call.state.storage()),
        slots(backend, call.slots.storage());
    std::vector<std::unique_ptr<OnDevice>> held;
    std::vector<ConstView> views;
    for (const TestTensor& x : call.operands) {
      held.push_back(std::make_unique<OnDevice>(backend, x.storage()));
      views.push_back(held.back()->view(x.view()));
    }
    kind.backend(backend, out.view(call.out.view()), views,
                 {state.view(call.state.view()), slots.view(std::as_const(call.slots).view())});
    backend.synchronize();
    out.fetch(call.out.storage());
    state.fetch(call.state.storage());
    EXPECT_TRUE(call.out.surroundings_intact() && call.state.surroundings_intact())
        << what << " on " << target.name;
    const std::string where = what + " on " + target.name;
    expect_same(where, DType::f32, call.out.bits(), rounded(want.y, DType::f32));
    expect_same(where + ", state", DType::f32, call.state.bits(), rounded(want.state, DType::f32));
    if (failed()) return;
  }
}

/// Runs the function twice: for its result and for the state.
void check_function(const Kind& kind, const Case& c, const Call& call, DType dtype,
                    const std::string& what) {
  const Expected want(kind, c, call);
  std::vector<const TestTensor*> inputs;
  for (const TestTensor& x : call.operands) inputs.push_back(&x);
  inputs.push_back(&call.state);
  inputs.push_back(&call.slots);
  for (const bool for_state : {false, true}) {
    const DType result = for_state ? DType::f32 : dtype;
    const bool passed = run_tensors(
        what, inputs, result, for_state ? call.state.shape() : call.out.shape(),
        [&](std::span<const Tensor> x) {
          const Tensor y = kind.tensors(x.first(x.size() - 2), x[x.size() - 2], x.back());
          return for_state ? x[x.size() - 2] : y;
        },
        [&](const std::vector<uint64_t>& bits) {
          expect_same(what, result, bits, rounded(for_state ? want.state : want.y, result));
        });
    if (!passed) return;
  }
}

void check(const Kind& kind, DType dtype) {
  Random random(71);
  for (const Case& c : kCases) {
    if (!here(c.place, kind.shapes(c)[0])) continue;
    for (const Values values : {Values::normal, Values::special}) {
      Call call(kind, c, dtype, values, random);
      const std::string what = fmt::format(
          "{} of {} rows of {} sequences, {} heads of {} columns, {} groups of {}, {} "
          "{} {}",
          name(kind.op), c.each, c.sequences, c.heads, c.columns, c.groups, c.m, name(c.place),
          name(dtype), name(values));
      if (dtype == DType::f32 && call.out.elems() > 0) {
        check_on_backends(kind, c, call, what);
      } else {
        check_function(kind, c, call, dtype, what);
      }
      if (failed()) return;
    }
  }
}

/// Slots out of range, and one slot of two sequences.
void check_errors(const Kind& kind) {
  struct Wrong {
    const char* part;
    uint64_t slots[3];
  };
  const Wrong wrongs[] = {{"slot out of range|id out of range", {1, 4, 2}},
                          {"slot out of range|id out of range", {1, 0xffffffffu, 2}},
                          {"two sequences have one slot", {2, 0, 2}}};
  Random random(72);
  const Case c{Place::contiguous, 3, 2, 2, 40, 1, 4};
  for (const Wrong& wrong : wrongs) {
    for (const Target& target : targets()) {
      Call call(kind, c, DType::f32, Values::normal, random);
      call.slots.fill_bits([&](int64_t i) { return wrong.slots[i]; });
      Backend& backend = *target.backend;
      const OnDevice out(backend, call.out.storage()), state(backend, call.state.storage()),
          slots(backend, call.slots.storage());
      std::vector<std::unique_ptr<OnDevice>> held;
      std::vector<ConstView> views;
      for (const TestTensor& x : call.operands) {
        held.push_back(std::make_unique<OnDevice>(backend, x.storage()));
        views.push_back(held.back()->view(x.view()));
      }
      const std::string error = test::error_of([&] {
        kind.backend(backend, out.view(call.out.view()), views,
                     {state.view(call.state.view()), slots.view(std::as_const(call.slots).view())});
        backend.synchronize();
      });
      const std::string_view parts = wrong.part;
      const size_t bar = parts.find('|');
      const bool says =
          error.find(parts.substr(0, bar)) != std::string::npos ||
          (bar != std::string_view::npos && error.find(parts.substr(bar + 1)) != std::string::npos);
      EXPECT_TRUE(says && error.starts_with(std::string(name(kind.op)) + ": "))
          << target.name << ": " << error << ", expected " << parts;
      state.fetch(call.state.storage());
      EXPECT_TRUE(call.state.surroundings_intact()) << target.name;
    }
  }
}

const bool added = [] {
  for (const Kind* kind : {&kConv, &kSsm, &kDelta}) {
    add_rows(kind->op, [kind](DType dtype) { check(*kind, dtype); });
    add(std::string(name(kind->op)) + ".errors", [kind] { check_errors(*kind); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
