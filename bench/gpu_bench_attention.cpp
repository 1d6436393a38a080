// Measures attention and sampling on a GPU and compares the results with the CPU's. Prints one JSON
// object per line.
//
//   gpu_bench_attention DEVICE [steps|sequences|prompts|dense|queries|sample|DEPTH|--small]
//
// Runs decoding steps at several depths, of one sequence and of several, prompts with a cache,
// attention of dense 16-bit operands, of many queries and of one, and sampling, each as a graph of
// many calls. There are more caches than fit into the device's L2 cache. WICK_REPRODUCIBLE=1 makes
// prompts use the specified order, too, and WICK_GPU_ATTENTION=plain|mma|wgmma selects the kernels
// of prompts. --small: shapes that an emulator can handle, without timing. For comparison, the
// steps include the time of a kernel that does almost nothing. DEPTH: only one step at this depth.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu_time.h"
#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/quantize_activations.h"
#include "wick/base/error.h"
#include "wick/math/half.h"

namespace {

using namespace wick;

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed) {}
  float next() {  // approximately normal with deviation 1
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      state_ = state_ * 1664525u + 1013904223u;
      sum += static_cast<float>(state_ >> 8) * 0x1p-24f - 0.5f;
    }
    return 1.7f * sum;
  }

 private:
  uint32_t state_;
};

std::vector<float> floats(int64_t count, uint32_t seed) {
  Numbers random(seed);
  std::vector<float> v(static_cast<size_t>(count));
  for (float& x : v) x = random.next();
  return v;
}
std::vector<uint16_t> halves(int64_t count, uint32_t seed) {
  Numbers random(seed);
  std::vector<uint16_t> v(static_cast<size_t>(count));
  for (uint16_t& x : v) x = math::from_f32<math::f16>(random.next()).bits;
  return v;
}

/// Values in a device's memory; on the CPU a copy of them.
template <class T>
class There {
 public:
  There(Backend& backend, const std::vector<T>& values)
      : backend_(backend), count_(values.size()), data_(backend.alloc(bytes())) {
    backend_.upload(data_, values.data(), bytes());
  }
  ~There() { backend_.free(data_, bytes()); }
  There(const There&) = delete;
  View view(DType dtype, const Shape& shape) const {
    return {data_, dtype, Layout::contiguous(shape)};
  }
  std::vector<T> get() const {
    std::vector<T> v(count_);
    backend_.download(v.data(), data_, bytes());
    return v;
  }

 private:
  size_t bytes() const { return count_ * sizeof(T); }
  Backend& backend_;
  size_t count_;
  void* data_;
};

template <class T>
int64_t different(const std::vector<T>& a, const std::vector<T>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  return count;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  }
  return most;
}

class Bench {
 public:
  Bench(Device device, bool small)
      : gpu_(gpu::backend_of(device)), cpu_(backend({DeviceKind::cpu, 0})), small_(small) {
    fmt::print("{{\"device\": \"{}\", \"name\": \"{}\"}}\n", device.str(), gpu_.gpu().info.name);
  }

  /// Measures a step of t tokens after `depth` others.
  void step(int64_t t, int64_t depth, int64_t h, int64_t g, int64_t size, int64_t capacity) {
    const int64_t keys = g * size * (capacity + 32), values = g * capacity * size;
    const auto make = [&](Backend& b) {
      return Step{{b, floats(t * (h + 2 * g) * size, 1)},
                  {b, floats(capacity * size / 2, 2)},
                  {b, floats(capacity * size / 2, 3)},
                  {b, positions(t, depth)},
                  {b, std::vector<float>(static_cast<size_t>(t * h * size))}};
    };
    const Step on_gpu = make(gpu_), on_cpu = make(cpu_);
    const auto run = [&](Backend& b, const Step& s, const There<uint16_t>& k,
                         const There<uint16_t>& v) {
      CachedAttention where{.cos = s.cos.view(DType::f32, {capacity, size / 2}),
                            .sin = s.sin.view(DType::f32, {capacity, size / 2}),
                            .positions = s.positions.view(DType::u32, {t}),
                            .keys = k.view(DType::f16, {1, g, size, capacity + 32}),
                            .values = v.view(DType::f16, {1, g, capacity, size}),
                            .params = {.scale = 1 / std::sqrt(static_cast<float>(size))}};
      where.keys.layout = where.keys.layout.narrow(3, 0, capacity).transpose(2, 3);
      b.cached_attention(s.out.view(DType::f32, {t, h * size}),
                         s.qkv.view(DType::f32, {t, (h + 2 * g) * size}), where);
    };
    const auto first_keys = halves(keys, 4), first_values = halves(values, 5);
    const int64_t bytes = 2 * (keys + values);
    const int64_t copies = small_ ? 1 : std::max<int64_t>(4, (int64_t{400} << 20) / bytes);
    std::vector<std::unique_ptr<There<uint16_t>>> k, v;
    for (int64_t i = 0; i < copies; ++i) {
      k.push_back(std::make_unique<There<uint16_t>>(gpu_, first_keys));
      v.push_back(std::make_unique<There<uint16_t>>(gpu_, first_values));
    }
    const double time = seconds(copies, [&](int64_t i) {
      run(gpu_, on_gpu, *k[static_cast<size_t>(i)], *v[static_cast<size_t>(i)]);
    });
    const There<uint16_t> cpu_keys(cpu_, first_keys), cpu_values(cpu_, first_values);
    run(cpu_, on_cpu, cpu_keys, cpu_values);
    const auto got = on_gpu.out.get(), want = on_cpu.out.get();
    report(fmt::format("\"op\": \"cached_attention\", \"t\": {}, \"depth\": {}, \"heads\": {}, "
                       "\"key_heads\": {}, \"size\": {}, \"capacity\": {}",
                       t, depth, h, g, size, capacity),
           time,
           fmt::format(
               "\"differ\": {}, \"differ_in_cache\": {}, \"largest_difference\": {:.2g}",
               different(got, want),
               different(k[0]->get(), cpu_keys.get()) + different(v[0]->get(), cpu_values.get()),
               largest_difference(got, want)),
           4.0 * static_cast<double>(g * (depth + t) * size));
  }

  /// Measures a step of one token of each of several sequences, after about `depth` others. Keys
  /// and values are in shuffled pages.
  void sequences(int64_t count, int64_t depth, int64_t h, int64_t g, int64_t size) {
    constexpr int64_t kPage = 256;
    const int64_t entries = depth / kPage + 1, pages = count * entries,
                  elems = pages * g * kPage * size;
    std::vector<uint32_t> where_at, table;
    int64_t keys_seen = 0;
    for (int64_t i = 0; i < count; ++i) {
      where_at.push_back(static_cast<uint32_t>(depth - i % 7));
      keys_seen += depth - i % 7 + 1;
    }
    for (int64_t i = 0; i < pages; ++i) table.push_back(static_cast<uint32_t>(pages - 1 - i));
    const auto make = [&](Backend& b) {
      return Step{{b, floats(count * (h + 2 * g) * size, 1)},
                  {b, floats(entries * kPage * size / 2, 2)},
                  {b, floats(entries * kPage * size / 2, 3)},
                  {b, where_at},
                  {b, std::vector<float>(static_cast<size_t>(count * h * size))}};
    };
    const Step on_gpu = make(gpu_), on_cpu = make(cpu_);
    const There<uint32_t> gpu_table(gpu_, table), cpu_table(cpu_, table);
    const auto run = [&](Backend& b, const Step& s, const There<uint32_t>& tables,
                         const There<uint16_t>& k, const There<uint16_t>& v) {
      CachedAttention where{.cos = s.cos.view(DType::f32, {entries * kPage, size / 2}),
                            .sin = s.sin.view(DType::f32, {entries * kPage, size / 2}),
                            .positions = s.positions.view(DType::u32, {count}),
                            .keys = k.view(DType::f16, {pages, g, size, kPage}),
                            .values = v.view(DType::f16, {pages, g, kPage, size}),
                            .tables = tables.view(DType::u32, {count, entries}),
                            .params = {.scale = 1 / std::sqrt(static_cast<float>(size))}};
      where.keys.layout = where.keys.layout.transpose(2, 3);
      b.cached_attention(s.out.view(DType::f32, {count, h * size}),
                         s.qkv.view(DType::f32, {count, (h + 2 * g) * size}), where);
    };
    const auto first_keys = halves(elems, 4), first_values = halves(elems, 5);
    const int64_t copies = small_ ? 1 : std::max<int64_t>(4, (int64_t{400} << 20) / (4 * elems));
    std::vector<std::unique_ptr<There<uint16_t>>> k, v;
    for (int64_t i = 0; i < copies; ++i) {
      k.push_back(std::make_unique<There<uint16_t>>(gpu_, first_keys));
      v.push_back(std::make_unique<There<uint16_t>>(gpu_, first_values));
    }
    const double time = seconds(copies, [&](int64_t i) {
      run(gpu_, on_gpu, gpu_table, *k[static_cast<size_t>(i)], *v[static_cast<size_t>(i)]);
    });
    const There<uint16_t> cpu_keys(cpu_, first_keys), cpu_values(cpu_, first_values);
    run(cpu_, on_cpu, cpu_table, cpu_keys, cpu_values);
    report(fmt::format(
               "\"op\": \"cached_attention\", \"sequences\": {}, \"depth\": {}, \"heads\": {}, "
               "\"key_heads\": {}, \"size\": {}",
               count, depth, h, g, size),
           time,
           fmt::format(
               "\"differ\": {}, \"differ_in_cache\": {}",
               different(on_gpu.out.get(), on_cpu.out.get()),
               different(k[0]->get(), cpu_keys.get()) + different(v[0]->get(), cpu_values.get())),
           4.0 * static_cast<double>(g * keys_seen * size));
  }

  /// Measures attention of `tokens` queries to as many keys, [1, heads, tokens, size] of a 16-bit
  /// dtype. masked: with a mask [tokens, tokens] of this dtype, which broadcasts. The last queries
  /// are compared with the CPU's, within rounding.
  void dense(DType dtype, int64_t tokens, int64_t h, int64_t g, int64_t size, bool causal,
             bool masked = false) {
    constexpr int64_t kChecked = 16;
    const auto make = [&](int64_t elems, uint32_t seed) {
      auto v = halves(elems, seed);
      for (uint16_t& x : v) {
        const float f = math::to_f32(math::f16{x});
        if (dtype == DType::bf16) x = math::from_f32<math::bf16>(f).bits;
      }
      return v;
    };
    const auto q = make(h * tokens * size, 1), k = make(g * tokens * size, 2),
               v = make(g * tokens * size, 3), added = make(masked ? tokens * tokens : 1, 4);
    const auto run = [&](Backend& b, const There<uint16_t>& out, const There<uint16_t>& queries,
                         const There<uint16_t>& keys, const There<uint16_t>& values,
                         const There<uint16_t>& mask, int64_t count) {
      AttentionBias bias;
      if (masked) {
        bias.mask = mask.view(dtype, {1, 1, tokens, tokens});
        bias.mask.layout =
            bias.mask.layout.narrow(2, tokens - count, count).broadcast_to({1, h, count, tokens});
      }
      View y = out.view(dtype, {1, h, tokens, size});
      ConstView x = queries.view(dtype, {1, h, tokens, size});
      y.layout = y.layout.narrow(2, tokens - count, count);
      x.layout = x.layout.narrow(2, tokens - count, count);
      b.attention(y, x, keys.view(dtype, {1, g, tokens, size}),
                  values.view(dtype, {1, g, tokens, size}),
                  {.scale = 1 / std::sqrt(static_cast<float>(size)), .causal = causal}, bias);
    };
    const std::vector<uint16_t> nothing(q.size());
    const There<uint16_t> out(gpu_, nothing), queries(gpu_, q), keys(gpu_, k), values(gpu_, v),
        mask(gpu_, added);
    const double time =
        seconds(4, [&](int64_t) { run(gpu_, out, queries, keys, values, mask, tokens); });
    const There<uint16_t> cpu_out(cpu_, nothing), cpu_q(cpu_, q), cpu_k(cpu_, k), cpu_v(cpu_, v),
        cpu_mask(cpu_, added);
    run(cpu_, cpu_out, cpu_q, cpu_k, cpu_v, cpu_mask, kChecked);
    const auto as_floats = [&](const std::vector<uint16_t>& bits) {
      std::vector<float> all;
      for (int64_t head = 0; head < h; ++head) {
        for (int64_t i = (tokens - kChecked) * size; i < tokens * size; ++i) {
          const uint16_t x = bits[static_cast<size_t>(head * tokens * size + i)];
          all.push_back(dtype == DType::bf16 ? math::to_f32(math::bf16{x})
                                             : math::to_f32(math::f16{x}));
        }
      }
      return all;
    };
    const double pairs =
        static_cast<double>(tokens) * static_cast<double>(tokens) * (causal ? 0.5 : 1.0);
    const double flops = 4.0 * pairs * static_cast<double>(h * size);
    report(fmt::format("\"op\": \"attention\", \"dtype\": \"{}\", \"tokens\": {}, \"heads\": {}, "
                       "\"key_heads\": {}, \"size\": {}, \"causal\": {}, \"mask\": {}",
                       name(dtype), tokens, h, g, size, causal, masked),
           time,
           fmt::format("\"largest_difference\": {:.2g}, \"tflop_s\": {:.1f}",
                       largest_difference(as_floats(out.get()), as_floats(cpu_out.get())),
                       small_ ? 0.0 : flops / time / 1e12),
           2.0 * static_cast<double>(2 * (h + g) * tokens * size + (masked ? tokens * tokens : 0)));
  }

  /// A query of each of `batch` sequences over keys and values [batch, g, keys, size]. The first
  /// and the last sequence are compared with the CPU's.
  void one_query(DType dtype, int64_t batch, int64_t h, int64_t g, int64_t keys, int64_t size) {
    const auto make = [&](int64_t elems, uint32_t seed) {
      // Other sequences repeat the numbers of some.
      auto v = halves(std::min<int64_t>(elems, 1 << 22), seed);
      for (uint16_t& x : v) {
        if (dtype == DType::bf16) x = math::from_f32<math::bf16>(math::to_f32(math::f16{x})).bits;
      }
      for (int64_t i = static_cast<int64_t>(v.size()); i < elems; ++i) {
        v.push_back(v[static_cast<size_t>(i) % (size_t{1} << 22)]);
      }
      return v;
    };
    const There<uint16_t> q(gpu_, make(batch * h * size, 1)),
        k(gpu_, make(batch * g * keys * size, 2)), v(gpu_, make(batch * g * keys * size, 3)),
        out(gpu_, std::vector<uint16_t>(static_cast<size_t>(batch * h * size)));
    const auto run = [&](Backend& b, const There<uint16_t>& to, const There<uint16_t>& of_q,
                         const There<uint16_t>& of_k, const There<uint16_t>& of_v, int64_t count) {
      b.attention(to.view(dtype, {count, h, 1, size}), of_q.view(dtype, {count, h, 1, size}),
                  of_k.view(dtype, {count, g, keys, size}),
                  of_v.view(dtype, {count, g, keys, size}),
                  {.scale = 1 / std::sqrt(static_cast<float>(size))}, {});
    };
    const double time = seconds(20, [&](int64_t) { run(gpu_, out, q, k, v, batch); });
    const std::vector<uint16_t> got = out.get();
    int64_t differ = 0;
    for (const int64_t sequence : {int64_t{0}, batch - 1}) {
      const auto part = [&](const There<uint16_t>& of, int64_t elems) {
        const std::vector<uint16_t> all = of.get();
        const auto from = all.begin() + sequence * elems;
        return There<uint16_t>(cpu_, std::vector<uint16_t>(from, from + elems));
      };
      const There<uint16_t> y(cpu_, std::vector<uint16_t>(static_cast<size_t>(h * size)));
      run(cpu_, y, part(q, h * size), part(k, g * keys * size), part(v, g * keys * size), 1);
      const std::vector<uint16_t> want = y.get();
      for (int64_t i = 0; i < h * size; ++i) {
        const auto at = static_cast<size_t>(i);
        differ += got[static_cast<size_t>(sequence * h * size) + at] != want[at] ? 1 : 0;
      }
    }
    report(fmt::format("\"op\": \"one_query\", \"dtype\": \"{}\", \"sequences\": {}, \"keys\": {}, "
                       "\"heads\": {}, \"key_heads\": {}, \"size\": {}",
                       name(dtype), batch, keys, h, g, size),
           time, fmt::format("\"differ\": {}", differ),
           4.0 * static_cast<double>(batch * g * keys * size));
  }

  /// Quantizes a row of activations to int8, which takes the minimum time of a kernel in a
  /// sequence.
  void quantize(int64_t k) {
    const There<float> x(gpu_, floats(k, 7));
    const There<int8_t> q(gpu_, std::vector<int8_t>(static_cast<size_t>(k)));
    const There<math::ActivationScale> scales(
        gpu_, std::vector<math::ActivationScale>(static_cast<size_t>(k / 32)));
    const View row = x.view(DType::f32, {1, k});
    const gpu::RowBlocks to{static_cast<int8_t*>(q.view(DType::u8, {k}).data),
                            static_cast<math::ActivationScale*>(scales.view(DType::i64, {k}).data),
                            k / 32};
    const double time =
        seconds(200, [&](int64_t) { gpu::quantize_rows(gpu_.gpu(), {}, row, k, to); });
    report(fmt::format("\"op\": \"quantize_rows\", \"k\": {}", k), time, "\"differ\": 0",
           5.25 * static_cast<double>(k));
  }

  /// Samples tokens from one vocabulary, one after another.
  void sample(int64_t vocabulary, const char* name, const SamplerOptions& options) {
    auto logits = floats(vocabulary, 9);
    for (float& x : logits) x *= 4;
    const auto run = [&](Backend& b, const There<float>& l, const There<uint32_t>& state) {
      const View all = state.view(DType::u32, {1, kHistory + kRoom});
      const auto part = [&](int64_t from, int64_t count) {
        return View{all.data, all.dtype, all.layout.narrow(1, from, count)};
      };
      b.sample({.tokens = part(0, 1),
                .positions = part(1, 1),
                .history = part(kHistory, kRoom),
                .counts = part(3, 3),
                .chosen = part(2, 1),
                .options = part(6, kSamplerWords)},
               l.view(DType::f32, {1, vocabulary}));
    };
    std::vector<uint32_t> start(kHistory + kRoom);
    const auto words = sampler_words(options);
    std::copy(words.begin(), words.end(), start.begin() + 6);
    const There<float> l(gpu_, logits), cpu_logits(cpu_, logits);
    const There<uint32_t> state(gpu_, start), checked(gpu_, start), cpu_state(cpu_, start);
    for (int i = 0; i < 8; ++i) {
      run(gpu_, l, checked);
      run(cpu_, cpu_logits, cpu_state);
    }
    const double time = seconds(50, [&](int64_t) { run(gpu_, l, state); });
    report(fmt::format("\"op\": \"sample\", \"vocabulary\": {}, \"options\": \"{}\"", vocabulary,
                       name),
           time, fmt::format("\"differ\": {}", different(checked.get(), cpu_state.get())),
           4.0 * static_cast<double>(vocabulary));
  }

 private:
  static constexpr int64_t kRoom = 1000;
  static constexpr int64_t kHistory = 6 + kSamplerWords;  // words of a sampler before it
  struct Step {
    There<float> qkv, cos, sin;
    There<uint32_t> positions;
    There<float> out;
  };
  static std::vector<uint32_t> positions(int64_t t, int64_t from) {
    std::vector<uint32_t> v;
    for (int64_t i = 0; i < t; ++i) v.push_back(static_cast<uint32_t>(from + i));
    return v;
  }

  /// Returns the time of one of `times` consecutive calls in a graph; the minimum of nine.
  template <class F>
  double seconds(int64_t times, const F& call) {
    call(0);  // loads the kernel
    gpu_.synchronize();
    if (small_) return NAN;
    const auto recording = gpu_.record([&] {
      for (int64_t i = 0; i < times; ++i) call(i);
    });
    return time_.best(9, [&] { recording->replay(); }) / static_cast<double>(times);
  }

  void report(const std::string& what, double time, const std::string& check, double bytes) {
    fmt::print("{{{}, {}", what, check);
    if (!small_) fmt::print(", \"us\": {:.2f}, \"gb_s\": {:.0f}", time * 1e6, bytes / time / 1e9);
    fmt::print("}}\n");
    std::fflush(stdout);
  }

  gpu::GpuBackend& gpu_;
  Backend& cpu_;
  const bool small_;
  bench::GpuTime time_{gpu_.gpu()};
};

void one_step(Bench& bench, int64_t depth) {
  bench.step(1, depth, 32, 8, 128, (depth + 512) / 512 * 512);
}

void steps(Bench& bench) {
  bench.quantize(4096);
  for (int64_t depth : {128, 250, 512, 1024, 4096, 32768}) one_step(bench, depth);
  bench.step(1, 128, 32, 8, 128, 4096);
  bench.step(1, 128, 32, 8, 128, 131072);
  for (int64_t depth : {128, 1024}) {
    bench.step(1, depth, 32, 8, 64, 2048);
    bench.step(1, depth, 9, 3, 64, 2048);
  }
  bench.step(4, 1024, 32, 8, 128, 2048);
}

void sequences(Bench& bench) {
  for (const int64_t count : {1, 2, 4, 8, 16, 32}) bench.sequences(count, 512, 32, 8, 128);
  for (const int64_t count : {1, 8}) bench.sequences(count, 4096, 32, 8, 128);
  for (const int64_t size : {64, 128}) bench.sequences(1, 128, 32, 8, size);
  for (const int64_t count : {1, 8, 32}) bench.sequences(count, 512, 32, 8, 64);
}

void prompts(Bench& bench) {
  bench.step(512, 0, 32, 8, 128, 512);
  bench.step(2048, 0, 32, 8, 128, 2048);
  bench.step(512, 1536, 32, 8, 128, 2048);
  bench.step(16, 4000, 32, 8, 128, 4096);
  bench.step(512, 0, 32, 8, 64, 512);
}

void dense(Bench& bench) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const bool causal : {true, false}) {
      for (const int64_t size : {64, 128, 256}) bench.dense(dtype, 4096, 32, 32, size, causal);
      bench.dense(dtype, 4096, 32, 8, 128, causal);
    }
  }
  for (const int64_t tokens : {1024, 4096}) {
    bench.dense(DType::bf16, tokens, 16, 16, 64, false, true);
    bench.dense(DType::bf16, tokens, 16, 16, 64, false);
  }
  for (const int64_t tokens : {512, 2048, 16384})
    bench.dense(DType::bf16, tokens, 32, 8, 128, true);
}

void queries(Bench& bench) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    bench.one_query(dtype, 1, 32, 32, 4096, 128);
    bench.one_query(dtype, 32, 32, 32, 4096, 128);
    bench.one_query(dtype, 32, 32, 8, 4096, 128);
    bench.one_query(dtype, 1, 32, 8, 32768, 128);
    bench.one_query(dtype, 8, 64, 8, 8192, 64);
    bench.one_query(dtype, 128, 32, 8, 512, 128);
  }
}

void samples(Bench& bench) {
  for (int64_t vocabulary : {49152, 128256, 256000}) {
    bench.sample(vocabulary, "greedy", {.temperature = 0});
    bench.sample(vocabulary, "top_k 40", {});
    bench.sample(vocabulary, "top_k 40, penalties", {.repetition_penalty = 1.1f});
  }
  bench.sample(128256, "all tokens", {.top_k = 0});
}

void run(Device device, std::string_view what) {
  const bool small = what == "--small";
  Bench bench(device, small);
  if (small) {
    bench.step(1, 30, 8, 2, 64, 512);
    bench.step(1, 300, 8, 2, 64, 512);
    bench.step(20, 30, 8, 2, 64, 512);
    bench.sequences(5, 300, 8, 2, 64);
    bench.dense(DType::bf16, 140, 4, 2, 64, true);
    bench.dense(DType::bf16, 140, 4, 2, 64, true, true);
    bench.one_query(DType::bf16, 2, 4, 2, 600, 64);
    bench.sample(5000, "top_k 40", {});
    bench.sample(5000, "greedy", {.temperature = 0});
    return;
  }
  if (const int depth = std::atoi(std::string(what).c_str()); depth > 0) one_step(bench, depth);
  if (what.empty() || what == "steps") steps(bench);
  if (what.empty() || what == "sequences") sequences(bench);
  if (what.empty() || what == "prompts") prompts(bench);
  if (what.empty() || what == "dense") dense(bench);
  if (what.empty() || what == "queries") queries(bench);
  if (what.empty() || what == "sample") samples(bench);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "gpu_bench_attention DEVICE "
               "[steps|sequences|prompts|dense|queries|sample|DEPTH|--small]\n");
    return 2;
  }
  try {
    run(Device::parse(argv[1]), argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
