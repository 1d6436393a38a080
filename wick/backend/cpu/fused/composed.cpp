// Ops that stand for several others in a row: on a CPU they are done one after another.

#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/pages.h"
#include "wick/backend/cpu/linear/weight.h"

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

/// Columns [from, from + heads · size) of `count` rows from `first` on of [t, ..], as
/// [1, heads, count, size].
Layout heads_of(const Layout& rows, int64_t first, int64_t count, int64_t from, int64_t heads,
                int64_t size) {
  const int64_t row = rows.stride(0), element = rows.stride(1);
  return Layout({1, heads, count, size}, {0, size * element, row, element},
                rows.offset() + first * row + from * element);
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
  const View &keys = where.keys, &values = where.values;
  const int64_t t = qkv.layout.shape()[0], g = keys.layout.shape()[1];
  const int64_t d = keys.layout.shape()[3], e = values.layout.shape()[3];
  const int64_t h = out.layout.shape()[1] / e;
  if (t == 0) return;
  // All is checked before anything is stored.
  const PagePlaces places({.op = "cached_attention",
                           .tables = where.tables,
                           .positions = where.positions,
                           .pages = keys.layout.shape()[0],
                           .size = keys.layout.shape()[2],
                           .limit = where.cos.layout.shape()[0],
                           .reads = true});
  const int64_t sequences = places.sequences(), each = places.each();
  const Temporary q(*this, {h, t, d}), k(*this, {1, g, each, d});
  std::vector<uint32_t> lengths;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t row = i * each, first = places.first(i);
    lengths.push_back(static_cast<uint32_t>(first + each));
    const auto columns = [&](int64_t from, int64_t heads, int64_t size) {
      return ConstView{qkv.data, qkv.dtype, heads_of(qkv.layout, row, each, from, heads, size)};
    };
    const ConstView cos{where.cos.data, DType::f32, where.cos.layout.narrow(0, first, each)};
    const ConstView sin{where.sin.data, DType::f32, where.sin.layout.narrow(0, first, each)};
    View turned = q.view();
    turned.layout = turned.layout.narrow(1, row, each).unsqueeze(0);
    rope(turned, columns(0, h, d), cos, sin, true);
    rope(k.view(), columns(h * d, g, d), cos, sin, true);
    places.store(*this, keys, k.view(), i);
    places.store(*this, values, columns((h + g) * d, g, e), i);
  }
  const Layout &ol = out.layout, &ql = q.view().layout;
  const auto by_sequence = [&](const Layout& l, int64_t row, int64_t head, int64_t x,
                               int64_t width) {
    return Layout({sequences, h, each, width}, {each * row, head, row, x}, l.offset());
  };
  static constexpr uint32_t kOnlyPage[] = {0};
  const ConstView one_table{kOnlyPage, DType::u32, Layout::contiguous({1, 1})};
  const ConstView ends{lengths.data(), DType::u32, Layout::contiguous({sequences})};
  attention_of_pages(
      {out.data, out.dtype, by_sequence(ol, ol.stride(0), e * ol.stride(1), ol.stride(1), e)},
      {q.view().data, DType::f32, by_sequence(ql, ql.stride(1), ql.stride(0), ql.stride(2), d)},
      keys, values, {where.tables.data == nullptr ? one_table : where.tables, ends}, where.params,
      {});
}

namespace {

/// The work itself, done again.
class CpuGraph final : public DeviceGraph {
 public:
  explicit CpuGraph(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

}  // namespace

std::unique_ptr<DeviceGraph> CpuBackend::record(const std::function<void()>& work) {
  return std::make_unique<CpuGraph>(work);
}

}  // namespace wick::cpu
