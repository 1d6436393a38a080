// Reductions, norms and attention give the same bits for any number of threads.

#include <fmt/format.h>

#include "tests/parity/grid.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::parity {
namespace {

void check(std::string_view what, TestTensor& out, const std::function<void(Backend&)>& call) {
  cpu::ThreadPool& pool = cpu::ThreadPool::global();
  const int usual = pool.threads();
  Backend& backend = *targets().front().backend;  // the CPU backend that uses these threads
  std::vector<uint64_t> first;
  for (int threads : {1, 2, 3, 7}) {
    pool.set_threads(threads);
    out.wipe();
    call(backend);
    if (first.empty()) {
      first = out.bits();
    } else {
      EXPECT_EQ(out.bits(), first) << what << " with " << threads << " threads";
    }
  }
  pool.set_threads(usual);
}

void check_all(DType dtype) {
  Random random(61);
  const auto reduce = [&](const Shape& shape, uint32_t dims, Shape out_shape) {
    TestTensor x(dtype, Place::contiguous, shape, 1),
        y(dtype, Place::contiguous, out_shape, 2, true);
    x.fill(Values::normal, random);
    check(fmt::format("sum {} {:#b}", shape.str(), dims), y,
          [&](Backend& b) { b.reduce(Op::sum, y.view(), std::as_const(x).view(), dims); });
  };
  reduce({300001}, 1, {1});
  reduce({3, 100003}, 2, {3, 1});
  reduce({700, 600}, 2, {700, 1});
  reduce({700, 600}, 1, {1, 600});
  reduce({20000, 24}, 1, {1, 24});

  TestTensor x(dtype, Place::contiguous, {400, 576}, 1), w(dtype, Place::contiguous, {576}, 2),
      y(dtype, Place::contiguous, {400, 576}, 3, true);
  x.fill(Values::normal, random);
  w.fill(Values::normal, random);
  const ConstView in = std::as_const(x).view(), weight = std::as_const(w).view();
  check("rms_norm", y, [&](Backend& b) { b.rms_norm(y.view(), in, weight, 1e-5f); });
  TestTensor line(dtype, Place::contiguous, {1, 2, 115200}, 4, true);
  const ConstView one{in.data, dtype, Layout::contiguous(line.shape(), in.layout.offset())};
  check("group_norm of one row", line,
        [&](Backend& b) { b.group_norm(line.view(), one, 1, {}, {}, 1e-5f); });
  check("group_norm", y,
        [&](Backend& b) { b.group_norm(y.view(), in, 96, weight, weight, 1e-5f); });
  TestTensor variance(dtype, Place::contiguous, {576}, 5);
  variance.fill_with([](int64_t i) { return 1 + static_cast<long double>(i) / 64; });
  const ConstView spread = std::as_const(variance).view();
  check("batch_norm", y,
        [&](Backend& b) { b.batch_norm(y.view(), in, weight, spread, weight, weight, 1e-5f); });
  check("softmax", y, [&](Backend& b) { b.softmax(y.view(), in, 1, false); });
  check("softmax of columns", y, [&](Backend& b) { b.softmax(y.view(), in, 0, false); });

  for (int64_t m : {1, 2, 150}) {
    TestTensor q(dtype, Place::contiguous, {2, 9, m, 32}, 1),
        k(dtype, Place::contiguous, {2, 3, 400, 32}, 2),
        v(dtype, Place::contiguous, {2, 3, 400, 32}, 3),
        o(dtype, Place::contiguous, {2, 9, m, 32}, 4, true);
    for (TestTensor* t : {&q, &k, &v}) t->fill(Values::normal, random);
    const ConstView qv = std::as_const(q).view(), kv = std::as_const(k).view(),
                    vv = std::as_const(v).view();
    check(fmt::format("attention of {} queries", m), o, [&](Backend& b) {
      b.attention(o.view(), qv, kv, vv, AttentionParams{.scale = 0.2f}, {});
    });
  }
}

const bool added = [] {
  for (DType dtype : {DType::f32, DType::bf16}) {
    add(fmt::format("threads.{}", name(dtype)), [=] { check_all(dtype); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
