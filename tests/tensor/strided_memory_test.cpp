// No op makes a hidden copy of a strided input. Every row of ops.def is called with transposed,
// sliced, strided and reversed operands of some megabytes. The memory that it uses besides its
// result, on the device and on the heap, must stay within a limit.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>

#include "wick/backend/cpu/cpu.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"

namespace {

/// Heap bytes, for vectors and other memory that doesn't come from the device's allocator.
std::atomic<int64_t> heap_bytes{0}, heap_peak{0};

void* counted(void* data) {
  if (data == nullptr) throw std::bad_alloc();
  const int64_t now = heap_bytes += static_cast<int64_t>(malloc_usable_size(data));
  int64_t peak = heap_peak;
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
  return data;
}
void uncount(void* data) noexcept {
  if (data != nullptr) heap_bytes -= static_cast<int64_t>(malloc_usable_size(data));
  std::free(data);
}

}  // namespace

void* operator new(size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto a = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(a, (bytes + a - 1) / a * a));
}
void operator delete(void* data) noexcept { uncount(data); }
void operator delete(void* data, size_t) noexcept { uncount(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { uncount(data); }
void operator delete(void* data, std::align_val_t) noexcept { uncount(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { uncount(data); }

namespace wick {
namespace {

constexpr int64_t kSide = 1024;            // 4 MiB of f32
constexpr int64_t kWorkspace = 512 << 10;  // limit for any call: some rows per thread
constexpr int64_t kPanels = 13 << 20;  // limit for a gemm: packed panels, independent of its size

enum class Place { transposed, sliced, stepped, reversed };
constexpr std::pair<Place, const char*> kPlaces[] = {{Place::transposed, "transposed"},
                                                     {Place::sliced, "sliced"},
                                                     {Place::stepped, "stepped"},
                                                     {Place::reversed, "reversed"}};

/// A tensor of the shape, strided as `place` says.
Tensor strided(Place place, const Shape& shape, DType dtype) {
  const auto stored = [&](const Shape& s) {
    // Values in the domain of every function.
    return Tensor::full(s, dtypes::kFloats.contains(dtype) ? Scalar(0.75) : Scalar(1), dtype);
  };
  if (shape.rank() == 0) return stored(shape);
  const int last = shape.rank() - 1;
  switch (place) {
    case Place::transposed: {
      if (shape.rank() == 1) return stored({shape[0], 2}).narrow(1, 0, 1).squeeze(1);
      const Shape turned = shape.with(last, shape[last - 1]).with(last - 1, shape[last]);
      return stored(turned).transpose(last, last - 1);
    }
    case Place::sliced:
      return stored(shape.with(last, shape[last] + 24)).narrow(last, 16, shape[last]);
    case Place::stepped:
      return stored(shape.with(last, shape[last] * 2)).slice(last, 1, shape[last] * 2, 2);
    default:
      return flip(stored(shape), last);
  }
}

struct Operand {
  Shape shape;
  DType dtype = DType::f32;
};
using In = const std::vector<Tensor>&;
using Call = std::function<std::vector<Tensor>(In)>;

/// A call of a row, and the limit on its memory besides its results.
struct Case {
  Op op;
  std::vector<Operand> operands;
  Call call;
  int64_t workspace;
};

class Cases {
 public:
  /// Adds a case whose call returns one tensor.
  template <class F>
  void add(Op op, std::vector<Operand> operands, const F& f, int64_t workspace = kWorkspace) {
    add_all(
        op, std::move(operands), [f](In x) -> std::vector<Tensor> { return {f(x)}; }, workspace);
  }
  void add_all(Op op, std::vector<Operand> operands, Call call, int64_t workspace = kWorkspace) {
    all_.push_back({op, std::move(operands), std::move(call), workspace});
  }
  const std::vector<Case>& all() const { return all_; }

 private:
  std::vector<Case> all_;
};

const Shape kShape = {kSide, kSide};
const Operand kSquare = {kShape}, kColumn = {{kSide, 1}}, kVector = {{kSide}};
const Operand kIds = {kShape, DType::i64};  // all of them are 1
constexpr int64_t kOfF32 = kSide * kSide * 4, kOfU8 = kSide * kSide;

Operand square_of(Op op) {
  return {kShape, info(op).dtypes.contains(DType::f32) ? DType::f32 : DType::i32};
}

void add_regular(Cases& c) {
// clang-format off
#define WICK_UNARY(name, ...) \
  c.add(Op::name, {square_of(Op::name)}, [](In x) { return name(x[0]); });
#define WICK_TEST(name, ...) c.add(Op::name, {kSquare}, [](In x) { return name(x[0]); });
#define WICK_BINARY(name, ...) \
  c.add(Op::name, {square_of(Op::name), square_of(Op::name)}, \
        [](In x) { return name(x[0], x[1]); }); \
  c.add(Op::name, {square_of(Op::name), {{kSide, 1}, square_of(Op::name).dtype}}, \
        [](In x) { return name(x[1], x[0]); });
#define WICK_COMPARE(name, ...) \
  c.add(Op::name, {kSquare, kSquare}, [](In x) { return name(x[0], x[1]); });
#define WICK_REDUCE(name, ...) \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0]); }); \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0], 0); }); \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0], 1); });
#define WICK_ARG(name, ...) \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0]); }); \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0], 0); }); \
  c.add(Op::name, {kSquare}, [](In x) { return name(x[0], 1); });
#include "wick/op/ops.def"
  // clang-format on
  c.add(Op::affine, {kSquare}, [](In x) { return affine(x[0], 2, 1); });
  c.add(Op::clamp, {kSquare}, [](In x) { return clamp(x[0], 0.7, 1); });
  c.add(Op::powf, {kSquare}, [](In x) { return powf(x[0], 1.5); });
  c.add(Op::elu, {kSquare}, [](In x) { return elu(x[0]); });
  c.add(Op::where, {{kShape, DType::u8}, kSquare, kColumn},
        [](In x) { return where(x[0], x[1], x[2]); });
}

void add_moves(Cases& c) {
  c.add(Op::fill, {}, [](In) { return Tensor::full(kShape, 2, DType::f32); });
  c.add(Op::iota, {}, [](In) { return Tensor::arange(0, kSide * kSide); });
  c.add(Op::uniform, {}, [](In) { return uniform(kShape); });
  c.add(Op::normal, {}, [](In) { return normal(kShape); });
  c.add(Op::copy, {kSquare}, [](In x) { return x[0].clone(); });
  c.add(Op::cat, {kSquare, kSquare}, [](In x) { return cat(x, 0); });
  c.add(Op::cat, {kSquare, kSquare}, [](In x) { return stack(x, 2); });
  c.add(Op::roll, {kSquare}, [](In x) { return roll(x[0], 100, 1); });
  c.add(Op::repeat, {kSquare}, [](In x) { return repeat(x[0], {2, 2}); });
  c.add(Op::pad, {kSquare}, [](In x) { return pad(x[0], {{1, 1}, {2, 2}}, PadMode::reflect); });
  c.add(Op::tril, {kSquare}, [](In x) { return tril(x[0]); });
  c.add(Op::triu, {kSquare}, [](In x) { return triu(x[0]); });
  c.add(Op::cast, {kSquare}, [](In x) { return cast(x[0], DType::bf16); });
  c.add(Op::cast, {kSquare}, [](In x) { return cast(x[0], DType::i64); });
}

void add_index(Cases& c) {
  // Narrow floats are summed in f32, one part of the output at a time.
  constexpr int64_t kSums = kOfF32 / 2 + kWorkspace;
  // Columns that ids select from are packed, up to half a MiB per thread.
  constexpr int64_t kNear = 2 * kWorkspace;
  const Operand few = {{kSide}, DType::i64};
  for (int dim : {0, 1}) {
    c.add(Op::index_select, {kSquare, few}, [=](In x) { return index_select(x[0], x[1], dim); });
    c.add(
        Op::gather, {kSquare, kIds}, [=](In x) { return gather(x[0], x[1], dim); }, kNear);
    c.add(
        Op::scatter, {kSquare, kIds, kSquare}, [=](In x) { return scatter(x[0], x[1], x[2], dim); },
        kNear);
    c.add(
        Op::scatter_add, {kSquare, kIds, kSquare},
        [=](In x) { return scatter_add(x[0], x[1], x[2], dim); }, kSums);
    c.add(
        Op::index_add, {kSquare, few, kSquare},
        [=](In x) { return index_add(x[0], x[1], x[2], dim); }, kSums);
    c.add_all(Op::sort, {kSquare}, [=](In x) -> std::vector<Tensor> {
      Sorted s = sort(x[0], dim);
      return {s.values, s.indices};
    });
    c.add(Op::argsort, {kSquare}, [=](In x) { return argsort(x[0], dim); });
    c.add_all(Op::topk, {kSquare}, [=](In x) -> std::vector<Tensor> {
      Sorted s = topk(x[0], 5, dim);
      return {s.values, s.indices};
    });
    c.add(Op::cumsum, {kSquare}, [=](In x) { return cumsum(x[0], dim); });
    c.add(Op::cumprod, {kSquare}, [=](In x) { return cumprod(x[0], dim); });
  }
  c.add(Op::one_hot, {few}, [](In x) { return one_hot(x[0], kSide); });
}

void add_pages(Cases& c) {
  constexpr int64_t kHeads = 8, kPage = 256, kPages = kSide / kPage;
  const Tensor pages = Tensor::zeros({kPages, kHeads, kPage, kSide / kHeads}, DType::f32);
  const Tensor tables = Tensor::arange(0, kPages, 1, DType::u32).reshape({1, kPages});
  const Tensor positions = Tensor::arange(0, kSide, 1, DType::u32);
  c.add_all(Op::store_in_pages, {{{kSide, kHeads, kSide / kHeads}}},
            [=](In x) -> std::vector<Tensor> {
              store_in_pages(pages, x[0], tables, positions);
              return {};
            });
}

/// Narrow operands and results are converted from and to f32: x and y, or x, y, b and c.
void add_recurrences(Cases& c) {
  constexpr int64_t kOfTwo = 2 * kOfF32 + kWorkspace, kOfFour = 4 * kOfF32 + kWorkspace;
  constexpr int64_t kHeads = 8, kSize = kSide / kHeads;
  const Tensor slot = Tensor::zeros({1}, DType::u32);
  const Tensor inputs = Tensor::zeros({1, 3, kSide}, DType::f32);
  const Tensor states = Tensor::zeros({1, kHeads, kSize, kSize}, DType::f32);
  const Operand heads = {{kSide, kHeads, kSize}}, numbers = {{kSide, kHeads}}, factors = {{kHeads}};
  c.add(
      Op::causal_conv, {kSquare, {{kSide, 4}}, kVector},
      [=](In x) { return causal_conv(x[0], x[1], inputs, slot, x[2]); }, kOfTwo);
  c.add(
      Op::ssm_scan, {heads, numbers, factors, heads, heads, factors},
      [=](In x) { return ssm_scan(x[0], x[1], x[2], x[3], x[4], states, slot, x[5]); }, kOfFour);
  c.add(
      Op::gated_delta_scan, {heads, heads, heads, numbers, numbers},
      [=](In x) { return gated_delta_scan(x[0], x[1], x[2], x[3], x[4], states, slot); }, kOfFour);
}

void add_products(Cases& c) {
  const Operand tall = {{32 * kSide, kSide / 4}}, thin = {{kSide / 4, kSide / 16}};
  c.add(
      Op::matmul, {tall, thin}, [](In x) { return matmul(x[0], x[1]); }, kPanels);
  c.add(
      Op::matmul, {thin, tall}, [](In x) { return matmul(x[0].t(), x[1].t()); }, kPanels);
  c.add(
      Op::einsum, {tall, thin}, [](In x) { return einsum("ij,jk->ik", x); }, kPanels);
  c.add(Op::quantize, {kSquare}, [](In x) { return quantize(x[0], DType::q4_0); });
  // A block dtype is dense along the last dim; its rows may be strided.
  const Tensor blocks = quantize(Tensor::ones({2 * kSide, kSide}, DType::f32), DType::q4_0);
  c.add(Op::dequantize, {},
        [=](In) { return dequantize(blocks.slice(0, 0, 2 * kSide, 2), DType::f32); });
  // Activations are quantized to integers, 1024 rows at a time.
  for (const DType dtype : {DType::q4_0, DType::q8_0}) {
    const Weight weight(quantize(Tensor::ones({64, kSide / 4}, DType::f32), dtype));
    c.add(
        Op::linear, {tall}, [=](In x) { return linear(x[0], weight); }, kOfF32 / 2);
  }
  const Weight weight(Tensor::ones({64, kSide / 4}, DType::f32));
  c.add(
      Op::linear, {tall}, [=](In x) { return linear(x[0], weight); }, kPanels);
  // All activations are rounded to the weights' bf16 first.
  const Weight narrow(Tensor::ones({64, kSide / 4}, DType::bf16));
  c.add(
      Op::linear, {tall}, [=](In x) { return linear(x[0], narrow); }, 4 * kOfF32 + kPanels);
  const Operand heads = {{1, 8, 256, 64}};
  c.add(Op::attention, {heads, heads, heads},
        [](In x) { return attention(x[0], x[1], x[2], {.scale = 0.1f}); });
}

void add_images(Cases& c) {
  // Each thread holds a part of the input that fits the L2 cache, and the filters.
  const Operand image = {{1, 16, 256, 256}}, line = {{64, 16, 1024}};
  const Operand filters = {{16, 16, 3, 3}}, filters1 = {{16, 16, 3}};
  c.add(
      Op::conv2d, {image, filters}, [](In x) { return conv2d(x[0], x[1]); }, 2 * kWorkspace);
  c.add(Op::conv1d, {line, filters1}, [](In x) { return conv1d(x[0], x[1]); });
  c.add(
      Op::conv_transpose2d, {image, filters}, [](In x) { return conv_transpose2d(x[0], x[1]); },
      2 * kWorkspace);
  c.add(Op::conv_transpose1d, {line, filters1}, [](In x) { return conv_transpose1d(x[0], x[1]); });
  c.add(Op::max_pool2d, {image}, [](In x) { return max_pool2d(x[0], {.kernel = {2, 2}}); });
  c.add(Op::avg_pool2d, {image}, [](In x) { return avg_pool2d(x[0], {.kernel = {3, 3}}); });
  c.add(Op::max_pool1d, {line}, [](In x) { return max_pool1d(x[0], {.kernel = 2}); });
  c.add(Op::avg_pool1d, {line}, [](In x) { return avg_pool1d(x[0], {.kernel = 3}); });
  c.add(Op::upsample_nearest1d, {line}, [](In x) { return upsample_nearest1d(x[0], 1500); });
  c.add(Op::upsample_nearest2d, {image}, [](In x) {
    return upsample_nearest2d(x[0], {.size = {384, 300}});
  });
  c.add(Op::upsample_bilinear2d, {image}, [](In x) {
    return upsample_bilinear2d(x[0], {.size = {384, 300}});
  });
}

void add_norms(Cases& c) {
  // Along dim 0, each thread packs neighbouring columns: some hundred bytes of each row.
  constexpr int64_t kColumns = 2 * kWorkspace;
  for (int dim : {0, 1}) {
    c.add(
        Op::softmax, {kSquare}, [=](In x) { return softmax(x[0], dim); }, kColumns);
    c.add(
        Op::log_softmax, {kSquare}, [=](In x) { return log_softmax(x[0], dim); }, kColumns);
  }
  for (int dim : {0, 1}) {
    c.add(Op::softmax_grad, {kSquare, kSquare},
          [=](In x) { return softmax_grad(x[0], x[1], dim); });
    c.add(Op::log_softmax_grad, {kSquare, kSquare},
          [=](In x) { return log_softmax_grad(x[0], x[1], dim); });
  }
  c.add(Op::norm_grad, {kSquare, kSquare, kVector},
        [](In x) { return norm_grad(x[0], x[1], x[2]).x; });
  for (int dim : {0, 1}) {
    c.add(Op::norm_sums, {kSquare, kSquare, kColumn, kColumn}, [=](In x) {
      const DType wide = x[0].dtype() == DType::f64 ? DType::f64 : DType::f32;
      return norm_sums(x[0], x[1], x[2].to(wide), std::array{dim}, x[3].to(wide));
    });
  }
  c.add(Op::rms_norm, {kSquare, kVector}, [](In x) { return rms_norm(x[0], x[1], 1e-5f); });
  c.add(Op::layer_norm, {kSquare, kVector, kVector},
        [](In x) { return layer_norm(x[0], x[1], x[2]); });
  const Operand pixels = {{1, 16, 256, 256}}, channels = {{16}};
  c.add(Op::batch_norm, {pixels, channels, channels},
        [](In x) { return batch_norm(x[0], x[1], x[2]); });
  // Strided rows are packed if they have at most 1 MiB.
  c.add(
      Op::group_norm, {pixels, channels, channels},
      [](In x) { return group_norm(x[0], 4, x[1], x[2]); }, (2 << 20) + kWorkspace);
  c.add(Op::group_norm, {pixels, channels, channels},
        [](In x) { return group_norm(x[0], 1, x[1], x[2]); });
  const Operand table = {{kSide, kSide / 2}};
  c.add(Op::rope, {kSquare, table, table}, [](In x) { return rope(x[0], x[1], x[2]); });
  c.add(Op::rope_interleaved, {kSquare, table, table},
        [](In x) { return rope_interleaved(x[0], x[1], x[2]); });
}

/// Composed rows also use memory for their intermediates.
void add_composed(Cases& c) {
  constexpr std::array last = {1};
  const auto over = [&](auto f) { return [=](In x) { return f(x[0], last, false); }; };
  c.add(Op::any, {kSquare}, over(any), kOfU8 + kWorkspace);
  c.add(Op::all, {kSquare}, over(all), kOfU8 + kWorkspace);
  c.add(Op::logsumexp, {kSquare}, over(logsumexp), 2 * kOfF32 + kWorkspace);
  c.add(
      Op::var, {kSquare}, [=](In x) { return var(x[0], last); }, 2 * kOfF32 + kWorkspace);
}

const std::vector<Case>& cases() {
  static const Cases all = [] {
    Cases c;
    add_regular(c);
    add_moves(c);
    add_index(c);
    add_recurrences(c);
    add_pages(c);
    add_products(c);
    add_images(c);
    add_norms(c);
    add_composed(c);
    return c;
  }();
  return all.all();
}

/// Returns the peak memory of a call besides the memory that it keeps, in bytes.
int64_t taken(const Case& c, const std::vector<Tensor>& operands) {
  std::vector<Tensor> results;
  reset_peak_memory();
  heap_peak = heap_bytes.load();
  results = c.call(operands);
  const MemoryStats now = memory_stats();
  return static_cast<int64_t>(now.peak_bytes - now.in_use_bytes) + (heap_peak - heap_bytes);
}

/// Returns the operands with `dtype` instead of f32.
std::vector<Operand> in_dtype(std::vector<Operand> operands, DType dtype) {
  for (Operand& o : operands) {
    if (o.dtype == DType::f32) o.dtype = dtype;
  }
  return operands;
}

TEST(StridedMemory, NoRowCopiesItsInputs) {
  cpu::set_threads(2);  // each thread has a workspace
  for (const Case& c : cases()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      // rope's tables are always f32, and so is the input of quantize.
      const bool f32_alone =
          c.op == Op::rope || c.op == Op::rope_interleaved || c.op == Op::quantize;
      if (dtype != DType::f32 && (f32_alone || !info(c.op).dtypes.contains(dtype))) continue;
      for (const auto& [place, text] : kPlaces) {
        std::vector<Tensor> operands;
        for (const Operand& o : in_dtype(c.operands, dtype)) {
          operands.push_back(strided(place, o.shape, o.dtype));
        }
        taken(c, operands);  // allocates the workspaces that later calls reuse
        EXPECT_LE(taken(c, operands), c.workspace)
            << name(c.op) << ", " << name(dtype) << ", " << text;
      }
    }
  }
}

TEST(StridedMemory, EveryRowHasACase) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_TRUE(std::any_of(cases().begin(), cases().end(), [&](const Case& c) {
      return c.op == op;
    })) << name(op);
  }
}

TEST(StridedMemory, GradientsOfAttentionStoreNoMatrixOfScores) {
  cpu::set_threads(2);
  constexpr int64_t kLength = 2 * kSide, kScores = 4 * kLength * kLength * 4, kLimit = kScores / 2;
  const Shape shape{1, 4, kLength, 32};
  std::vector<Tensor> inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(Tensor::full(shape, 0.5, DType::f32).requires_grad());
  const Case stored{
      Op::attention,
      {},
      [](In x) -> std::vector<Tensor> { return gradients(sum(attention(x[0], x[1], x[2])), x); },
      kLimit};
  EXPECT_LE(taken(stored, inputs), kLimit);
  // The gradient of a mask is such a matrix.
  const Case matrix{
      Op::attention,
      {},
      [](In x) -> std::vector<Tensor> {
        const Tensor mask = Tensor::zeros({1, 4, kLength, kLength}, DType::f32).requires_grad();
        return {gradients(sum(attention(x[0], x[1], x[2], {}, mask)), {&mask, 1})[0]};
      },
      kLimit};
  EXPECT_GE(taken(matrix, inputs), kScores);
}

/// A copy is detected, both on the heap and in the device's memory.
TEST(StridedMemory, CopiesAreSeen) {
  const Tensor x = strided(Place::transposed, kShape, DType::f32);
  const Case copies{
      Op::neg, {}, [](In in) -> std::vector<Tensor> { return {neg(in[0].clone())}; }, 0};
  EXPECT_GE(taken(copies, {x}), kOfF32);
  const Case vectors{
      Op::neg,
      {},
      [](In in) -> std::vector<Tensor> { return {Tensor::from(in[0].to_vector<float>(), kShape)}; },
      0};
  EXPECT_GE(taken(vectors, {x}), kOfF32);
}

}  // namespace
}  // namespace wick
