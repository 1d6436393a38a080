// index_add: out[.., ids[i], ..] += source[.., i, ..], in the order of i. Dense slices are grouped
// by their place: a piece of an output's slice is read, gets its sources one after another and is
// written once. Other layouts are scatter_add with ids that repeat.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/index/ids.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/backend/cpu/move/move_kernels.h"

namespace wick::cpu {
namespace {

/// The sources [begin, end) of one place, in `order`.
struct Group {
  int64_t place, begin, end;
};
struct Groups {
  std::vector<int64_t> order;
  std::vector<Group> groups;
};

/// The ids by place, padding left out; those of a place stay in order.
Groups group_ids(const ConstView& ids) {
  struct Entry {
    int64_t place, i;
  };
  std::vector<Entry> entries;
  const Layout& layout = ids.layout;
  with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const Id* data = static_cast<const Id*>(ids.data) + layout.offset();
    for (int64_t i = 0; i < layout.shape()[0]; ++i) {
      const Id id = data[i * layout.stride(0)];
      if (!is_padding(id)) entries.push_back({static_cast<int64_t>(id), i});
    }
  });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.place < b.place; });
  Groups result;
  for (const Entry& e : entries) {
    const auto at = static_cast<int64_t>(result.order.size());
    if (result.groups.empty() || result.groups.back().place != e.place) {
      result.groups.push_back({e.place, at, at});
    }
    result.order.push_back(e.i);
    result.groups.back().end = at + 1;
  }
  return result;
}

/// Slices whose elements are neighbours in the output and in the source.
struct DenseSlices {
  char* out;
  const char* source;
  int64_t elems, out_step, source_step, bytes;  // steps in bytes
};

constexpr int64_t kPiece = 2048;  // elements of a slice: in f32 and f64 they fit the first level

/// acc += the pieces at `from`, in order.
void add_group(const DenseSlices& s, const Groups& all, const Group& g, int64_t start, int64_t n,
               const BinaryKernel add, CastKernel widen, CastKernel narrow) {
  char* const to = s.out + g.place * s.out_step + start * s.bytes;
  const auto from = [&](int64_t k) {
    return s.source + all.order[static_cast<size_t>(k)] * s.source_step + start * s.bytes;
  };
  alignas(64) char sum[2][kPiece * sizeof(double)];
  alignas(64) float wide[kPiece];
  const bool is_narrow = widen != nullptr;
  is_narrow ? widen(n, sum[0], to, false)
            : static_cast<void>(std::memcpy(sum[0], to, static_cast<size_t>(n * s.bytes)));
  int current = 0;
  for (int64_t k = g.begin; k < g.end; ++k) {
    const void* x = from(k);
    if (is_narrow) {
      widen(n, wide, x, false);
      x = wide;
    }
    // The kernel's output isn't one of its inputs: two sums take turns.
    const bool last = !is_narrow && k + 1 == g.end;
    add(n, last ? to : sum[1 - current], sum[current], x, false);
    current = 1 - current;
  }
  if (is_narrow) narrow(n, to, sum[current], false);
}

void add_slices(const DenseSlices& s, const ConstView& ids, DType dtype, Isa isa) {
  const BinaryKernels& map = WICK_SELECT_KERNELS(isa, binary_kernels, v4);
  const CastKernels& casts = WICK_SELECT_KERNELS(isa, cast_kernels, v4);
  const bool is_narrow = is_float(dtype) && s.bytes < 4;
  const auto type = static_cast<int>(dtype), f32 = static_cast<int>(DType::f32);
  const BinaryKernel add = map.run[static_cast<int>(Op::add)][is_narrow ? f32 : type];
  const CastKernel widen = is_narrow ? casts.run[type][f32] : nullptr;
  const CastKernel narrow = is_narrow ? casts.run[f32][type] : nullptr;
  const Groups all = group_ids(ids);
  const int64_t pieces = (s.elems + kPiece - 1) / kPiece;
  const auto groups = static_cast<int64_t>(all.groups.size());
  const int64_t each = std::min(kPiece, s.elems);
  parallel_for(groups * pieces, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(each, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t start = unit % pieces * kPiece;
                   add_group(s, all, all.groups[static_cast<size_t>(unit / pieces)], start,
                             std::min(kPiece, s.elems - start), add, widen, narrow);
                 }
               });
}

}  // namespace

void CpuBackend::index_add(const View& out, const ConstView& source, const ConstView& ids,
                           int dim) {
  check_ids(Op::index_add, ids, out, dim);
  if (source.layout.elems() == 0) return;
  Walk<2> slice({0, 0});
  for (int d = 0; d < source.layout.rank(); ++d) {
    if (d != dim) {
      slice.add(source.layout.shape()[d], {out.layout.stride(d), source.layout.stride(d)});
    }
  }
  const bool dense = slice.rank() == 1 && slice.strides_back(0)[0] == 1 &&
                     slice.strides_back(0)[1] == 1 && slice.size_back(0) >= 16;
  if (dense) {
    const int64_t bytes = info(out.dtype).block_bytes;
    const DenseSlices slices{static_cast<char*>(out.data) + out.layout.offset() * bytes,
                             static_cast<const char*>(source.data) + source.layout.offset() * bytes,
                             slice.total(),
                             out.layout.stride(dim) * bytes,
                             source.layout.stride(dim) * bytes,
                             bytes};
    return add_slices(slices, ids, out.dtype, isa_);
  }
  Layout::Strides strides{};
  strides[static_cast<size_t>(dim)] = ids.layout.stride(0);
  const ConstView repeated{ids.data, ids.dtype,
                           Layout(source.layout.shape(), strides, ids.layout.offset())};
  scatter(Op::scatter_add, out, source, repeated, dim);
}

}  // namespace wick::cpu
