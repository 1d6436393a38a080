// Ops that stand for a sequence of others, which the CPU runs one after another.

#include <fmt/format.h>

#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/fused/pages.h"
#include "wick/backend/cpu/linear/weight.h"
#include "wick/backend/expert_steps.h"
#include "wick/backend/linear_steps.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// A dense tensor that lives as long as its scope.
class Temporary {
 public:
  Temporary(CpuBackend& backend, const Shape& shape, DType dtype = DType::f32)
      : backend_(backend),
        dtype_(dtype),
        layout_(Layout::contiguous(shape)),
        bytes_(static_cast<size_t>(bytes_of(dtype, shape.elems()))),
        data_(backend.alloc(bytes_)) {}
  ~Temporary() { backend_.free(data_, bytes_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  View view() const { return {data_, dtype_, layout_}; }

 private:
  CpuBackend& backend_;
  DType dtype_;
  Layout layout_;
  size_t bytes_;
  void* data_;
};

/// Makes the temporary tensors of run_route_experts and its siblings.
auto make_on(CpuBackend& backend) {
  return [&backend](const Shape& shape, DType dtype) { return Temporary(backend, shape, dtype); };
}

/// Columns [from, from + heads · size) of `count` rows from `first` on of [t, ..], as
/// [1, heads, count, size].
Layout heads_of(const Layout& rows, int64_t first, int64_t count, int64_t from, int64_t heads,
                int64_t size) {
  const int64_t row = rows.stride(0), element = rows.stride(1);
  return Layout({1, heads, count, size}, {0, size * element, row, element},
                rows.offset() + first * row + from * element);
}

void gemm(CpuBackend& backend, const View& out, const ConstView& x, const PreparedWeight& weight,
          int64_t each) {
  if (!is_block(weight.dtype)) {
    linear_float(backend.isa(), out, x, weight, each);
  } else if (dtypes::kOwnProducts.contains(weight.dtype)) {
    linear_quantized(backend.isa(), out, x, weight);
  } else {
    linear_decoded(backend.isa(), out, x, weight);
  }
}

}  // namespace

void CpuBackend::linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                        const LinearFusion& fusion) {
  if (fusion.add) {
    const Temporary y(*this, out.layout.shape());
    LinearFusion without = fusion;
    without.add = false;
    linear(y.view(), x, weight, without);
    binary(Op::add, out, fusion.residual, y.view());
  } else if (fusion.input == LinearFusion::Input::plain) {
    gemm(*this, out, x, weight, fusion.each);
  } else {
    const Temporary input(*this, linear_input_shape(x, weight));
    run_linear_input(*this, input.view(), x, fusion);
    gemm(*this, out, input.view(), weight, fusion.each);
  }
}

// Sorts the rows by expert, so that each expert's weights are read once. Each row has the bits that
// it has alone, whatever the sequences are.
void CpuBackend::grouped_linear(const View& out, const ConstView& x,
                                std::span<const PreparedWeight* const> experts,
                                const ConstView& ids, const GroupedRows& taken) {
  if (taken.silu_mul) {
    const PreparedWeight& any = *experts.front();
    const Temporary input(*this, linear_input_shape(x, any));
    LinearFusion fusion;
    fusion.input = LinearFusion::Input::silu_mul;
    run_linear_input(*this, input.view(), x, fusion);
    return grouped_linear(out, input.view(), experts, ids, {});
  }
  const Shape& shape = out.layout.shape();
  const int64_t n = shape[1], width = shape[2], k = x.layout.shape()[1];
  const auto* words = static_cast<const uint32_t*>(ids.data) + ids.layout.offset();
  struct Row {
    uint32_t token;
    int64_t place;  // row of the result
  };
  std::vector<std::vector<Row>> rows(experts.size());
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const uint32_t id = words[i * ids.layout.stride(0) + j * ids.layout.stride(1)];
      if (id >= experts.size()) {
        throw Error(ErrorKind::index, "grouped_linear", "index of a weight out of range",
                    fmt::format("{} of {}", id, experts.size()));
      }
      rows[id].push_back({static_cast<uint32_t>(i), i * n + j});
    }
  }
  if (out.layout.elems() == 0) return;
  const Layout results = out.layout.reshape({shape[0] * n, width}).value();  // out is dense
  for (size_t e = 0; e < experts.size(); ++e) {
    if (rows[e].empty()) continue;
    const auto count = static_cast<int64_t>(rows[e].size());
    std::vector<uint32_t> tokens;
    for (const Row& row : rows[e]) tokens.push_back(row.token);
    const Temporary in(*this, {count, k}, x.dtype), y(*this, {count, width}, x.dtype);
    index_select(in.view(), x, {tokens.data(), DType::u32, Layout::contiguous({count})}, 0);
    gemm(*this, y.view(), in.view(), *experts[e], 1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = rows[e][static_cast<size_t>(i)].place;
      copy({out.data, out.dtype, results.narrow(0, place, 1)},
           {y.view().data, out.dtype, y.view().layout.narrow(0, i, 1)});
    }
  }
}

void CpuBackend::route_experts(const View& ids, const View& weights, const ConstView& logits,
                               const ConstView& bias, const ExpertRouting& routing) {
  if (ids.layout.elems() == 0) return;
  run_route_experts(*this, ids, weights, logits, bias, routing, make_on(*this));
}

void CpuBackend::gate_experts(const View& out, const ConstView& y, const ExpertBias& bias,
                              double alpha, double limit) {
  run_gate_experts(*this, out, y, bias, alpha, limit, make_on(*this));
}

void CpuBackend::combine_experts(const View& out, const ConstView& y, const ConstView& weights,
                                 const ConstView& residual, const ExpertBias& bias) {
  run_combine_experts(*this, out, y, weights, residual, bias, make_on(*this));
}

void CpuBackend::cached_attention(const View& out, const ConstView& qkv,
                                  const CachedAttention& where) {
  const View &keys = where.keys, &values = where.values;
  const int64_t t = qkv.layout.shape()[0], g = keys.layout.shape()[1];
  const int64_t d = keys.layout.shape()[3], e = values.layout.shape()[3];
  const int64_t h = out.layout.shape()[1] / e;
  if (t == 0) return;
  // Everything is checked before anything is stored.
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
      {{}, {}, where.sinks});
}

namespace {

/// A graph whose launch runs the work again.
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

LaunchLimits CpuBackend::launch_limits() {
  throw Error(ErrorKind::not_implemented, "launch", "the CPU launches no kernels");
}

void CpuBackend::launch(const KernelLaunch& launch) {
  throw Error(ErrorKind::not_implemented, launch.op, "the CPU launches no kernels");
}

}  // namespace wick::cpu
