// gather: out[.., i, ..] = in[.., ids[.., i, ..], ..]. Moves elements of 1, 2, 4 or 8 bytes. Reads
// ids once and checks them on the way: on an error, the output is discarded.

#include <atomic>
#include <cstring>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/index/ids.h"
#include "wick/backend/cpu/index/near_columns.h"
#include "wick/backend/cpu/loops.h"

namespace wick::cpu {
namespace {

/// Copies one cache line to an aligned address with non-temporal stores.
void stream_line(char* to, const void* from) {
#if defined(__x86_64__)
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i,
                     _mm_load_si128(static_cast<const __m128i*>(from) + i));
  }
#else
  std::memcpy(to, from, 64);
#endif
}

/// The element that an id names, or 0. `good` becomes false if the id is neither valid nor padding.
template <class T, class Id>
inline T pick(const char* ids, const char* from, int64_t step, uint64_t limit, bool& good) {
  Id id;
  std::memcpy(&id, ids, sizeof id);
  const auto place = static_cast<uint64_t>(id);
  T value{};
  if (place < limit) [[likely]] {
    std::memcpy(&value, from + static_cast<int64_t>(place) * step, sizeof value);
  } else {
    good = good && is_padding(id);
  }
  return value;
}

/// False if an id was neither below the limit nor padding.
template <class T, class Id>
bool gather_strided(const Strip& s, uint64_t limit) {
  bool good = true;
  const Strip::Steps inner = s.inner_step;
  const int64_t n = s.inner, step = s.step;
  for (int64_t o = 0; o < s.outer; ++o) {
    char* to = s.walked + o * s.outer_step.walked;
    const char* from = s.chosen + o * s.outer_step.chosen;
    const char* ids = s.ids + o * s.outer_step.ids;
    prefetch_row_ahead(s, o);
    for (int64_t i = 0; i < n; ++i) {
      const T value = pick<T, Id>(ids, from, step, limit, good);
      std::memcpy(to, &value, sizeof value);
      to += inner.walked, from += inner.chosen, ids += inner.ids;
    }
  }
  return good;
}

/// Gathers from dense rows along the dim, a cache line at a time. Elements are read out of order,
/// so the elements of the next row are prefetched in order, and ids further ahead.
template <class T, class Id>
bool gather_dense(const Strip& s, uint64_t limit, bool stream) {
  constexpr int64_t kLine = 64 / sizeof(T), kSize = sizeof(T), kId = sizeof(Id);
  bool good = true;
  const int64_t n = s.inner;
  for (int64_t o = 0; o < s.outer; ++o) {
    char* const to = s.walked + o * s.outer_step.walked;
    const char* const from = s.chosen + o * s.outer_step.chosen;
    const char* const ids = s.ids + o * s.outer_step.ids;
    const char* const next = o + 1 < s.outer ? from + s.outer_step.chosen : from;
    const bool around = stream && reinterpret_cast<uintptr_t>(to) % 64 == 0;
    int64_t i = 0;
    for (; i + kLine <= n; i += kLine) {
      __builtin_prefetch(next + i * kSize);
      prefetch_ahead(ids + i * kId, kLine * kId);
      alignas(64) T line[kLine];
      for (int64_t j = 0; j < kLine; ++j) {
        line[j] = pick<T, Id>(ids + (i + j) * kId, from, kSize, limit, good);
      }
      if (around) {
        stream_line(to + i * kSize, line);
      } else {
        std::memcpy(to + i * kSize, line, 64);
      }
    }
    for (; i < n; ++i) {
      const T value = pick<T, Id>(ids + i * kId, from, kSize, limit, good);
      std::memcpy(to + i * kSize, &value, sizeof value);
    }
  }
  if (stream) stream_fence();
  return good;
}

template <class T, class Id>
bool gather_strip(const Strip& s, uint64_t limit, bool stream) {
  if (s.is_dense<T, Id>()) return gather_dense<T, Id>(s, limit, stream);
  if (!NearColumns<T>::pay(s, limit)) return gather_strided<T, Id>(s, limit);
  const NearColumns<T> columns(s, limit);
  return gather_strided<T, Id>(columns.strip(), limit);
}

template <class T, class Id>
bool gather_all(const Strips& strips, uint64_t limit, bool stream) {
  std::atomic<bool> good{true};
  strips.for_each(true, [&](const Strip& s) {
    if (!gather_strip<T, Id>(s, limit, stream)) good.store(false, std::memory_order_relaxed);
  });
  return good.load();
}

}  // namespace

void CpuBackend::gather(const View& out, const ConstView& in, const ConstView& ids, int dim) {
  if (out.layout.elems() == 0) return;
  const Strips strips(out, in, ids, dim);
  const bool stream = bytes_of(out.dtype, out.layout.elems()) >= stream_threshold_bytes();
  const bool good = with_id_type(ids.dtype, [&](auto zero) {
    using Id = decltype(zero);
    const uint64_t limit = id_limit<Id>(in.layout.shape()[dim]);
    switch (info(in.dtype).block_bytes) {
      case 1:
        return gather_all<uint8_t, Id>(strips, limit, stream);
      case 2:
        return gather_all<uint16_t, Id>(strips, limit, stream);
      case 4:
        return gather_all<uint32_t, Id>(strips, limit, stream);
      default:
        return gather_all<uint64_t, Id>(strips, limit, stream);
    }
  });
  if (!good) fail_id(Op::gather, ids, in, dim);
}

}  // namespace wick::cpu
