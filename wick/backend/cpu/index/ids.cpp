#include "wick/backend/cpu/index/ids.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <type_traits>

#include "wick/base/error.h"

namespace wick::cpu {
namespace {

/// Whether each of n ids is padding or below `limit`. Written so that compilers vectorise it: a
/// signed id is right if neither it nor (limit − 1 − id) is negative; an unsigned id is right if id
/// + 1, which is 0 for padding, is at most the limit.
template <class Id>
bool all_below(const Id* ids, int64_t stride, int64_t n, uint64_t limit) {
  if constexpr (std::numeric_limits<Id>::is_signed) {
    if (limit == 0) return n == 0;
    using Bits = std::make_unsigned_t<Id>;
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<Id>::max());
    const auto last = static_cast<Bits>(std::min(limit - 1, kMost));
    Bits signs = 0;
    const auto look = [&](Id id) {
      const auto bits = static_cast<Bits>(id);
      signs |= bits | (last - bits);
    };
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) look(ids[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) look(ids[i * stride]);
    }
    return static_cast<Id>(signs) >= 0;
  } else {
    Id most = 0;
    const auto look = [&](Id id) {
      const auto next = static_cast<Id>(id + 1u);
      most = next > most ? next : most;
    };
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) look(ids[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) look(ids[i * stride]);
    }
    return most <= limit;
  }
}

}  // namespace

void fail_id(Op op, const ConstView& ids, const ConstView& x, int dim) {
  const CollapsedDims<1> all({&ids.layout});
  const int64_t size = x.layout.shape()[dim];
  with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    for (int64_t i = 0; i < all.elems; ++i) {
      const Id id = static_cast<const Id*>(ids.data)[all.at(i)[0]];
      const auto wide = static_cast<int64_t>(id);
      if (is_padding(id) || (wide >= 0 && wide < size)) continue;
      throw Error(
          ErrorKind::index, name(op), "id out of range",
          fmt::format("id {} at position {} of {}{}, x {}{}, dim {}", wide, i, name(ids.dtype),
                      ids.layout.shape().str(), name(x.dtype), x.layout.shape().str(), dim),
          fmt::format("need 0 <= id < {}", size));
    }
  });
  throw Error(ErrorKind::runtime, name(op), "ids changed while they were read");
}

void check_ids(Op op, const ConstView& ids, const ConstView& x, int dim) {
  if (ids.layout.elems() == 0) return;
  CollapsedDims<1> distinct({ids.layout.offset()});
  for (int d = 0; d < ids.layout.rank(); ++d) {
    if (ids.layout.stride(d) != 0) distinct.add(ids.layout.shape()[d], {ids.layout.stride(d)});
  }
  std::atomic<bool> good{true};
  with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const Id* data = static_cast<const Id*>(ids.data);
    const uint64_t limit = id_limit<Id>(x.layout.shape()[dim]);
    parallel_for(distinct.elems, kIndexGrain, [&](int64_t begin, int64_t end) {
      distinct.runs(begin, end, [&](const auto& at, const auto& stride, int64_t count) {
        if (!all_below(data + at[0], stride[0], count, limit)) {
          good.store(false, std::memory_order_relaxed);
        }
      });
    });
  });
  if (!good.load()) fail_id(op, ids, x, dim);
}

Strips::Strips(const ConstView& walked, const ConstView& chosen, const ConstView& ids, int dim) {
  const ConstView* const views[] = {&walked, &chosen, &ids};
  const Shape& shape = ids.layout.shape();
  for (size_t k = 0; k < 3; ++k) {
    base_[k] = static_cast<char*>(const_cast<void*>(views[k]->data));
    bytes_[k] = info(views[k]->dtype).block_bytes;
    along_step_[k] = views[k]->layout.stride(dim);
  }
  n_ = shape[dim];
  step_ = along_step_[1] * bytes_[1];

  // Rows may be processed in any order; the order of `walked` in memory is chosen.
  rows_ = CollapsedDims<3>({&walked.layout, &chosen.layout, &ids.layout}, ~(1u << dim));
  rows_.sort();
  along_ = rows_.rank() == 0 ||
           std::abs(walked.layout.stride(dim)) <= std::abs(rows_.inner(0).stride[0]);
  if (along_ || rows_.elems == 0) return;
  // A block has as many neighbouring columns as possible while the elements of `chosen` that their
  // ids may name fit L2.
  constexpr int64_t kCache = 512 * 1024;
  columns_ = rows_.inner(0).size;
  const int64_t column_bytes = chosen.layout.shape()[dim] * bytes_[1];
  block_ = std::clamp<int64_t>(kCache / std::max<int64_t>(column_bytes, 1), 64 / bytes_[1], 1024);
  blocks_ = (columns_ + block_ - 1) / block_;
}

Strip Strips::strip(const Offsets& at) const {
  Strip s{};
  s.walked = base_[0] + at[0] * bytes_[0];
  s.chosen = base_[1] + at[1] * bytes_[1];
  s.ids = base_[2] + at[2] * bytes_[2];
  s.step = step_;
  return s;
}

}  // namespace wick::cpu
