#include "wick/backend/cpu/spatial/pool_kernels.h"

#include <type_traits>

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/storage_type.h"

// Pooling of a plane: out[y][x] combines in[y·sy - py + i][x·sx - px + j] over the taps (i, j)
// inside the input, row-major. A row of windows processes its input rows one after another; an
// output is one chain. Bytes moved: each input row once for each row of windows that contains it,
// mostly from L1.

namespace wick::cpu::WICK_ISA {
namespace {

template <class T>
inline constexpr bool kIsFloat = !std::is_integral_v<T>;

template <class T>
using Key = UnsignedOf<sizeof(T)>;

/// The bits of the largest number that isn't NaN.
template <class T>
inline constexpr Key<T> kLargest = 0;
template <>
inline constexpr uint8_t kLargest<math::f8e4m3> = 0x7e;
template <>
inline constexpr uint16_t kLargest<math::bf16> = 0x7f80;
template <>
inline constexpr uint16_t kLargest<math::f16> = 0x7c00;
template <>
inline constexpr uint32_t kLargest<float> = 0x7f800000;
template <>
inline constexpr uint64_t kLargest<double> = 0x7ff0000000000000;

/// Numbers as unsigned integers of the same order: the lowest number is 0, -0 is below +0, and NaN
/// of either sign is above all numbers.
template <class T>
WICK_FN Key<T> key_of(T x) {
  using K = Key<T>;
  constexpr int kTop = 8 * static_cast<int>(sizeof(K)) - 1;
  if constexpr (kIsFloat<T>) {
    K bits;
    if constexpr (sizeof(T) < 4) {
      bits = x.bits;
    } else {
      bits = __builtin_bit_cast(K, x);
    }
    // Inverts the magnitude bits of negative numbers, then maps the lowest number to 0.
    const K turned = static_cast<K>(static_cast<K>(-(bits >> kTop)) >> 1);
    return static_cast<K>((bits ^ turned) + kLargest<T> + 1);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(static_cast<K>(x) ^ static_cast<K>(K{1} << kTop));
  } else {
    return x;
  }
}
template <class T>
WICK_FN T of_key(Key<T> key) {
  using K = Key<T>;
  constexpr int kTop = 8 * static_cast<int>(sizeof(K)) - 1;
  if constexpr (kIsFloat<T>) {
    const K moved = static_cast<K>(key - kLargest<T> - 1);
    const K turned = static_cast<K>(static_cast<K>(-(moved >> kTop)) >> 1);
    return __builtin_bit_cast(T, static_cast<K>(moved ^ turned));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<K>(key ^ static_cast<K>(K{1} << kTop)));
  } else {
    return key;
  }
}

/// The largest element, by keys. Padding has the lowest key.
template <class T>
struct Max {
  using Elem = T;
  using Sum = Key<T>;
  static constexpr bool kInPlace = std::is_same_v<T, Sum>;
  static WICK_FN Sum read(T x) { return key_of(x); }
  static WICK_FN Sum combine(Sum a, Sum b) { return a > b ? a : b; }
  static WICK_FN T finish(Sum sum, int64_t) { return of_key<T>(sum); }
};

template <class T>
struct Mean {
  using Elem = T;
  using Sum = std::conditional_t<kIsFloat<T>, Compute<T>,
                                 std::conditional_t<sizeof(T) == 8, __int128, int64_t>>;
  static constexpr bool kInPlace = std::is_same_v<T, Sum>;
  static WICK_FN Sum read(T x) {
    if constexpr (kIsFloat<T>) {
      return widen(x);
    } else {
      return static_cast<Sum>(x);
    }
  }
  static WICK_FN Sum combine(Sum a, Sum b) { return a + b; }
  static WICK_FN T finish(Sum sum, int64_t count) {
    if constexpr (kIsFloat<T>) {
      return narrow<T>(static_cast<Sum>(sum / static_cast<Sum>(count)));
    } else {
      return static_cast<T>(sum / static_cast<Sum>(count));
    }
  }
};

/// Combines sums[x] with the kK elements from line[x · kS] on, for x in [0, n).
template <class F, int kS, int kK>
WICK_FN void combine_taps(typename F::Sum* __restrict sums, const typename F::Sum* __restrict line,
                          int64_t n) {
  for (int64_t x = 0; x < n; ++x) {
    typename F::Sum sum = sums[x];
#pragma GCC unroll 4
    for (int j = 0; j < kK; ++j) sum = F::combine(sum, line[x * kS + j]);
    sums[x] = sum;
  }
}

/// combine_taps for any stride and kernel.
template <class F>
WICK_FN void combine_row(typename F::Sum* __restrict sums, const typename F::Sum* __restrict line,
                         int64_t n, int64_t stride, int64_t kernel) {
  if (n == 0) return;  // skips the loop over a kernel that may be far larger than the image
  if (stride == 2 && kernel == 2) return combine_taps<F, 2, 2>(sums, line, n);
  if (stride == 2 && kernel == 3) return combine_taps<F, 2, 3>(sums, line, n);
  if (stride == 1 && kernel == 3) return combine_taps<F, 1, 3>(sums, line, n);
  if (stride == 3 && kernel == 3) return combine_taps<F, 3, 3>(sums, line, n);
  for (int64_t j = 0; j < kernel; ++j) {
    if (stride == 1) {
      for (int64_t x = 0; x < n; ++x) sums[x] = F::combine(sums[x], line[x + j]);
    } else if (stride == 2) {
      for (int64_t x = 0; x < n; ++x) sums[x] = F::combine(sums[x], line[x * 2 + j]);
    } else {
      for (int64_t x = 0; x < n; ++x) sums[x] = F::combine(sums[x], line[x * stride + j]);
    }
  }
}

/// Windows along a row of the input: those of outputs [inner, outer) lie inside it.
struct Span {
  int64_t inner, outer;
  Span(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding) {
    inner = min((padding + stride - 1) / stride, outputs);
    const int64_t room = size + padding - kernel;  // for the start of a window
    outer = max(room < 0 ? 0 : min(room / stride + 1, outputs), inner);
  }
};

/// The window of an output along one axis: elements [low, high) of the input.
struct Window {
  int64_t low, high;
  WICK_FN Window(int64_t at, int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
    const int64_t start = at * stride - padding;
    low = max(start, 0);
    high = min(start + kernel, size);
  }
  WICK_FN int64_t count() const { return high > low ? high - low : 0; }
};

template <class F>
void rows(const PoolArgs& a) {
  using T = typename F::Elem;
  using Sum = typename F::Sum;
  Sum* const sums = static_cast<Sum*>(a.scratch);
  Sum* const copy = sums + a.out_width;
  const T* const in = static_cast<const T*>(a.in);
  const int64_t width = a.in_size[1], nx = a.out_width;
  const int64_t kernel = a.kernel[1], stride = a.stride[1], padding = a.padding[1];
  const Span span(width, nx, kernel, stride, padding);
  const auto edge = [&](const Sum* line, int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const Window w(x, width, kernel, stride, padding);
      for (int64_t i = w.low; i < w.high; ++i) sums[x] = F::combine(sums[x], line[i]);
    }
  };
  for (int64_t y = a.first; y < a.last; ++y) {
    const Window tall(y, a.in_size[0], a.kernel[0], a.stride[0], a.padding[0]);
    for (int64_t x = 0; x < nx; ++x) sums[x] = 0;
    for (int64_t r = tall.low; r < tall.high; ++r) {
      const T* from = in + r * a.in_stride[0];
      const Sum* line = copy;
      if (F::kInPlace && a.in_stride[1] == 1) {
        line = reinterpret_cast<const Sum*>(from);
      } else if (a.in_stride[1] == 1) {
        for (int64_t x = 0; x < width; ++x) copy[x] = F::read(from[x]);
      } else {
        for (int64_t x = 0; x < width; ++x) copy[x] = F::read(from[x * a.in_stride[1]]);
      }
      edge(line, 0, span.inner);
      combine_row<F>(sums + span.inner, line + span.inner * stride - padding,
                     span.outer - span.inner, stride, kernel);
      edge(line, span.outer, nx);
    }
    T* out = static_cast<T*>(a.out) + y * a.out_stride[0];
    if (a.count_include_pad) {
      const int64_t count = a.kernel[0] * kernel;
      if (a.out_stride[1] == 1) {
        for (int64_t x = 0; x < nx; ++x) out[x] = F::finish(sums[x], count);
      } else {
        for (int64_t x = 0; x < nx; ++x) out[x * a.out_stride[1]] = F::finish(sums[x], count);
      }
      continue;
    }
    for (int64_t x = 0; x < nx; ++x) {
      const Window w(x, width, kernel, stride, padding);
      out[x * a.out_stride[1]] = F::finish(sums[x], tall.count() * w.count());
    }
  }
}

// ---- Gradients: contributions are added in the order of the outputs, in the compute type. ----

template <class T, class Visit>
WICK_FN void spread(const PoolGradArgs& a, Visit visit) {
  using A = Compute<T>;
  A* const sums = static_cast<A*>(a.scratch);
  for (int64_t i = 0; i < a.in_size[0] * a.in_size[1]; ++i) sums[i] = 0;
  const T* const grad = static_cast<const T*>(a.grad_out);
  for (int64_t y = 0; y < a.out_size[0]; ++y) {
    const Window tall(y, a.in_size[0], a.kernel[0], a.stride[0], a.padding[0]);
    for (int64_t x = 0; x < a.out_size[1]; ++x) {
      const Window wide(x, a.in_size[1], a.kernel[1], a.stride[1], a.padding[1]);
      visit(sums, tall, wide, widen(grad[y * a.grad_out_stride[0] + x * a.grad_out_stride[1]]));
    }
  }
  T* const out = static_cast<T*>(a.grad_in);
  for (int64_t y = 0; y < a.in_size[0]; ++y) {
    for (int64_t x = 0; x < a.in_size[1]; ++x) {
      out[y * a.grad_in_stride[0] + x * a.grad_in_stride[1]] =
          narrow<T>(sums[y * a.in_size[1] + x]);
    }
  }
}

template <class T>
void max_grad(const PoolGradArgs& a) {
  const T* const in = static_cast<const T*>(a.in);
  spread<T>(a, [&](Compute<T>* sums, const Window& tall, const Window& wide, Compute<T> grad) {
    constexpr Key<T> kNan = static_cast<Key<T>>(2 * kLargest<T> + 1);  // the key of the largest
                                                                       // number
    Key<T> best = 0;
    int64_t at = tall.low * a.in_size[1] + wide.low;
    for (int64_t r = tall.low; r < tall.high; ++r) {
      for (int64_t c = wide.low; c < wide.high; ++c) {
        const Key<T> key = key_of(in[r * a.in_stride[0] + c * a.in_stride[1]]);
        if (key <= best || best > kNan) continue;  // the first NaN wins
        best = key;
        at = r * a.in_size[1] + c;
      }
    }
    sums[at] += grad;
  });
}

template <class T>
void avg_grad(const PoolGradArgs& a) {
  spread<T>(a, [&](Compute<T>* sums, const Window& tall, const Window& wide, Compute<T> grad) {
    const int64_t count =
        a.count_include_pad ? a.kernel[0] * a.kernel[1] : tall.count() * wide.count();
    const Compute<T> share = grad / static_cast<Compute<T>>(count);
    for (int64_t r = tall.low; r < tall.high; ++r) {
      for (int64_t c = wide.low; c < wide.high; ++c) sums[r * a.in_size[1] + c] += share;
    }
  });
}

template <DType kDType>
constexpr void add_dtype(PoolKernels& table) {
  constexpr auto kAt = static_cast<int>(kDType);
  using T = Storage<kDType>;
  table.max[kAt] = rows<Max<T>>;
  table.avg[kAt] = rows<Mean<T>>;
  if constexpr (is_float(kDType)) {
    table.max_grad[kAt] = max_grad<T>;
    table.avg_grad[kAt] = avg_grad<T>;
  }
}

constexpr PoolKernels make_table() {
  PoolKernels table{};
  auto add = [&table]<DType kDType>() {
    if constexpr (static_cast<int>(kDType) < kRealDTypeCount) add_dtype<kDType>(table);
  };
#define WICK_DTYPE(dtype, ...) add.template operator()<DType::dtype>();
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr PoolKernels pool_kernels = make_table();
static_assert(complete(pool_kernels));

}  // namespace wick::cpu::WICK_ISA
