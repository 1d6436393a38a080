// Ops that stand for several others in a row: on a CPU they are done one after another.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

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

/// Columns [from, from + heads · size) of `count` rows from `first` on of [t, ..], as
/// [1, heads, count, size].
Layout heads_of(const Layout& rows, int64_t first, int64_t count, int64_t from, int64_t heads,
                int64_t size) {
  const int64_t row = rows.stride(0), element = rows.stride(1);
  return Layout({1, heads, count, size}, {0, size * element, row, element},
                rows.offset() + first * row + from * element);
}

uint32_t word_at(const ConstView& words, int64_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const uint32_t*>(words.data) + words.layout.offset() + offset,
              sizeof word);
  return word;
}

/// Where the positions of one sequence lie in a cache of pages.
class SequencePages {
 public:
  /// Errors: a position outside the tables; a page out of range.
  SequencePages(const CachedAttention& where, int64_t sequence, int64_t first, int64_t count)
      : tables_(where.tables), sequence_(sequence), size_(where.keys.layout.shape()[2]) {
    const int64_t end = first + count, pages = where.keys.layout.shape()[0];
    const int64_t entries = tables_.data == nullptr ? 1 : tables_.layout.shape()[1];
    if (end > entries * size_ || end > where.cos.layout.shape()[0]) {
      throw Error(ErrorKind::index, "cached_attention", "position outside the cache",
                  std::to_string(end - 1));
    }
    for (int64_t i = 0; i * size_ < end; ++i) {
      if (page_of(i) < pages) continue;
      throw Error(ErrorKind::index, "cached_attention", "page out of range",
                  std::to_string(page_of(i)), "there are " + std::to_string(pages));
    }
  }

  /// Casts rows [1, heads, count, width] into the positions from `first` on.
  void store(CpuBackend& backend, const View& cache, const ConstView& rows, int64_t first) const {
    const int64_t end = first + rows.layout.shape()[2];
    for (int64_t at = first; at < end;) {
      const int64_t count = std::min(end - at, size_ - at % size_);
      const Layout page = cache.layout.narrow(0, page_of(at / size_), 1);
      backend.cast({cache.data, cache.dtype, page.narrow(2, at % size_, count)},
                   {rows.data, rows.dtype, rows.layout.narrow(2, at - first, count)});
      at += count;
    }
  }

 private:
  int64_t page_of(int64_t i) const {
    if (tables_.data == nullptr) return 0;
    return word_at(tables_, sequence_ * tables_.layout.stride(0) + i * tables_.layout.stride(1));
  }

  ConstView tables_;
  int64_t sequence_, size_;
};

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
  const int64_t sequences = where.tables.data == nullptr ? 1 : where.tables.layout.shape()[0];
  const int64_t each = t / sequences;
  const Temporary q(*this, {h, t, d}), k(*this, {1, g, each, d});
  std::vector<uint32_t> lengths;
  // All is checked before anything is stored.
  std::vector<SequencePages> pages;
  for (int64_t i = 0; i < sequences; ++i) {
    const auto first =
        int64_t{word_at(where.positions, i * each * where.positions.layout.stride(0))};
    pages.emplace_back(where, i, first, each);
    lengths.push_back(static_cast<uint32_t>(first + each));
  }
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t row = i * each, first = int64_t{lengths[static_cast<size_t>(i)]} - each;
    const auto columns = [&](int64_t from, int64_t heads, int64_t size) {
      return ConstView{qkv.data, qkv.dtype, heads_of(qkv.layout, row, each, from, heads, size)};
    };
    const ConstView cos{where.cos.data, DType::f32, where.cos.layout.narrow(0, first, each)};
    const ConstView sin{where.sin.data, DType::f32, where.sin.layout.narrow(0, first, each)};
    View turned = q.view();
    turned.layout = turned.layout.narrow(1, row, each).unsqueeze(0);
    rope(turned, columns(0, h, d), cos, sin, true);
    rope(k.view(), columns(h * d, g, d), cos, sin, true);
    const SequencePages& own = pages[static_cast<size_t>(i)];
    own.store(*this, keys, k.view(), first);
    own.store(*this, values, columns((h + g) * d, g, e), first);
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
