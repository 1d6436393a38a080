#include "wick/backend/cpu/fused/channel_norm_kernels.h"

#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

// For channels of fewer than kShortChannel pixels, weights and biases are copied to an array with
// one entry for each element, kLaidOut elements at a time.
constexpr int64_t kShortChannel = 48;
constexpr int64_t kLaidOut = 1024;

/// One number for all elements of a run.
template <class A>
struct Same {
  explicit WICK_FN Same(A one) : number(one), wide(splat(one)) {}
  WICK_FN Vec<A> lanes(int64_t) const { return wide; }
  WICK_FN A lane(int64_t) const { return number; }
  A number;
  Vec<A> wide;
};
/// One number for each element.
template <class A>
struct Each {
  WICK_FN Vec<A> lanes(int64_t i) const { return load(numbers + i); }
  WICK_FN A lane(int64_t i) const { return numbers[i]; }
  const A* numbers;
};

/// y[i] = f(i), where `lanes` computes a vector and `lane` one element. kStream: with non-temporal
/// stores from the first cache line on.
template <bool kStream, class T, class Lanes, class Lane>
WICK_FN void store_run(T* y, int64_t n, const Lanes& lanes, const Lane& lane) {
  constexpr int kWidth = kStep<T>;
  int64_t i = 0;
  if constexpr (kStream) {
    for (; i < n && (reinterpret_cast<uintptr_t>(y + i) & 63) != 0; ++i) y[i] = narrow<T>(lane(i));
  }
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    store_pair<kStream>(y + i, lanes(i), lanes(i + kWidth));
  }
  for (; i + kWidth <= n; i += kWidth) store(y + i, lanes(i));
  for (; i < n; ++i) y[i] = narrow<T>(lane(i));
}

// The sum of each chunk of 4096 elements, in the order of the row sum. Bytes moved: the run is read
// once.
template <class T>
void sums(const void* in, int64_t n, void* out) {
  const auto* x = static_cast<const T*>(in);
  auto* to = static_cast<Compute<T>*>(out);
  for (int64_t i = 0; i < n; i += kSumChunk) {
    *to++ = chunk_sum(x + i, min(n - i, kSumChunk), [](auto v) { return v; });
  }
}

// The sum of (x - mean)² of each chunk. Bytes moved: the run, read once more, from a cache if a row
// fits.
template <class T>
void squares(const void* in, int64_t n, const void* mean, void* out) {
  using A = Compute<T>;
  const auto* x = static_cast<const T*>(in);
  const Vec<Compute<T>> m = splat(*static_cast<const A*>(mean));
  const auto square = [m](Vec<Compute<T>> v) {
    const Vec<Compute<T>> off = v - m;
    return off * off;
  };
  auto* to = static_cast<A*>(out);
  for (int64_t i = 0; i < n; i += kSumChunk) {
    *to++ = chunk_sum(x + i, min(n - i, kSumChunk), square);
  }
}

/// y = ((x - mean) * scale) * weight + bias, each step rounded.
template <bool kStream, class T, class Weight, class Bias>
WICK_FN void group_run(const T* x, T* y, int64_t n, Compute<T> mean, Compute<T> scale,
                       const Weight& w, const Bias& b) {
  const Vec<Compute<T>> mv = splat(mean), sv = splat(scale);
  store_run<kStream>(
      y, n, [&](int64_t i) { return ((load(x + i) - mv) * sv) * w.lanes(i) + b.lanes(i); },
      [&](int64_t i) { return ((widen(x[i]) - mean) * scale) * w.lane(i) + b.lane(i); });
}

/// Channels of few pixels: a weight and a bias for each element.
template <bool kStream, class T>
WICK_FN void group_short(const GroupRun& run, const T* x, T* y) {
  using A = Compute<T>;
  const auto *weight = static_cast<const A*>(run.weight), *bias = static_cast<const A*>(run.bias);
  const A mean = *static_cast<const A*>(run.mean), scale = *static_cast<const A*>(run.scale);
  alignas(64) A w[kLaidOut], b[kLaidOut];
  int64_t channel = 0, pixel = 0;
  if (run.first != 0) channel = run.first / run.pixels, pixel = run.first % run.pixels;
  for (int64_t start = 0; start < run.n; start += kLaidOut) {
    const int64_t count = min(run.n - start, kLaidOut);
    for (int64_t i = 0; i < count; ++i) {
      w[i] = weight[channel], b[i] = bias[channel];
      if (++pixel == run.pixels) pixel = 0, ++channel;
    }
    group_run<kStream>(x + start, y + start, count, mean, scale, Each<A>{w}, Each<A>{b});
  }
}

template <bool kStream, class T>
WICK_FN void group_stored(const GroupRun& run) {
  using A = Compute<T>;
  const auto* x = static_cast<const T*>(run.x);
  auto* y = static_cast<T*>(run.y);
  if (run.pixels < kShortChannel) return group_short<kStream>(run, x, y);
  const auto *weight = static_cast<const A*>(run.weight), *bias = static_cast<const A*>(run.bias);
  const A mean = *static_cast<const A*>(run.mean), scale = *static_cast<const A*>(run.scale);
  int64_t channel = 0, pixel = 0;
  if (run.first != 0) channel = run.first / run.pixels, pixel = run.first % run.pixels;
  for (int64_t i = 0; i < run.n; ++channel, pixel = 0) {
    const int64_t count = min(run.n - i, run.pixels - pixel);
    group_run<kStream>(x + i, y + i, count, mean, scale, Same<A>(weight[channel]),
                       Same<A>(bias[channel]));
    i += count;
  }
}

// y = ((x - mean) * scale) * weight + bias. Index map: the run's channels one after another, each
// of `pixels` contiguous elements. Bytes moved: the run, read (a third time) and written once.
template <class T>
void group(const GroupRun& run) {
  run.stream ? group_stored<true, T>(run) : group_stored<false, T>(run);
}

/// y = (x - mean) * scale + bias, each step rounded.
template <bool kStream, class T, class Number>
WICK_FN void batch_run(const T* x, T* y, int64_t n, const Number& mean, const Number& scale,
                       const Number& bias) {
  store_run<kStream>(
      y, n,
      [&](int64_t i) { return (load(x + i) - mean.lanes(i)) * scale.lanes(i) + bias.lanes(i); },
      [&](int64_t i) { return (widen(x[i]) - mean.lane(i)) * scale.lane(i) + bias.lane(i); });
}

template <bool kStream, class T>
WICK_FN void batch_stored(const ChannelRun& run) {
  using A = Compute<T>;
  const auto* x = static_cast<const T*>(run.x);
  auto* y = static_cast<T*>(run.y);
  const auto* mean = static_cast<const A*>(run.numbers);
  const A *scale = mean + run.apart, *bias = scale + run.apart;
  const bool dense = run.x_step == 1 && run.y_step == 1;
  if (dense && run.channel_step == 0) {
    return batch_run<kStream>(x, y, run.n, Same<A>(*mean), Same<A>(*scale), Same<A>(*bias));
  }
  if (dense && run.channel_step == 1) {
    return batch_run<kStream>(x, y, run.n, Each<A>{mean}, Each<A>{scale}, Each<A>{bias});
  }
  for (int64_t i = 0; i < run.n; ++i) {
    const int64_t c = i * run.channel_step;
    y[i * run.y_step] = narrow<T>((widen(x[i * run.x_step]) - mean[c]) * scale[c] + bias[c]);
  }
}

// y = (x - mean) * scale + bias. Index map: a run of elements, all of one channel or each of
// another. Bytes moved: x read and y written once, and three numbers for each channel.
template <class T>
void batch(const ChannelRun& run) {
  run.stream ? batch_stored<true, T>(run) : batch_stored<false, T>(run);
}

template <DType kDType>
constexpr void add_dtype(ChannelNormKernels& table) {
  constexpr auto d = static_cast<int>(kDType);
  if constexpr (!is_block(kDType)) {
    using T = Storage<kDType>;
    if constexpr (info(Op::group_norm).dtypes.contains(kDType)) {
      table.sums[d] = sums<T>;
      table.squares[d] = squares<T>;
      table.group[d] = group<T>;
    }
    if constexpr (info(Op::batch_norm).dtypes.contains(kDType)) table.batch[d] = batch<T>;
  }
}

constexpr ChannelNormKernels make_table() {
  ChannelNormKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr ChannelNormKernels channel_norm_kernels = make_table();
static_assert(complete(channel_norm_kernels.sums, Op::group_norm));
static_assert(complete(channel_norm_kernels.squares, Op::group_norm));
static_assert(complete(channel_norm_kernels.group, Op::group_norm));
static_assert(complete(channel_norm_kernels.batch, Op::batch_norm));

}  // namespace wick::cpu::WICK_ISA
