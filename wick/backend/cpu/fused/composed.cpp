// Ops that stand for several others in a row: on a CPU they are done one after another.

#include <cstring>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/linear/weight.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// A dense f32 tensor for the length of a scope.
class Temporary {
 public:
  Temporary(CpuBackend& backend, const Shape& shape)
      : backend_(backend),
        layout_(Layout::contiguous(shape)),
        bytes_(static_cast<size_t>(bytes_of(DType::f32, shape.elems()))),
        data_(backend.alloc(bytes_)) {}
  ~Temporary() { backend_.free(data_, bytes_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  View view() const { return {data_, DType::f32, layout_}; }

 private:
  CpuBackend& backend_;
  Layout layout_;
  size_t bytes_;
  void* data_;
};

/// Columns [from, from + heads · size) of rows [t, ..] as [1, heads, t, size].
Layout heads_of(const Layout& rows, int64_t from, int64_t heads, int64_t size) {
  const int64_t row = rows.stride(0), element = rows.stride(1);
  return Layout({1, heads, rows.shape()[0], size}, {0, size * element, row, element},
                rows.offset() + from * element);
}

/// Positions [from, from + count) of a cache [g, capacity, size] as [1, g, count, size].
Layout positions_of(const Layout& cache, int64_t from, int64_t count) {
  return cache.narrow(1, from, count).unsqueeze(0);
}

void product(CpuBackend& backend, const View& out, const ConstView& x,
             const PreparedWeight& weight) {
  if (!is_block(weight.dtype)) {
    linear_float(backend.isa(), out, x, weight);
  } else if (dtypes::kOwnProducts.contains(weight.dtype)) {
    linear_quantized(backend.isa(), out, x, weight);
  } else {
    linear_decoded(backend.isa(), out, x, weight);
  }
}

}  // namespace

void CpuBackend::linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                        const LinearFusion& fusion) {
  using Input = LinearFusion::Input;
  if (fusion.add) {
    const Temporary y(*this, out.layout.shape());
    LinearFusion without = fusion;
    without.add = false;
    linear(y.view(), x, weight, without);
    binary(Op::add, out, fusion.residual, y.view());
  } else if (fusion.input == Input::plain) {
    product(*this, out, x, weight);
  } else {
    const int last = x.layout.rank() - 1;
    const Temporary input(*this, x.layout.shape().with(last, weight.k));
    if (fusion.input == Input::attention) {
      cached_attention(input.view(), x, *fusion.attention);
    } else if (fusion.input == Input::rms_norm) {
      rms_norm(input.view(), x, fusion.norm, fusion.eps);
    } else {
      binary(Op::silu_mul, input.view(), {x.data, x.dtype, x.layout.narrow(last, 0, weight.k)},
             {x.data, x.dtype, x.layout.narrow(last, weight.k, weight.k)});
    }
    product(*this, out, input.view(), weight);
  }
}

void CpuBackend::cached_attention(const View& out, const ConstView& qkv,
                                  const CachedAttention& where) {
  const int64_t t = qkv.layout.shape()[0], g = where.keys.layout.shape()[0];
  const int64_t d = where.keys.layout.shape()[2], e = where.values.layout.shape()[2];
  const int64_t h = out.layout.shape()[1] / e;
  if (t == 0) return;
  uint32_t first = 0;
  std::memcpy(&first,
              static_cast<const uint32_t*>(where.positions.data) + where.positions.layout.offset(),
              sizeof first);
  const int64_t start = first, end = start + t;
  if (end > where.keys.layout.shape()[1] || end > where.cos.layout.shape()[0]) {
    throw Error(ErrorKind::index, "cached_attention", "position outside the cache",
                std::to_string(end - 1));
  }
  const ConstView cos{where.cos.data, DType::f32, where.cos.layout.narrow(0, start, t)};
  const ConstView sin{where.sin.data, DType::f32, where.sin.layout.narrow(0, start, t)};
  const auto columns = [&](int64_t from, int64_t heads, int64_t size) {
    return ConstView{qkv.data, qkv.dtype, heads_of(qkv.layout, from, heads, size)};
  };
  const Temporary q(*this, {1, h, t, d}), k(*this, {1, g, t, d});
  rope(q.view(), columns(0, h, d), cos, sin, true);
  rope(k.view(), columns(h * d, g, d), cos, sin, true);
  const View &keys = where.keys, &values = where.values;
  const auto store = [&](const View& cache, const ConstView& rows) {
    const View to{cache.data, cache.dtype, positions_of(cache.layout, start, t)};
    cast(to, rows);
  };
  store(keys, k.view());
  store(values, columns((h + g) * d, g, e));
  attention({out.data, out.dtype, heads_of(out.layout, 0, h, e)}, q.view(),
            {keys.data, keys.dtype, positions_of(keys.layout, 0, end)},
            {values.data, values.dtype, positions_of(values.layout, 0, end)}, where.params, {});
}

namespace {

/// The work itself, done again.
class CpuRecording final : public Recording {
 public:
  explicit CpuRecording(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

}  // namespace

std::unique_ptr<Recording> CpuBackend::record(const std::function<void()>& work) {
  return std::make_unique<CpuRecording>(work);
}

}  // namespace wick::cpu
