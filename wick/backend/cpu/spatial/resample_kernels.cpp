#include "wick/backend/cpu/spatial/resample_kernels.h"

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/storage_type.h"

// Resampling of planes. Bilinear: a row of outputs lies between two rows of inputs. Each input row
// is interpolated along x once and kept while outputs need it; then rows are interpolated along y.
// The order of operations is that of docs/design/numerics/convolution.md. Bytes moved: inputs once,
// outputs once.

namespace wick::cpu::WICK_ISA {
namespace {

template <class T>
void pick(const void* from_bytes, const int64_t* index, int64_t repeat, int64_t n, void* to_bytes) {
  const T* __restrict from = static_cast<const T*>(from_bytes);
  T* __restrict to = static_cast<T*>(to_bytes);
  int64_t i = 0;
  if (repeat == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  if (repeat == 2) {
    for (; i < n / 2; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    i *= 2;
  } else if (repeat == 4) {
    for (; i < n / 4; ++i) to[4 * i] = to[4 * i + 1] = to[4 * i + 2] = to[4 * i + 3] = from[i];
    i *= 4;
  }
  for (; i < n; ++i) to[i] = from[index[i]];
}

/// line[x] = weight[0][x] · row[low[x]] + weight[1][x] · row[high[x]].
template <class A>
void along_x(const A* row, int64_t width, const LinearAxis& axis, const A* weight, int64_t n,
             A* line) {
  const A* high_weight = weight + n;
  int64_t x = 0;
#if defined(__AVX512F__)
  if constexpr (math::kSame<A, float>) {
    // Sixteen outputs that lie between sixteen neighbouring inputs are two permutations of those.
    for (; x + 16 <= n; x += 16) {
      const int64_t base = axis.low[x];
      if (axis.high[x + 15] - base >= 16) break;
      const int64_t there = min(width - base, 16);
      const auto mask = static_cast<__mmask16>((1u << there) - 1);
      const __m512 in = _mm512_maskz_loadu_ps(mask, row + base);
      const __m512i start = _mm512_set1_epi64(base);
      const auto lanes = [&](const int64_t* at) {
        const __m256i a = _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_loadu_si512(at), start));
        const __m256i b =
            _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_loadu_si512(at + 8), start));
        return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
      };
      const __m512 low = _mm512_permutexvar_ps(lanes(axis.low + x), in);
      const __m512 high = _mm512_permutexvar_ps(lanes(axis.high + x), in);
      const __m512 sum = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(weight + x), low),
                                       _mm512_mul_ps(_mm512_loadu_ps(high_weight + x), high));
      _mm512_storeu_ps(line + x, sum);
    }
  }
#endif
  static_cast<void>(width);
  for (; x < n; ++x) line[x] = weight[x] * row[axis.low[x]] + high_weight[x] * row[axis.high[x]];
}

template <class T>
void bilinear(const BilinearArgs& a) {
  using A = Compute<T>;
  const int64_t n = a.out_width;
  A* const weight = static_cast<A*>(a.scratch);
  A* line[2] = {weight + 2 * n, weight + 3 * n};
  A* const wide = weight + 4 * n;
  A* const result = wide + a.in_width;
  int64_t held[2] = {-1, -1};
  for (int64_t x = 0; x < n; ++x) {
    weight[n + x] = static_cast<A>(a.x.part[x]);
    weight[x] = A{1} - weight[n + x];
  }
  const auto interpolate = [&](int64_t row, A* to) {
    const T* from = static_cast<const T*>(a.in) + row * a.in_stride[0];
    const A* dense = wide;
    if (math::kSame<T, A> && a.in_stride[1] == 1) {
      dense = reinterpret_cast<const A*>(from);
    } else if (a.in_stride[1] == 1) {
      int64_t i = 0;
      for (; i + kStep<T> <= a.in_width; i += kStep<T>) store(wide + i, load(from + i));
      for (; i < a.in_width; ++i) wide[i] = widen(from[i]);
    } else {
      for (int64_t i = 0; i < a.in_width; ++i) wide[i] = widen(from[i * a.in_stride[1]]);
    }
    along_x(dense, a.in_width, a.x, weight, n, to);
  };
  for (int64_t y = a.first; y < a.last; ++y) {
    const int64_t low = a.y.low[y], high = a.y.high[y];
    if (held[1] == low) {
      A* const swap = line[0];
      line[0] = line[1];
      line[1] = swap;
      held[1] = held[0];
      held[0] = low;
    }
    if (held[0] != low) interpolate(held[0] = low, line[0]);
    if (high != low && held[1] != high) interpolate(held[1] = high, line[1]);
    const A* const top = line[0];
    const A* const bottom = high == low ? line[0] : line[1];
    const A part = static_cast<A>(a.y.part[y]), rest = A{1} - part;
    T* const to = static_cast<T*>(a.out) + y * a.out_stride[0];
    const bool dense = a.out_stride[1] == 1;
    A* const sums = math::kSame<T, A> && dense ? reinterpret_cast<A*>(to) : result;
    for (int64_t x = 0; x < n; ++x) sums[x] = rest * top[x] + part * bottom[x];
    if (dense) {
      if constexpr (!math::kSame<T, A>) {
        int64_t i = 0;
        for (; i + kStep<T> <= n; i += kStep<T>) store(to + i, load(sums + i));
        for (; i < n; ++i) to[i] = narrow<T>(sums[i]);
      }
    } else {
      for (int64_t x = 0; x < n; ++x) to[x * a.out_stride[1]] = narrow<T>(sums[x]);
    }
  }
}

/// Contributions are added in the order of the outputs, in the compute type; those of one output in
/// the order top left, top right, bottom left, bottom right.
template <class T, bool kNearest>
void grad(const ResampleGradArgs& a) {
  using A = Compute<T>;
  A* const sums = static_cast<A*>(a.scratch);
  const int64_t height = a.in_size[0], width = a.in_size[1];
  for (int64_t i = 0; i < height * width; ++i) sums[i] = 0;
  for (int64_t y = 0; y < a.out_size[0]; ++y) {
    A* const top = sums + a.y.low[y] * width;
    A* const bottom = sums + a.y.high[y] * width;
    const A y1 = static_cast<A>(a.y.part[y]), y0 = A{1} - y1;
    const T* const from = static_cast<const T*>(a.grad_out) + y * a.grad_out_stride[0];
    for (int64_t x = 0; x < a.out_size[1]; ++x) {
      const A g = widen(from[x * a.grad_out_stride[1]]);
      const int64_t low = a.x.low[x], high = a.x.high[x];
      if constexpr (kNearest) {
        top[low] += g;
      } else {
        const A x1 = static_cast<A>(a.x.part[x]), x0 = A{1} - x1;
        const A up = y0 * g, down = y1 * g;
        top[low] += x0 * up;
        top[high] += x1 * up;
        bottom[low] += x0 * down;
        bottom[high] += x1 * down;
      }
    }
  }
  T* const out = static_cast<T*>(a.grad_in);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      out[y * a.grad_in_stride[0] + x * a.grad_in_stride[1]] = narrow<T>(sums[y * width + x]);
    }
  }
}

template <DType kDType>
constexpr void add_dtype(ResampleKernels& table) {
  constexpr auto kAt = static_cast<int>(kDType);
  using T = Storage<kDType>;
  table.bilinear[kAt] = bilinear<T>;
  table.nearest_grad[kAt] = grad<T, true>;
  table.bilinear_grad[kAt] = grad<T, false>;
}

constexpr ResampleKernels make_table() {
  ResampleKernels table{
      {pick<uint8_t>, pick<uint16_t>, pick<uint32_t>, pick<uint64_t>}, {}, {}, {}};
  auto add = [&table]<DType kDType>() {
    if constexpr (is_float(kDType)) add_dtype<kDType>(table);
  };
#define WICK_DTYPE(dtype, ...) add.template operator()<DType::dtype>();
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr ResampleKernels resample_kernels = make_table();
static_assert(complete(resample_kernels));

}  // namespace wick::cpu::WICK_ISA
