// layer_norm, group_norm and batch_norm, composed of other kernels. Steps are computed in f32 (f64
// for f64) and rounded at the end, which gives the bits of the order in docs/design/numerics. Each
// step is a pass over memory.

#include <memory>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {
namespace {

/// The steps of one call, in the compute type. Tensors as large as the result alternate between two
/// temporaries.
class Steps {
 public:
  Steps(GpuBackend& gpu, const View& out)
      : gpu_(gpu), out_(out), dtype_(out.dtype == DType::f64 ? DType::f64 : DType::f32) {}

  /// Makes a dense temporary that lives until the last step.
  View make(const Shape& shape) {
    const auto bytes = static_cast<size_t>(bytes_of(dtype_, shape.elems()));
    held_.push_back(std::make_unique<Scratch>(gpu_.gpu(), bytes));
    return {held_.back()->data(), dtype_, Layout::contiguous(shape)};
  }
  /// The vector itself if it is dense and of the compute type, otherwise a copy.
  ConstView widened(const ConstView& vector) {
    return is_wide(vector) ? vector : cast_to(make(vector.layout.shape()), vector);
  }
  /// The whole input x in the compute type, with the shape `shape`: x itself if it is dense and of
  /// that type, otherwise a copy in a temporary.
  ConstView operand(const ConstView& x, const Shape& shape) {
    ConstView wide = is_wide(x) ? x : cast_to(other(nullptr, x.layout.shape()), x);
    wide.layout = Layout::contiguous(shape, wide.layout.offset());
    return wide;
  }
  /// A vector along dim `dim` of `shape`, broadcast over the other dims.
  ConstView beside(const ConstView& vector, const Shape& shape, int dim) {
    const ConstView wide = widened(vector);
    Layout::Strides strides{};
    strides[static_cast<size_t>(dim)] = 1;
    return {wide.data, dtype_, Layout(shape, strides, wide.layout.offset())};
  }
  /// The temporary that isn't at `data`.
  View other(const void* data, const Shape& shape) {
    for (View& large : large_) {
      if (large.data == nullptr) large = make(out_.layout.shape());
      if (large.data != data) return {large.data, dtype_, Layout::contiguous(shape)};
    }
    return {};
  }

  /// (x − mean) · 1/sqrt(variance + eps) for rows [r, n].
  View normalized(const ConstView& rows, float eps) {
    const Shape& shape = rows.layout.shape();
    const View mean = make({shape[0], 1}), scale = make({shape[0], 1});
    const auto by_row = [&](const View& v) {
      return beside({v.data, dtype_, Layout::contiguous({shape[0]})}, shape, 0);
    };
    gpu_.reduce(Op::mean, mean, rows, 1u << 1);
    const View off = other(rows.data, shape), y = other(off.data, shape);
    gpu_.binary(Op::sub, off, rows, by_row(mean));
    gpu_.unary(Op::sqr, y, off);
    gpu_.reduce(Op::mean, mean, y, 1u << 1);
    gpu_.unary_with(Op::affine, scale, mean, 1.0, eps);
    gpu_.unary(Op::rsqrt, mean, scale);
    gpu_.binary(Op::mul, y, off, by_row(mean));
    return y;
  }
  /// The result: x · weight + bias along a dim. Weight and bias may be absent.
  void finish(ConstView x, const ConstView& weight, const ConstView& bias, int dim) {
    const Shape& shape = out_.layout.shape();
    x.layout = Layout::contiguous(shape, x.layout.offset());
    const auto step = [&](Op op, const ConstView& vector, bool last) {
      if (vector.data == nullptr) return;
      const View y = last && out_.dtype == dtype_ ? out_ : other(x.data, shape);
      gpu_.binary(op, y, x, beside(vector, shape, dim));
      x = y;
    };
    step(Op::mul, weight, bias.data == nullptr);
    step(Op::add, bias, true);
    if (x.data != out_.data) gpu_.cast(out_, x);
  }

 private:
  bool is_wide(const ConstView& x) const { return x.dtype == dtype_ && x.layout.is_contiguous(); }
  ConstView cast_to(const View& wide, const ConstView& x) {
    gpu_.cast(wide, x);
    return wide;
  }

  GpuBackend& gpu_;
  const View& out_;
  DType dtype_;
  View large_[2];
  std::vector<std::unique_ptr<Scratch>> held_;
};

}  // namespace

void GpuBackend::layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                            const ConstView& bias, float eps) {
  const Shape& shape = in.layout.shape();
  if (shape.elems() == 0) return;
  Steps steps(*this, out);
  const int last = shape.rank() - 1;
  const ConstView rows = steps.operand(in, {shape.elems() / shape[last], shape[last]});
  steps.finish(steps.normalized(rows, eps), weight, bias, last);
}

void GpuBackend::group_norm(const View& out, const ConstView& in, int64_t groups,
                            const ConstView& weight, const ConstView& bias, float eps) {
  const Shape& shape = in.layout.shape();
  if (shape.elems() == 0) return;
  Steps steps(*this, out);
  const int64_t count = shape[0] * groups;
  const ConstView rows = steps.operand(in, {count, shape.elems() / count});
  steps.finish(steps.normalized(rows, eps), weight, bias, 1);
}

void GpuBackend::batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                            const ConstView& variance, const ConstView& weight,
                            const ConstView& bias, float eps) {
  const Shape& shape = in.layout.shape();
  if (shape.elems() == 0) return;
  Steps steps(*this, out);
  const Shape channels{shape[1]};
  const View sum = steps.make(channels), scale = steps.make(channels);
  unary_with(Op::affine, sum, steps.widened(variance), 1.0, eps);
  if (weight.data == nullptr) {
    unary(Op::rsqrt, scale, sum);
  } else {
    const View root = steps.make(channels);
    unary(Op::sqrt, root, sum);
    binary(Op::div, scale, steps.widened(weight), root);
  }
  const ConstView x = steps.operand(in, shape);
  const View off = steps.other(x.data, shape);
  binary(Op::sub, off, x, steps.beside(mean, shape, 1));
  steps.finish(off, scale, bias, 1);
}

}  // namespace wick::gpu
