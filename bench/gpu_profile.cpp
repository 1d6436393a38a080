// Runs one op of a GPU backend for the profile of the software GPU: see gpu_profile.py.
//
//   gpu_profile DEVICE CASE TIMES [SCALE]
//   gpu_profile --list
//
// Runs the case's op TIMES times and prints as JSON the bytes that it must move: each byte of its
// operands once. In cases with a loop over k or over keys, the loop is SCALE times as long. All
// operands are ones.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/error.h"

namespace {

using namespace wick;

class Run {
 public:
  Run(Device device, int times, int64_t scale_of_loops)
      : backend(wick::backend(device)), scale(scale_of_loops), times_(times) {}
  ~Run() {
    for (const auto& [data, bytes] : memory_) backend.free(data, bytes);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Backend& backend;
  const int64_t scale;

  /// Returns a dense tensor that the op reads or writes once.
  View tensor(DType dtype, const Shape& shape) {
    const View view = operand(dtype, shape);
    bytes_ += bytes_of(dtype, shape.elems());
    return view;
  }
  /// Returns a tensor of which the op accesses a part.
  View operand(DType dtype, const Shape& shape) {
    const auto bytes = static_cast<size_t>(bytes_of(dtype, shape.elems()));
    void* const data = backend.alloc(bytes);
    memory_.emplace_back(data, bytes);
    const View view{data, dtype, Layout::contiguous(shape)};
    if (is_block(dtype)) {
      backend.upload(data, std::vector<char>(bytes, 0x11).data(), bytes);
    } else {
      backend.fill(view, 1);
    }
    return view;
  }
  void adds(int64_t bytes) { bytes_ += bytes; }

  template <class F>
  void measure(const F& op) {
    for (int i = 0; i < times_; ++i) op();
    backend.synchronize();
    fmt::print("{{\"bytes\": {}}}\n", bytes_);
  }

 private:
  const int times_;
  int64_t bytes_ = 0;
  std::vector<std::pair<void*, size_t>> memory_;
};

constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;

template <DType dtype>
void add(Run& r) {
  const Shape shape{1024, 1024};
  const View out = r.tensor(dtype, shape), a = r.tensor(dtype, shape), b = r.tensor(dtype, shape);
  r.measure([&] { r.backend.binary(Op::add, out, a, b); });
}

template <DType dtype>
void silu(Run& r) {
  const View out = r.tensor(dtype, {1024, 1024}), in = r.tensor(dtype, {1024, 1024});
  r.measure([&] { r.backend.unary(Op::silu, out, in); });
}

/// Copies rows with gaps, which start at a cache line or anywhere. Rows without gaps would be a
/// single copy by the driver.
template <DType dtype, int64_t kFirst = 0>
void copy(Run& r) {
  const View out = r.tensor(dtype, {1024, 1024});
  View in = r.operand(dtype, {1024, 2048});
  in.layout = in.layout.narrow(1, kFirst, 1024);
  r.adds(bytes_of(dtype, 1024 * 1024));
  r.measure([&] { r.backend.copy(out, in); });
}

/// Moves the channels of images from the last dim to the first.
template <DType dtype>
void planes(Run& r) {
  const View out = r.tensor(dtype, {8, 131072});
  View in = r.tensor(dtype, {131072, 8});
  in.layout = in.layout.transpose(0, 1);
  r.measure([&] { r.backend.copy(out, in); });
}

template <DType dtype>
void iota(Run& r) {
  const View out = r.tensor(dtype, {1024, 1024});
  r.measure([&] { r.backend.iota(out, 0.0, 1.0); });
}

template <DType to, DType from>
void cast(Run& r) {
  const View out = r.tensor(to, {1024, 1024}), in = r.tensor(from, {1024, 1024});
  r.measure([&] { r.backend.cast(out, in); });
}

template <DType dtype>
void transpose(Run& r) {
  const View out = r.tensor(dtype, {1024, 1024});
  View in = r.tensor(dtype, {1024, 1024});
  in.layout = in.layout.transpose(0, 1);
  r.measure([&] { r.backend.copy(out, in); });
}

template <DType dtype>
void sum(Run& r) {
  const View out = r.tensor(dtype, {512, 1}), in = r.tensor(dtype, {512, 4096});
  r.measure([&] { r.backend.reduce(Op::sum, out, in, 2); });
}

void sum_columns(Run& r) {
  const View out = r.tensor(f32, {1, 4096}), in = r.tensor(f32, {512, 4096});
  r.measure([&] { r.backend.reduce(Op::sum, out, in, 1); });
}

/// softmax over few elements.
template <DType dtype>
void softmax_short(Run& r) {
  const View out = r.tensor(dtype, {21, 65536}), in = r.tensor(dtype, {21, 65536});
  r.measure([&] { r.backend.softmax(out, in, 0, false); });
}

template <DType dtype>
void softmax(Run& r) {
  const View out = r.tensor(dtype, {512, 4096}), in = r.tensor(dtype, {512, 4096});
  r.measure([&] { r.backend.softmax(out, in, 1, false); });
}

template <DType dtype>
void rms_norm(Run& r) {
  const View out = r.tensor(dtype, {2048, 4096}), in = r.tensor(dtype, {2048, 4096}),
             weight = r.tensor(f32, {4096});
  r.measure([&] { r.backend.rms_norm(out, in, weight, 1e-5f); });
}

/// linear with f32 activations. The packed weight may be larger than the file's bytes.
void linear(Run& r, DType type, int64_t rows, int64_t n, int64_t k) {
  const View out = r.tensor(f32, {rows, n}), x = r.tensor(f32, {rows, k});
  const ConstView weight = r.operand(type, {n, k});
  const auto prepared = r.backend.prepare(std::span(&weight, 1), false);
  r.adds(static_cast<int64_t>(prepared->bytes));
  r.measure([&] { r.backend.linear(out, x, *prepared, {}); });
}
template <DType type>
void gemv(Run& r) {
  linear(r, type, 1, 4096, 4096);
}
/// More columns than the dot-product kernel handles, and as many as it handles.
template <DType type>
void few(Run& r) {
  linear(r, type, 8, 1024, 2048 * r.scale);
}
template <DType type>
void columns(Run& r) {
  linear(r, type, 4, 1024, 2048 * r.scale);
}
template <DType type>
void many(Run& r) {
  linear(r, type, 128, 256, 1024 * r.scale);
}

/// Quantizes activations for GEMMs.
void quantize(Run& r) {
  const View out = r.operand(f32, {256, 1}), x = r.tensor(f32, {256, 4096});
  r.adds(256 * 4096 / 32 * 40);  // writes int8, and two f32 for every 32 of them
  const ConstView weight = r.operand(DType::q8_0, {1, 4096});
  const auto prepared = r.backend.prepare(std::span(&weight, 1), false);
  r.measure([&] { r.backend.linear(out, x, *prepared, {}); });
}

/// Multiplies a [m, k] by b [k, n]. `turned`: both are stored transposed.
void multiply(Run& r, DType dtype, int64_t m, int64_t n, int64_t k, bool turned = false) {
  const View out = r.tensor(dtype, {m, n});
  View a = r.tensor(dtype, turned ? Shape{k, m} : Shape{m, k});
  View b = r.tensor(dtype, turned ? Shape{n, k} : Shape{k, n});
  if (turned) a.layout = a.layout.transpose(0, 1), b.layout = b.layout.transpose(0, 1);
  r.measure([&] { r.backend.matmul(out, a, b); });
}
template <DType dtype>
void matmul(Run& r) {
  multiply(r, dtype, 256, 256, 512 * r.scale);
}
template <DType dtype>
void matmul_turned(Run& r) {
  multiply(r, dtype, 256, 256, 512 * r.scale, true);
}
/// Large enough for large tiles.
template <DType dtype>
void matmul_large(Run& r) {
  multiply(r, dtype, 1536, 1536, 64 * r.scale);
}
template <DType dtype>
void matmul_thin(Run& r) {
  multiply(r, dtype, 16, 256, 512 * r.scale);
}

/// A decoding step of one token with an f16 cache in the layout of models: keys [g, d, capacity].
void decode(Run& r) {
  const int64_t h = 32, g = 8, d = 128, n = 1024 * r.scale, capacity = n + 64;
  const View out = r.tensor(f32, {1, h * d}), qkv = r.tensor(f32, {1, (h + 2 * g) * d});
  const View cos = r.operand(f32, {n, d / 2}), sin = r.operand(f32, {n, d / 2}),
             at = r.operand(DType::u32, {1});
  View keys = r.operand(f16, {1, g, d, capacity});
  const View values = r.operand(f16, {1, g, n, d});
  keys.layout = keys.layout.narrow(3, 0, n).transpose(2, 3);
  r.adds(2 * bytes_of(f16, g * d * n));
  r.backend.fill(at, static_cast<int64_t>(n - 1));
  const CachedAttention where{cos, sin, at, keys, values, {}, {.scale = 0.1f}};
  r.measure([&] { r.backend.cached_attention(out, qkv, where); });
}

template <DType dtype>
void prompt(Run& r) {
  const int64_t h = 4, g = 2, d = 64, m = 64, n = 256 * r.scale;
  const View out = r.tensor(f32, {1, h, m, d}), q = r.tensor(f32, {1, h, m, d});
  View k = r.tensor(dtype, {1, g, d, n});
  const View v = r.tensor(dtype, {1, g, n, d});
  k.layout = k.layout.transpose(2, 3);
  r.measure([&] { r.backend.attention(out, q, k, v, {.scale = 0.1f, .causal = false}, {}); });
}

/// A prompt by the matrix unit, with so many rows that thread blocks don't share them. of_queries:
/// the dtype of the queries and of the results.
template <DType dtype, int64_t d, DType of_queries = dtype>
void flash(Run& r) {
  const int64_t h = 16, g = 8, m = 512, n = 256 * r.scale;
  setenv("WICK_GPU_ATTENTION", "mma", 1);
  const View out = r.tensor(of_queries, {1, h, m, d}), q = r.tensor(of_queries, {1, h, m, d});
  View k = r.tensor(dtype, {1, g, d, n});
  const View v = r.tensor(dtype, {1, g, n, d});
  k.layout = k.layout.transpose(2, 3);
  r.measure([&] { r.backend.attention(out, q, k, v, {.scale = 0.1f, .causal = false}, {}); });
}

/// The gradients of attention. The loop is longer over rows (for the pass that gives dk and dv) or
/// over keys.
template <DType dtype, int64_t d, bool kOverRows>
void gradient(Run& r) {
  const int64_t h = 2, m = 256 * (kOverRows ? r.scale : 1), n = 256 * (kOverRows ? 1 : r.scale);
  const View dq = r.tensor(dtype, {1, h, m, d}), dk = r.tensor(dtype, {1, h, n, d}),
             dv = r.tensor(dtype, {1, h, n, d}), g = r.tensor(dtype, {1, h, m, d}),
             q = r.tensor(dtype, {1, h, m, d}), k = r.tensor(dtype, {1, h, n, d}),
             v = r.tensor(dtype, {1, h, n, d});
  r.measure([&] {
    r.backend.attention_gradient(dq, dk, dv, View(), g, q, k, v, {.scale = 0.1f, .causal = false},
                                 {});
  });
}

void compare(Run& r) {
  const View out = r.tensor(DType::u8, {1024, 1024}), a = r.tensor(f32, {1024, 1024}),
             b = r.tensor(f32, {1024, 1024});
  r.measure([&] { r.backend.compare(Op::lt, out, a, b); });
}
void where(Run& r) {
  const View out = r.tensor(f32, {1024, 1024}), condition = r.tensor(DType::u8, {1024, 1024}),
             a = r.tensor(f32, {1024, 1024}), b = r.tensor(f32, {1024, 1024});
  r.measure([&] { r.backend.where(out, condition, a, b); });
}
/// Adds a column or a row to a matrix. The operand's bytes are small beside the matrix's.
template <int kDim>
void add_broadcast(Run& r) {
  const View out = r.tensor(f32, {1024, 1024}), a = r.tensor(f32, {1024, 1024});
  View b = r.tensor(f32, kDim == 0 ? Shape{1, 1024} : Shape{1024, 1});
  b.layout = b.layout.broadcast_to({1024, 1024});
  r.measure([&] { r.backend.binary(Op::add, out, a, b); });
}

template <Op op>
void reduce_all(Run& r) {
  const View out = r.tensor(f32, {1, 1}), in = r.tensor(f32, {1024, 1024});
  r.measure([&] { r.backend.reduce(op, out, in, 3); });
}
template <int kDim>
void argmax(Run& r) {
  const View out = r.tensor(DType::u32, kDim == 0 ? Shape{1, 4096} : Shape{512, 1}),
             in = r.tensor(f32, {512, 4096});
  r.measure([&] { r.backend.arg_reduce(Op::argmax, out, in, kDim); });
}
template <int kDim>
void cumsum(Run& r) {
  const View out = r.tensor(f32, {512, 2048}), in = r.tensor(f32, {512, 2048});
  r.measure([&] { r.backend.scan(Op::cumsum, out, in, kDim); });
}

template <DType dtype>
void layer_norm(Run& r) {
  const View out = r.tensor(dtype, {2048, 4096}), in = r.tensor(dtype, {2048, 4096}),
             weight = r.tensor(f32, {4096}), bias = r.tensor(f32, {4096});
  r.measure([&] { r.backend.layer_norm(out, in, weight, bias, 1e-5f); });
}
void group_norm(Run& r) {
  const View out = r.tensor(f32, {4, 64, 56, 56}), in = r.tensor(f32, {4, 64, 56, 56}),
             weight = r.tensor(f32, {64}), bias = r.tensor(f32, {64});
  r.measure([&] { r.backend.group_norm(out, in, 8, weight, bias, 1e-5f); });
}
void batch_norm(Run& r) {
  const View out = r.tensor(f32, {4, 64, 56, 56}), in = r.tensor(f32, {4, 64, 56, 56}),
             mean = r.tensor(f32, {64}), variance = r.tensor(f32, {64}),
             weight = r.tensor(f32, {64}), bias = r.tensor(f32, {64});
  r.measure([&] { r.backend.batch_norm(out, in, mean, variance, weight, bias, 1e-5f); });
}

/// Ids along the last dim, 0, 1, ..: each element or row is read, or written, once.
View ids(Run& r, const Shape& shape) {
  const View view = r.tensor(DType::u32, shape);
  std::vector<uint32_t> values(static_cast<size_t>(shape.elems()));
  const auto n = static_cast<uint32_t>(shape[shape.rank() - 1]);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = i % n;
  r.backend.upload(view.data, values.data(), values.size() * sizeof(uint32_t));
  return view;
}
template <DType dtype>
void index_select(Run& r) {
  const View out = r.tensor(dtype, {1024, 1024}), in = r.tensor(dtype, {1024, 1024}),
             rows = ids(r, {1024});
  r.measure([&] { r.backend.index_select(out, in, rows, 0); });
}
void gather(Run& r) {
  const View out = r.tensor(f32, {1024, 1024}), in = r.tensor(f32, {1024, 1024}),
             of = ids(r, {1024, 1024});
  r.measure([&] { r.backend.gather(out, in, of, 1); });
}
void index_add(Run& r) {
  const View out = r.tensor(f32, {1024, 1024}), source = r.tensor(f32, {1024, 1024}),
             rows = ids(r, {1024});
  r.adds(bytes_of(f32, 1024 * 1024));  // out is read, too
  r.measure([&] { r.backend.index_add(out, source, rows, 0); });
}

void max_pool(Run& r) {
  const View out = r.tensor(f32, {4, 16, 56, 56}), in = r.tensor(f32, {4, 16, 112, 112});
  r.measure([&] {
    r.backend.pool2d(Op::max_pool2d, out, in, {.kernel = {2, 2}, .stride = {2, 2}});
  });
}
void nearest(Run& r) {
  const View out = r.tensor(f32, {4, 16, 112, 112}), in = r.tensor(f32, {4, 16, 56, 56});
  r.measure([&] { r.backend.resample(Op::upsample_nearest2d, out, in, {.scale = {0.5, 0.5}}); });
}

/// A convolution of 3 by 3, with more channels for a longer loop. `last`: channels are innermost.
template <DType dtype, bool kLast>
void conv(Run& r) {
  const int64_t c = 64 * r.scale;
  const auto image = [&](int64_t channels) {
    if (!kLast) return r.tensor(dtype, {4, channels, 56, 56});
    View view = r.tensor(dtype, {4, 56, 56, channels});
    view.layout = view.layout.transpose(2, 3).transpose(1, 2);
    return view;
  };
  setenv("WICK_GPU_CONV", "own", 1);
  const View out = image(128), x = image(c), w = r.tensor(dtype, {128, c, 3, 3});
  r.measure([&] { r.backend.conv2d(out, x, w, {.padding = {1, 1}}); });
}

struct Case {
  const char* name;
  void (*run)(Run& run);
  bool loop = false;        // the result is what SCALE adds
  const char* kernel = "";  // only kernels whose names start like this count
};
constexpr Case kCases[] = {
    {"add.f32", add<f32>},
    {"add.f16", add<f16>},
    {"silu.f32", silu<f32>},
    {"silu.f16", silu<f16>},
    {"copy.f32", copy<f32>},
    {"copy.f16", copy<f16>},
    {"copy_anywhere.f32", copy<f32, 1>},
    {"copy_anywhere.f16", copy<f16, 1>},
    {"planes.f32", planes<f32>},
    {"planes.f16", planes<f16>},
    {"iota.f16", iota<f16>},
    {"cast.f32.f16", cast<f32, f16>},
    {"cast.f16.f32", cast<f16, f32>},
    {"transpose.f32", transpose<f32>},
    {"transpose.f16", transpose<f16>},
    {"transpose.u8", transpose<DType::u8>},
    {"sum.f32", sum<f32>},
    {"sum.f16", sum<f16>},
    {"sum_columns.f32", sum_columns},
    {"softmax.f32", softmax<f32>},
    {"softmax.f16", softmax<f16>},
    {"softmax_short.f32", softmax_short<f32>},
    {"softmax_short.f16", softmax_short<f16>},
    {"rms_norm.f32", rms_norm<f32>},
    {"rms_norm.f16", rms_norm<f16>},
    {"quantize_rows", quantize, false, "quantize"},
    {"gemv.q4_0", gemv<DType::q4_0>},
    {"gemv.q4_1", gemv<DType::q4_1>},
    {"gemv.q5_0", gemv<DType::q5_0>},
    {"gemv.q8_0", gemv<DType::q8_0>},
    {"gemv.q4_k", gemv<DType::q4_k>},
    {"gemv.q6_k", gemv<DType::q6_k>},
    {"gemv.bf16", gemv<bf16>},
    {"decode.f16", decode, true},
    {"prompt.f16", prompt<f16>, true},
    {"prompt.f32", prompt<f32>, true},
    {"columns.q4_0", columns<DType::q4_0>, true},
    {"few.q4_0", few<DType::q4_0>, true},
    {"few.q8_0", few<DType::q8_0>, true},
    {"few.q6_k", few<DType::q6_k>, true},
    {"many.q4_0", many<DType::q4_0>, true},
    {"many.q4_1", many<DType::q4_1>, true},
    {"many.q8_0", many<DType::q8_0>, true},
    {"many.q4_k", many<DType::q4_k>, true},
    {"many.q6_k", many<DType::q6_k>, true},
    {"many.bf16", many<bf16>, true},
    {"add_row.f32", add_broadcast<0>},
    {"add_column.f32", add_broadcast<1>},
    {"less.f32", compare},
    {"where.f32", where},
    {"sum_all.f32", reduce_all<Op::sum>},
    {"max_all.f32", reduce_all<Op::max>},
    {"argmax.f32", argmax<1>},
    {"argmax_columns.f32", argmax<0>},
    {"cumsum.f32", cumsum<1>},
    {"cumsum_columns.f32", cumsum<0>},
    {"layer_norm.f32", layer_norm<f32>},
    {"layer_norm.f16", layer_norm<f16>},
    {"group_norm.f32", group_norm},
    {"batch_norm.f32", batch_norm},
    {"index_select.f32", index_select<f32>},
    {"index_select.f16", index_select<f16>},
    {"gather.f32", gather},
    {"index_add.f32", index_add},
    {"max_pool.f32", max_pool},
    {"nearest.f32", nearest},
    {"flash.f16", flash<f16, 64>, true},
    {"flash.bf16", flash<bf16, 64>, true},
    {"flash.bf16.wide", flash<bf16, 128>, true},
    {"flash.f16.256", flash<f16, 256>, true},
    {"flash.bf16.256", flash<bf16, 256>, true},
    {"flash.f16.256.f32", flash<f16, 256, f32>, true},
    {"flash.bf16.256.f32", flash<bf16, 256, f32>, true},
    {"gradient_sums.f16", gradient<f16, 64, false>, true, "flash_mma_sums_"},
    {"gradient_sums.bf16", gradient<bf16, 64, false>, true, "flash_mma_sums_"},
    {"gradient_sums.f16.wide", gradient<f16, 128, false>, true, "flash_mma_sums_"},
    {"gradient_sums.bf16.wide", gradient<bf16, 128, false>, true, "flash_mma_sums_"},
    {"gradient_queries.f16", gradient<f16, 64, false>, true, "flash_mma_queries_"},
    {"gradient_queries.bf16", gradient<bf16, 64, false>, true, "flash_mma_queries_"},
    {"gradient_queries.f16.wide", gradient<f16, 128, false>, true, "flash_mma_queries_"},
    {"gradient_queries.bf16.wide", gradient<bf16, 128, false>, true, "flash_mma_queries_"},
    {"gradient_keys.f16", gradient<f16, 64, true>, true, "flash_mma_keys_"},
    {"gradient_keys.bf16", gradient<bf16, 64, true>, true, "flash_mma_keys_"},
    {"gradient_keys.f16.wide", gradient<f16, 128, true>, true, "flash_mma_keys_"},
    {"gradient_keys.bf16.wide", gradient<bf16, 128, true>, true, "flash_mma_keys_"},
    {"conv.f16", conv<f16, false>, true, "conv_packed_"},
    {"conv.f16.last", conv<f16, true>, true, "conv_packed_"},
    {"conv.bf16.last", conv<bf16, true>, true, "conv_packed_"},
    {"conv.f32", conv<f32, false>, true, "conv_f32_"},
    {"matmul.f16", matmul<f16>, true},
    {"matmul.bf16", matmul<bf16>, true},
    {"matmul.f32", matmul<f32>, true},
    {"matmul.f16.turned", matmul_turned<f16>, true},
    {"matmul.f32.turned", matmul_turned<f32>, true},
    {"matmul.f16.large", matmul_large<f16>, true},
    {"matmul.f16.thin", matmul_thin<f16>, true},
    {"matmul.f32.thin", matmul_thin<f32>, true},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Case& c : kCases)
      fmt::print("{},{},{}\n", c.name, c.loop ? "loop" : "all", c.kernel);
    return 0;
  }
  if (argc != 4 && argc != 5) {
    fmt::print(stderr, "gpu_profile DEVICE CASE TIMES [SCALE]\n");
    return 2;
  }
  try {
    for (const Case& c : kCases) {
      if (std::string_view(argv[2]) != c.name) continue;
      Run run(Device::parse(argv[1]), std::atoi(argv[3]), argc == 5 ? std::atoi(argv[4]) : 1);
      c.run(run);
      return 0;
    }
    fmt::print(stderr, "gpu_profile: no such case: {}\n", argv[2]);
  } catch (const Error& error) {
    fmt::print(stderr, "gpu_profile: {}\n", error.what());
  }
  return 2;
}
