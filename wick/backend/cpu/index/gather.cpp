// gather: out[.., i, ..] = in[.., ids[.., i, ..], ..]. Moves elements of 1, 2, 4 or 8 bytes; reads
// ids once and checks them on the way, since what is written is a result nobody has seen yet.

#include <atomic>
#include <cstring>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/index/ids.h"

namespace wick::cpu {
namespace {

/// False when an id was neither below the limit nor padding.
template <class T, class Id, bool kDense>
bool gather_strip(const Strip& s, uint64_t limit) {
  bool good = true;
  const int64_t to_step = kDense ? static_cast<int64_t>(sizeof(T)) : s.inner_step.walked;
  const int64_t from_step = kDense ? 0 : s.inner_step.chosen;
  const int64_t id_step = kDense ? static_cast<int64_t>(sizeof(Id)) : s.inner_step.ids;
  const int64_t step = kDense ? static_cast<int64_t>(sizeof(T)) : s.step;
  for (int64_t o = 0; o < s.outer; ++o) {
    char* to = s.walked + o * s.outer_step.walked;
    const char* from = s.chosen + o * s.outer_step.chosen;
    const char* ids = s.ids + o * s.outer_step.ids;
    for (int64_t i = 0; i < s.inner; ++i) {
      Id id;
      std::memcpy(&id, ids + i * id_step, sizeof id);
      const auto place = static_cast<uint64_t>(id);
      T value{};
      if (place < limit) [[likely]] {
        std::memcpy(&value, from + i * from_step + static_cast<int64_t>(place) * step,
                    sizeof value);
      } else {
        good = good && is_padding(id);
      }
      std::memcpy(to + i * to_step, &value, sizeof value);
    }
  }
  return good;
}

template <class T, class Id>
bool gather_all(const Strips& strips, uint64_t limit) {
  std::atomic<bool> good{true};
  strips.for_each(true, [&](const Strip& s) {
    const bool here = s.is_dense<T, Id>() ? gather_strip<T, Id, true>(s, limit)
                                          : gather_strip<T, Id, false>(s, limit);
    if (!here) good.store(false, std::memory_order_relaxed);
  });
  return good.load();
}

}  // namespace

void CpuBackend::gather(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  if (out.layout.elems() == 0) return;
  const Strips strips(out, in, ids, dim);
  const bool good = with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const uint64_t limit = id_limit<Id>(in.layout.shape()[dim]);
    switch (info(in.dtype).block_bytes) {
      case 1:
        return gather_all<uint8_t, Id>(strips, limit);
      case 2:
        return gather_all<uint16_t, Id>(strips, limit);
      case 4:
        return gather_all<uint32_t, Id>(strips, limit);
      default:
        return gather_all<uint64_t, Id>(strips, limit);
    }
  });
  if (!good) fail_id(Op::gather, ids, in, dim);
}

}  // namespace wick::cpu
