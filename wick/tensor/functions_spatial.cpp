// Convolutions and pools composed of ops: conv3d runs as one conv2d, adaptive pools gather their
// windows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/gradients.h"

namespace wick {
namespace {

// ---- conv3d ----

// The limit on parameters, so that positions in the padded input don't overflow.
constexpr int64_t kMost = INT64_C(1) << 31;

void check_params(const ConvParams3d& p) {
  bool fits = p.groups >= 1;
  for (size_t i = 0; i < 3; ++i) {
    fits = fits && p.stride[i] >= 1 && p.stride[i] < kMost && p.padding[i] >= 0 &&
           p.padding[i] < kMost && p.dilation[i] >= 1 && p.dilation[i] < kMost;
  }
  if (fits) return;
  throw Error(
      "conv3d", "parameters out of range",
      fmt::format("stride [{}], padding [{}], dilation [{}], groups {}", fmt::join(p.stride, ", "),
                  fmt::join(p.padding, ", "), fmt::join(p.dilation, ", "), p.groups),
      "need stride, dilation and groups of 1 or more, padding of 0 or more, all below 2^31");
}

void check_conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const ConvParams3d& p) {
  check_operand(Op::conv2d, x, "conv3d");
  check_same(Op::conv2d, x, weight, "conv3d");
  const auto operands = [&] { return fmt::format("x {}, weight {}", x.str(), weight.str()); };
  if (x.rank() != 5 || weight.rank() != 5) {
    throw Error("conv3d", "wrong rank", operands(),
                "need x [b, c, d, h, w], weight [o, c/groups, kd, kh, kw]");
  }
  check_params(p);
  const int64_t c = x.size(1), o = weight.size(0);
  if (c % p.groups != 0 || o % p.groups != 0 || weight.size(1) != c / p.groups) {
    throw Error("conv3d", "channels don't fit", operands(), fmt::format("groups {}", p.groups));
  }
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t kernel = weight.size(2 + i), padded = x.size(2 + i) + 2 * p.padding[at];
    if (kernel < 1) throw Error("conv3d", "an empty kernel", operands());
    if (kernel > padded || (kernel - 1) * p.dilation[at] >= padded) {
      throw Error(
          "conv3d", "kernel larger than the padded input", operands(),
          fmt::format("dim {}, padding {}, dilation {}", 2 + i, p.padding[at], p.dilation[at]));
    }
  }
  if (!bias.defined()) return;
  check_same(Op::conv2d, x, bias, "conv3d");
  if (bias.shape() != Shape{o}) {
    throw Error("conv3d", "bias has the wrong shape", bias.str(), fmt::format("need [{}]", o));
  }
}

// ---- adaptive pools ----

/// Window i of `count` along a dim of `size` elements covers [floor(i · size / count), ceil((i + 1)
/// · size / count)).
struct Windows {
  int64_t longest;     ///< an upper bound of the windows' lengths
  Tensor places, end;  ///< i64 [count, longest], [count, 1]
  Tensor lengths;      ///< i64 [count]

  Windows(const char* op, int64_t size, int64_t count, Device device)
      : longest(std::min(size / count + 2, size)) {
    int64_t most = 0;
    if (__builtin_mul_overflow(size, count, &most) || most > INT64_MAX - size - count) {
      throw Error(op, "too many elements", fmt::format("{} windows of {}", count, size));
    }
    const Tensor i = Tensor::arange(0, count, 1, DType::i64, device);
    const Tensor start = affine(i, size, 0) / Scalar(count);
    const Tensor stop = affine(i, size, size + count - 1) / Scalar(count);
    places = start.unsqueeze(1) + Tensor::arange(0, longest, 1, DType::i64, device);
    end = stop.unsqueeze(1);
    lengths = stop - start;
  }
};

void check_pool(const char* op, const Tensor& x, int rank, std::span<const int64_t> size) {
  check_operand(Op::max_pool2d, x, op);
  if (x.rank() != rank) {
    throw Error(op, "wrong rank", x.str(), rank == 3 ? "need [b, c, l]" : "need [b, c, h, w]");
  }
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] < 1) throw Error(op, "a size below 1", fmt::format("{}", size[i]));
    if (x.size(2 + static_cast<int>(i)) == 0) throw Error(op, "an empty image", x.str());
  }
}

/// Means of windows along a dim; x is f32 or f64.
Tensor means(const char* op, const Tensor& x, int d, int64_t count) {
  if (x.size(d) == count) return x;
  const Windows windows(op, x.size(d), count, x.device());
  // The largest u32 id is padding, for which index_select returns zeros.
  const Tensor padding = Tensor::full({}, INT64_C(0xffffffff), DType::u32, x.device());
  const Tensor ids = where(lt(windows.places, windows.end), windows.places.to(DType::u32), padding);
  std::vector<int64_t> along(static_cast<size_t>(x.rank()), 1);
  along[static_cast<size_t>(d)] = count;
  return sum(index_select(x, ids, d), d + 1) / windows.lengths.to(x.dtype()).reshape(Shape(along));
}

/// The largest elements of windows along a dim.
Tensor largest(const char* op, const Tensor& x, int d, int64_t count) {
  if (x.size(d) == count) return x;
  const Windows windows(op, x.size(d), count, x.device());
  // Positions beyond a shorter window's end repeat its last element, which doesn't change the
  // maximum.
  const Tensor ids = minimum(windows.places, affine(windows.end, 1, -1));
  const Tensor in_windows = index_select(x, ids, d);
  if (!in_windows.needs_grad()) return max(in_windows, d + 1);
  const Tensor where = argmax(in_windows.detach(), d + 1, true);
  return gather(in_windows, where, d + 1).squeeze(d + 1);
}

/// Indices along a dim that each window of a pool covers: i64 [count, kernel]. Indices in the
/// padding are replaced by the nearest element of the dim, which the window also covers.
Tensor places_in(int64_t size, int64_t count, int64_t kernel, int64_t stride, int64_t padding,
                 Device device) {
  const Tensor first = Tensor::arange(-padding, count, stride, DType::i64, device);
  const Tensor tap = Tensor::arange(0, kernel, 1, DType::i64, device);
  return clamp(first.unsqueeze(1) + tap, int64_t{0}, size - 1);
}
/// places_in() for an adaptive pool. Shorter windows repeat their last element.
Tensor places_in(const char* op, int64_t size, int64_t count, Device device) {
  const Windows windows(op, size, count, device);
  return minimum(windows.places, affine(windows.end, 1, -1));
}

/// The index of the first maximum of each window of images x [b, c, h, w]: u32 [b, c, oh, ow]. A
/// window covers the rows `rows` [oh, kh] and the columns `columns` [ow, kw]. These are in
/// ascending order and may repeat an index.
Tensor places_of_largest(const char* op, const Tensor& x, const Tensor& rows,
                         const Tensor& columns) {
  const int64_t w = x.size(3), kw = columns.size(1);
  if (x.size(2) > UINT32_MAX / w) throw Error(op, "an image too large for indices", x.str());
  const Tensor windows = index_select(index_select(x.detach(), rows, 2), columns, 4);
  const int dims[] = {3, 5};
  const Tensor tap = argmax(windows, dims).to(DType::i64);
  const Tensor tap_row = tap / Scalar(kw), tap_column = tap - affine(tap_row, kw, 0);
  // Looks up the taps in `rows` and `columns`, for example in rows broadcast from [1, 1, oh, 1,
  // kh].
  const auto chosen = [&](const Tensor& table, const Tensor& taps, int d) {
    Shape all = taps.shape();
    std::vector<int64_t> sizes(all.dims().begin(), all.dims().end());
    std::vector<int64_t> along(sizes.size(), 1);
    along[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)];
    along.push_back(table.size(1));
    sizes.push_back(table.size(1));
    const Tensor spread = table.reshape(Shape(along)).broadcast_to(Shape(sizes));
    return gather(spread, taps.unsqueeze(-1), 4).squeeze(4);
  };
  return (affine(chosen(rows, tap_row, 2), w, 0) + chosen(columns, tap_column, 3)).to(DType::u32);
}

/// The kernel size if all windows have equal length, else 0.
int64_t kernel_of(int64_t size, int64_t count) { return size % count == 0 ? size / count : 0; }

}  // namespace

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvParams3d& p) {
  check_conv3d(x, weight, bias, p);
  const int64_t b = x.size(0), c = x.size(1), h = x.size(3), w = x.size(4);
  const int64_t o = weight.size(0), kd = weight.size(2), kh = weight.size(3), kw = weight.size(4);
  const int64_t depth = x.size(2) + 2 * p.padding[0];
  const int64_t od = (depth - (kd - 1) * p.dilation[0] - 1) / p.stride[0] + 1;
  const Padding around = {p.padding[0], p.padding[0]};
  const Tensor deep = p.padding[0] == 0 ? x : pad(x, {around, Padding{}, Padding{}});
  // The input slices for each tap along the kernel's depth, each [b, od, c, h, w].
  std::vector<Tensor> taps;
  for (int64_t i = 0; i < kd; ++i) {
    const int64_t first = i * p.dilation[0], last = first + (od - 1) * p.stride[0];
    taps.push_back(deep.slice(2, first, last + 1, p.stride[0]).transpose(1, 2));
  }
  const Tensor images = stack(taps, 3).reshape({b * od, c * kd, h, w});
  const ConvParams flat{.stride = {p.stride[1], p.stride[2]},
                        .padding = {p.padding[1], p.padding[2]},
                        .dilation = {p.dilation[1], p.dilation[2]},
                        .groups = p.groups};
  const Tensor y = conv2d(images, weight.reshape({o, weight.size(1) * kd, kh, kw}), bias, flat);
  return y.reshape({b, od, o, y.size(2), y.size(3)}).transpose(1, 2).contiguous();
}

Tensor adaptive_avg_pool2d(const Tensor& x, std::array<int64_t, 2> size) {
  const char* const op = "adaptive_avg_pool2d";
  check_operand(Op::mean, x, op);
  check_pool(op, x, 4, size);
  const int64_t kh = kernel_of(x.size(2), size[0]), kw = kernel_of(x.size(3), size[1]);
  if (kh > 0 && kw > 0) return avg_pool2d(x, {.kernel = {kh, kw}, .stride = {kh, kw}});
  const Tensor t = x.to(tape::wide(x.dtype()));
  return means(op, means(op, t, 3, size[1]), 2, size[0]).to(x.dtype());
}

Tensor adaptive_avg_pool1d(const Tensor& x, int64_t size) {
  const char* const op = "adaptive_avg_pool1d";
  check_operand(Op::mean, x, op);
  check_pool(op, x, 3, std::span(&size, 1));
  if (const int64_t k = kernel_of(x.size(2), size); k > 0) {
    return avg_pool1d(x, {.kernel = k, .stride = k});
  }
  return means(op, x.to(tape::wide(x.dtype())), 2, size).to(x.dtype());
}

Tensor adaptive_max_pool2d(const Tensor& x, std::array<int64_t, 2> size) {
  const char* const op = "adaptive_max_pool2d";
  check_pool(op, x, 4, size);
  const int64_t kh = kernel_of(x.size(2), size[0]), kw = kernel_of(x.size(3), size[1]);
  if (kh > 0 && kw > 0) return max_pool2d(x, {.kernel = {kh, kw}, .stride = {kh, kw}});
  return largest(op, largest(op, x, 3, size[1]), 2, size[0]);
}

Sorted max_pool2d_with_indices(const Tensor& x, const PoolParams& params) {
  const Tensor y = max_pool2d(x, params);
  Tensor places[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t kernel = params.kernel[i];
    const int64_t stride = params.stride[i] == 0 ? kernel : params.stride[i];
    places[i] =
        places_in(x.size(2 + i), y.size(2 + i), kernel, stride, params.padding[i], x.device());
  }
  return {y, places_of_largest("max_pool2d", x, places[0], places[1])};
}

Sorted max_pool1d_with_indices(const Tensor& x, const PoolParams1d& params) {
  const Tensor y = max_pool1d(x, params);
  const int64_t stride = params.stride == 0 ? params.kernel : params.stride;
  const Tensor columns =
      places_in(x.size(2), y.size(2), params.kernel, stride, params.padding, x.device());
  const Tensor row = Tensor::zeros({1, 1}, DType::i64, x.device());
  return {y, places_of_largest("max_pool1d", x.unsqueeze(2), row, columns).squeeze(2)};
}

Sorted adaptive_max_pool2d_with_indices(const Tensor& x, std::array<int64_t, 2> size) {
  const char* const op = "adaptive_max_pool2d";
  const Tensor y = adaptive_max_pool2d(x, size);
  return {y, places_of_largest(op, x, places_in(op, x.size(2), size[0], x.device()),
                               places_in(op, x.size(3), size[1], x.device()))};
}

Sorted adaptive_max_pool1d_with_indices(const Tensor& x, int64_t size) {
  const char* const op = "adaptive_max_pool1d";
  const Tensor y = adaptive_max_pool1d(x, size);
  const Tensor row = Tensor::zeros({1, 1}, DType::i64, x.device());
  const Tensor columns = places_in(op, x.size(2), size, x.device());
  return {y, places_of_largest(op, x.unsqueeze(2), row, columns).squeeze(2)};
}

Tensor adaptive_max_pool1d(const Tensor& x, int64_t size) {
  const char* const op = "adaptive_max_pool1d";
  check_pool(op, x, 3, std::span(&size, 1));
  if (const int64_t k = kernel_of(x.size(2), size); k > 0) {
    return max_pool1d(x, {.kernel = k, .stride = k});
  }
  return largest(op, x, 2, size);
}

}  // namespace wick
