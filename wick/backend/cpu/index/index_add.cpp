// index_add: out[.., ids[i], ..] += source[.., i, ..], in the order of i. Dense slices are grouped
// by the id: a piece of an output slice is read once, its sources are added one after another, and
// it is written once. Other layouts are scatter_add with repeated ids.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/index/scatter.h"
#include "wick/backend/cpu/map/map_kernels.h"
#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/math/arithmetic.h"

namespace wick::cpu {
namespace {

/// The sources order[begin .. end) of one output slice.
struct Group {
  int64_t place, begin, end;
};
struct Groups {
  std::vector<int64_t> order;
  std::vector<Group> groups;
};

/// Groups the ids that name one slice, without padding; those of a group stay in order.
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

/// Slices whose elements are dense in the output and in the source.
struct DenseSlices {
  char* out;
  const char* source;
  int64_t elems, out_step, source_step, bytes;  // steps in bytes
};

constexpr int64_t kPiece = 2048;  // elements of a slice: three such pieces in f32 fit L1

/// Adds the sources of a group to a piece of its slice, in f32.
void add_group(const DenseSlices& s, const Groups& all, const Group& g, int64_t start, int64_t n,
               BinaryKernel add, CastKernel widen, CastKernel narrow) {
  char* const to = s.out + g.place * s.out_step + start * s.bytes;
  const auto from = [&](int64_t k) {
    return s.source + all.order[static_cast<size_t>(k)] * s.source_step + start * s.bytes;
  };
  alignas(64) float sum[2][kPiece], wide[kPiece];
  widen(n, sum[0], to, false);
  int current = 0;
  for (int64_t k = g.begin; k < g.end; ++k) {
    if (k + 1 < static_cast<int64_t>(all.order.size())) {
      // Slices lie anywhere in memory: the next one is prefetched while this one is added.
      for (int64_t b = 0; b < n * s.bytes; b += 64) __builtin_prefetch(from(k + 1) + b);
    }
    widen(n, wide, from(k), false);
    // The kernel's output must not be one of its inputs, so two arrays of sums alternate.
    add(n, sum[1 - current], sum[current], wide, false);
    current = 1 - current;
  }
  narrow(n, to, sum[current], false);
}

void add_narrow_slices(const DenseSlices& s, const ConstView& ids, DType dtype, Isa isa) {
  const BinaryKernels& map = WICK_SELECT_KERNELS(isa, binary_kernels, no_dots);
  const CastKernels& casts = WICK_SELECT_KERNELS(isa, cast_kernels, no_dots);
  const auto type = static_cast<int>(dtype), f32 = static_cast<int>(DType::f32);
  const BinaryKernel add = map.run[static_cast<int>(Op::add)][f32];
  const Groups all = group_ids(ids);
  const int64_t pieces = (s.elems + kPiece - 1) / kPiece;
  const auto groups = static_cast<int64_t>(all.groups.size());
  const int64_t each = std::min(kPiece, s.elems);
  parallel_for(groups * pieces, std::max<int64_t>(1, kIndexGrain / each),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t start = unit % pieces * kPiece;
                   add_group(s, all, all.groups[static_cast<size_t>(unit / pieces)], start,
                             std::min(kPiece, s.elems - start), add, casts.run[type][f32],
                             casts.run[f32][type]);
                 }
               });
}

/// Adds columns [start, start + n) of all sources whose id is in a share, in order. `shared`: other
/// threads have the other ids.
template <class T, class Id>
void add_columns(const DenseSlices& s, const Id* ids, int64_t id_step, int64_t count, Share share,
                 bool shared, int64_t start, int64_t n) {
  const auto place = [&](int64_t i) {
    return static_cast<uint64_t>(ids[i * id_step]) - share.first;
  };
  const auto slice = [&](uint64_t p) {
    return reinterpret_cast<T*>(s.out + static_cast<int64_t>(p + share.first) * s.out_step) + start;
  };
  const auto source = [&](int64_t i) {
    return reinterpret_cast<const T*>(s.source + i * s.source_step) + start;
  };
  const auto next_from = [&](int64_t i) {
    while (i < count && place(i) >= share.count) ++i;
    return i;
  };
  for (int64_t i = next_from(0); i < count;) {
    const int64_t next = next_from(i + 1), ahead = next < count ? next : i;
    T* const __restrict to = slice(place(i));
    const T* const __restrict from = source(i);
    // Output slices lie anywhere in memory, as do a share's sources: the next ones are prefetched
    // during this addition. Hardware prefetchers follow consecutive sources if no other prefetch
    // disturbs them.
    const T* const next_to = slice(place(ahead));
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    int64_t c = 0;
    if (shared) {
      const T* const next_source = source(ahead);
      for (; c + kLine <= n; c += kLine) {
        __builtin_prefetch(next_to + c, 1);
        __builtin_prefetch(next_source + c);
        for (int64_t l = 0; l < kLine; ++l) to[c + l] = math::add(to[c + l], from[c + l]);
      }
    } else {
      for (int64_t l = 0; l < n; l += kLine) __builtin_prefetch(next_to + l, 1);
      for (; c + kLine <= n; c += kLine) {
        for (int64_t l = 0; l < kLine; ++l) to[c + l] = math::add(to[c + l], from[c + l]);
      }
    }
    for (; c < n; ++c) to[c] = math::add(to[c], from[c]);
    i = next;
  }
}

/// Whether `parts` shares of `each` ids have about equally many sources.
template <class Id>
bool are_even(const Id* ids, int64_t id_step, int64_t count, uint64_t each, int parts) {
  std::vector<int64_t> found(static_cast<size_t>(parts));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t part = static_cast<uint64_t>(ids[i * id_step]) / each;
    if (part < found.size()) ++found[part];
  }
  return *std::max_element(found.begin(), found.end()) * parts <= count + count / 8;
}

/// Each thread takes a share of the output slices, which are long runs of memory; or a share of the
/// columns, if one thread would get most of the sources.
template <class T>
void add_slices(const DenseSlices& s, const ConstView& ids, int64_t places) {
  const int64_t count = ids.layout.shape()[0];
  const int64_t most = ThreadPool::global().threads();
  const int parts = static_cast<int>(std::clamp<int64_t>(count * s.elems / kIndexGrain, 1, most));
  const int64_t columns = (s.elems / parts + 63) / 64 * 64;
  with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const uint64_t limit = id_limit<Id>(places), each = limit / static_cast<uint64_t>(parts) + 1;
    const Id* data = static_cast<const Id*>(ids.data) + ids.layout.offset();
    const bool by_columns =
        s.elems * s.bytes >= 512 * parts &&
        (parts == 1 || !are_even(data, ids.layout.stride(0), count, each, parts));
    ThreadPool::global().run(parts, [&](int part) {
      Share share{0, limit};
      int64_t start = 0, n = s.elems;
      if (by_columns) {
        start = std::min(s.elems, part * columns);
        n = part + 1 == parts ? s.elems - start : std::min(columns, s.elems - start);
      } else {
        share.first = std::min(limit, static_cast<uint64_t>(part) * each);
        share.count = std::min(limit - share.first, each);
      }
      add_columns<T, Id>(s, data, ids.layout.stride(0), count, share, !by_columns && parts > 1,
                         start, n);
    });
  });
}

void add_slices(const DenseSlices& s, const ConstView& ids, DType dtype, int64_t places) {
  switch (dtype) {
    case DType::u8:
      return add_slices<math::u8>(s, ids, places);
    case DType::i16:
      return add_slices<math::i16>(s, ids, places);
    case DType::f32:
      return add_slices<float>(s, ids, places);
    case DType::f64:
      return add_slices<double>(s, ids, places);
    case DType::i64:
      return add_slices<math::i64>(s, ids, places);
    default:
      return add_slices<math::u32>(s, ids, places);
  }
}

}  // namespace

void CpuBackend::index_add(const View& out, const ConstView& source, const ConstView& ids,
                           int dim) {
  check_ids(Op::index_add, ids, out, dim);
  if (source.layout.elems() == 0) return;
  CollapsedDims<2> slice;
  for (int d = 0; d < source.layout.rank(); ++d) {
    if (d != dim) {
      slice.add(source.layout.shape()[d], {out.layout.stride(d), source.layout.stride(d)});
    }
  }
  const bool dense = slice.rank() == 1 && slice.inner(0).stride[0] == 1 &&
                     slice.inner(0).stride[1] == 1 && slice.inner(0).size >= 16;
  if (dense) {
    const int64_t bytes = info(out.dtype).block_bytes;
    const DenseSlices slices{static_cast<char*>(out.data) + out.layout.offset() * bytes,
                             static_cast<const char*>(source.data) + source.layout.offset() * bytes,
                             slice.elems,
                             out.layout.stride(dim) * bytes,
                             source.layout.stride(dim) * bytes,
                             bytes};
    if (is_float(out.dtype) && bytes < 4) return add_narrow_slices(slices, ids, out.dtype, isa_);
    return add_slices(slices, ids, out.dtype, out.layout.shape()[dim]);
  }
  Layout::Strides strides{};
  strides[static_cast<size_t>(dim)] = ids.layout.stride(0);
  const ConstView repeated{ids.data, ids.dtype,
                           Layout(source.layout.shape(), strides, ids.layout.offset())};
  scatter(Op::scatter_add, out, source, repeated, dim);
}

}  // namespace wick::cpu
