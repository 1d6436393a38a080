// Cases of the soak test: held memory, tensors that move between devices, graphs, and errors in
// between.

#include <cmath>

#include "tests/backend/soak.h"
#include "tests/backend/soak_chain.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

void hold(Soak& s) {
  s.what = "memory that is held";
  if (s.held.size() > 20 || (s.one_in(2) && !s.held.empty())) {
    const auto at = s.held.begin() + s.random.below(static_cast<int64_t>(s.held.size()));
    (*at)->check();
    s.held.erase(at);
  } else {
    const auto bytes = static_cast<size_t>(s.size(s.options.elems * 16) - s.random.below(2));
    s.held.push_back(std::make_unique<Held>(s.gpu, bytes, s.random));
  }
}

void trim(Soak& s) {
  s.what = "trim";
  s.gpu.trim();
  if (const size_t cached = s.gpu.memory_info().cached_bytes; cached != 0) {
    s.fail(fmt::format("{} bytes are cached after it", cached));
  }
}

void too_much(Soak& s) {
  s.what = "more memory than there is";
  s.expect_error("", [&] {
    void* data = s.gpu.alloc(size_t{1} << 50);
    s.gpu.free(data, size_t{1} << 50);
  });
}

/// Sets a limit that a request exceeds, and then lifts it.
void limit(Soak& s) {
  s.what = "a limit of memory";
  const size_t bytes = size_t{1} << 20;
  s.gpu.set_memory_limit(s.gpu.memory_info().in_use_bytes + bytes);
  s.expect_error("", [&] { s.gpu.free(s.gpu.alloc(2 * bytes), 2 * bytes); });
  s.gpu.set_memory_limit(0);
  s.gpu.free(s.gpu.alloc(2 * bytes), 2 * bytes);
}

/// Reads a result back while later work runs.
void readback(Soak& s) {
  const int64_t n = s.size(s.options.elems);
  s.what = fmt::format("a readback of {}", n);
  TestTensor in(DType::f32, Place::contiguous, {n}, 1), out(DType::f32, Place::contiguous, {n}, 2);
  in.fill(Values::normal, s.random);
  s.cpu.unary(Op::silu, out.view(), std::as_const(in).view());
  const std::vector<uint64_t> expected = out.bits();
  const OnDevice in_there(s.gpu, in.storage()), out_there(s.gpu, out.storage());
  const View result = out_there.view(out.view());
  s.gpu.fill(result, 0);
  s.gpu.unary(Op::silu, result, in_there.view(std::as_const(in).view()));
  const auto back = s.gpu.start_readback(result.data, out.storage().size());
  if (s.one_in(2)) {
    const OnDevice beside(s.gpu, in.storage());
    s.gpu.unary(Op::neg, beside.view(in.view()), in_there.view(std::as_const(in).view()));
  }
  if (s.one_in(8)) return;  // destroyed without being finished
  back->finish(out.storage().data());
  s.expect_same("the result", DType::f32, expected, out.bits());
}

/// Views of a tensor on both devices are copied, cast and fetched.
void tensors(Soak& s) {
  const Shape shape = s.shape(1, 4);
  std::vector<float> values(static_cast<size_t>(shape.elems()));
  for (float& x : values) x = static_cast<float>(s.random.normal());
  const DType dtype = s.dtype(dtypes::kReal);
  const int64_t views = s.random.below(4);
  std::vector<std::pair<int, int>> choices;
  for (int64_t i = 0; i < views; ++i) {
    choices.emplace_back(static_cast<int>(s.random.below(shape.rank())),
                         static_cast<int>(s.random.below(shape.rank())));
  }
  const bool away = s.options.other.has_value() && s.one_in(2);
  s.what = fmt::format("a tensor {}{} of {} views{}", name(dtype), shape.str(), views,
                       away ? ", to the other device and back" : "");
  const auto work = [&](Device device) {
    Tensor t = Tensor::from(values, shape).to(device).to(dtype);
    for (const auto& [a, b] : choices) {
      t = a == b ? t.slice(a, t.size(a) / 3, t.size(a), 2) : t.transpose(a, b);
    }
    if (away) t = t.to(*s.options.other).to(device);
    return t.clone().to(Device::cpu()).to(DType::f64).to_vector<double>();
  };
  if (work(s.options.device) != work(Device::cpu())) s.fail("differs");
}

// ---- Recordings ----

void record(Soak& s) {
  if (s.chains.size() > 7) s.chains.erase(s.chains.begin());
  s.chains.push_back(std::make_unique<Chain>(s));
  s.chains.back()->replay(s);
}

void replay(Soak& s) {
  if (s.chains.empty()) return;
  const auto at = s.random.below(static_cast<int64_t>(s.chains.size()));
  s.chains[static_cast<size_t>(at)]->replay(s);
}

void drop(Soak& s) {
  s.what = "a recording that goes";
  if (s.chains.empty()) return;
  const auto at = s.chains.begin() + s.random.below(static_cast<int64_t>(s.chains.size()));
  if (s.one_in(2)) (*at)->start();  // destroyed while it runs
  s.chains.erase(at);
}

// ---- Errors ----

void bad_ids(Soak& s) {
  const DType dtype = s.dtype(dtypes::kReal);
  const DType id_type = s.pick({DType::u32, DType::i32, DType::i64});
  const int64_t rows = s.size(40), count = s.size(200), bad = s.random.below(count);
  TestTensor in(dtype, s.place(), {rows, s.size(30)}, 1),
      ids(id_type, Place::contiguous, {count}, 2);
  TestTensor out(dtype, s.place(), {count, in.shape()[1]}, 0, true);
  in.fill(Values::normal, s.random);
  const int64_t id = s.one_in(3) && id_type != DType::u32 ? -1 - s.random.below(1000)
                                                          : rows + s.random.below(1000);
  ids.fill_with([&](int64_t i) { return i == bad ? id : s.random.below(rows); });
  s.what = fmt::format("index_select with an id of {} in {} rows", id, rows);
  s.expect_error("index_select", [&] {
    s.run(out, {&in, &ids},
          [](Backend& b, const View& o, auto from) { b.index_select(o, from[0], from[1], 0); });
  });
}

void zero_divisor(Soak& s) {
  const DType dtype = s.dtype(dtypes::kIntegers);
  const Shape shape = s.shape(1, 4, false);
  TestTensor a(dtype, s.place(), shape, 1), b(dtype, Place::contiguous, shape, 2);
  TestTensor out(dtype, s.place(), shape, 0, true);
  a.fill(Values::normal, s.random);
  const int64_t zero = s.random.below(shape.elems());
  b.fill_with([&](int64_t i) { return i == zero ? 0 : 3; });
  s.what = fmt::format("division by zero of {}{}", name(dtype), shape.str());
  s.expect_error("div", [&] {
    s.run(out, {&a, &b}, [](Backend& backend, const View& o, auto from) {
      backend.binary(Op::div, o, from[0], from[1]);
    });
  });
}

void bad_logits(Soak& s) {
  const int64_t vocabulary = 1 + s.size(s.options.elems), bad = s.random.below(vocabulary);
  TestTensor logits(DType::f32, Place::contiguous, {1, vocabulary}, 1);
  const bool full = s.one_in(2);
  logits.fill_with([&](int64_t i) { return i == bad && !full ? NAN : 1.0f; });
  // The state: token, position, chosen, counts, history, options.
  TestTensor state(DType::u32, Place::contiguous, {1, 10 + kSamplerWords}, 2);
  const auto options = sampler_words({});
  state.fill_bits([&](int64_t i) -> uint64_t {
    return i >= 10 ? options[static_cast<size_t>(i - 10)] : i == 3 && full ? 4 : 0;
  });
  s.what = full ? "sample with a full history" : "sample of a NaN";
  s.expect_error("sample", [&] {
    const OnDevice logits_there(s.gpu, logits.storage()), there(s.gpu, state.storage());
    const auto part = [&](int64_t start, int64_t length) {
      View v = there.view(state.view());
      v.layout = v.layout.narrow(1, start, length);
      return v;
    };
    s.gpu.sample({.tokens = part(0, 1),
                  .positions = part(1, 1),
                  .history = part(6, 4),
                  .counts = part(3, 3),
                  .chosen = part(2, 1),
                  .options = part(10, kSamplerWords)},
                 logits_there.view(std::as_const(logits).view()));
    s.gpu.synchronize();
  });
}

}  // namespace

std::span<const Case> memory_cases() {
  static constexpr Case kCases[] = {
      {"hold", hold, 4},
      {"trim", trim, 1},
      {"too_much", too_much, 1},
      {"tensors", tensors, 3},
      {"limit", limit, 1},
      {"readback", readback, 2},
      {"record", record, 1},
      {"replay", replay, 3},
      {"drop", drop, 1},
      {"bad_ids", bad_ids, 1},
      {"zero_divisor", zero_divisor, 1},
      {"bad_logits", bad_logits, 1},
  };
  return kCases;
}

}  // namespace wick::soak
