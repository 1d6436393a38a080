// scatter_add of 16- and 8-bit floats: every sum is kept in f32 until its last element is added. If
// a row has many ids, all elements that they may choose are held in f32. If it has few, they are
// sorted by the index that they name, and the elements of each index are added one after another.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "wick/backend/cpu/index/scatter_strip.h"
#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/math/half.h"

namespace wick::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kTile = 512;

/// Converts n strided elements to dense floats, or back.
class Converter {
 public:
  Converter(DType dtype, Isa isa) : bytes_(info(dtype).block_bytes) {
    const CastKernels& casts = WICK_SELECT_KERNELS(isa, cast_kernels, no_dots);
    widen_ = casts.run[static_cast<int>(dtype)][static_cast<int>(DType::f32)];
    narrow_ = casts.run[static_cast<int>(DType::f32)][static_cast<int>(dtype)];
  }
  void widen(float* to, const char* from, int64_t stride, int64_t n) const {
    char* const at[] = {reinterpret_cast<char*>(to), const_cast<char*>(from)};
    const int64_t strides[] = {kFloat, stride}, sizes[] = {kFloat, bytes_};
    run_dense<2>(n, at, strides, sizes, false,
                 [&](int64_t m, char* const* p, bool) { widen_(m, p[0], p[1], false); });
  }
  void narrow(char* to, int64_t stride, const float* from, int64_t n) const {
    char* const at[] = {to, reinterpret_cast<char*>(const_cast<float*>(from))};
    const int64_t strides[] = {stride, kFloat}, sizes[] = {bytes_, kFloat};
    run_dense<2>(n, at, strides, sizes, false,
                 [&](int64_t m, char* const* p, bool) { narrow_(m, p[0], p[1], false); });
  }

 private:
  int64_t bytes_;
  CastKernel widen_, narrow_;
};

/// Rows one after another, with the thread's share of a row's output in f32.
template <class Id>
void add_lines(const Strip& s, const Converter& convert, Share share) {
  const auto count = static_cast<int64_t>(share.count);
  const auto sums = std::make_unique_for_overwrite<float[]>(share.count);
  alignas(64) float tile[kTile];
  for (int64_t o = 0; o < s.outer; ++o) {
    char* const places = s.chosen + o * s.outer_step.chosen;
    convert.widen(sums.get(), places, s.step, count);
    for (int64_t i = 0; i < s.inner; i += kTile) {
      Strip piece = s;
      piece.outer = 1, piece.inner = std::min(kTile, s.inner - i);
      convert.widen(tile, s.walked + o * s.outer_step.walked + i * s.inner_step.walked,
                    s.inner_step.walked, piece.inner);
      piece.walked = reinterpret_cast<char*>(tile);
      piece.chosen = reinterpret_cast<char*>(sums.get());
      piece.ids = s.ids + o * s.outer_step.ids + i * s.inner_step.ids;
      piece.inner_step.walked = piece.step = kFloat;
      scatter_strip<float, Id, true>(piece, share);
    }
    convert.narrow(places, s.step, sums.get(), count);
  }
}

/// Neighbouring columns: for every index of the share, a row of them in f32.
template <class Id>
void add_columns(const Strip& s, const Converter& convert, Share share) {
  const auto count = static_cast<int64_t>(share.count);
  const auto sums = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count * s.inner));
  const auto tile = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(s.inner));
  for (int64_t p = 0; p < count; ++p) {
    convert.widen(&sums[static_cast<size_t>(p * s.inner)], s.chosen + p * s.step,
                  s.inner_step.chosen, s.inner);
  }
  Strip piece = s;
  piece.outer = 1;
  piece.outer_step = {};
  piece.walked = reinterpret_cast<char*>(tile.get());
  piece.chosen = reinterpret_cast<char*>(sums.get());
  piece.inner_step.walked = piece.inner_step.chosen = kFloat;
  piece.step = s.inner * kFloat;
  for (int64_t o = 0; o < s.outer; ++o) {
    prefetch_row_ahead(s, o);
    convert.widen(tile.get(), s.walked + o * s.outer_step.walked, s.inner_step.walked, s.inner);
    piece.ids = s.ids + o * s.outer_step.ids;
    scatter_strip<float, Id, true>(piece, share);
  }
  for (int64_t p = 0; p < count; ++p) {
    convert.narrow(s.chosen + p * s.step, s.inner_step.chosen,
                   &sums[static_cast<size_t>(p * s.inner)], s.inner);
  }
}

/// One row with few ids, sorted by the index that they name.
template <class S, class Id>
void add_few(const char* walked, int64_t walked_step, char* chosen, int64_t step, const char* ids,
             int64_t id_step, int64_t n, Share share,
             std::vector<std::pair<uint64_t, int64_t>>& order) {
  order.clear();
  for (int64_t i = 0; i < n; ++i) {
    Id id;
    std::memcpy(&id, ids + i * id_step, sizeof id);
    const uint64_t place = static_cast<uint64_t>(id) - share.first;
    if (place < share.count) order.emplace_back(place, i);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size();) {
    const uint64_t place = order[i].first;
    char* const at = chosen + static_cast<int64_t>(place) * step;
    S element;
    std::memcpy(&element, at, sizeof element);
    float sum = math::to_f32(element);
    for (; i < order.size() && order[i].first == place; ++i) {
      std::memcpy(&element, walked + order[i].second * walked_step, sizeof element);
      sum = sum + math::to_f32(element);
    }
    element = math::from_f32<S>(sum);
    std::memcpy(at, &element, sizeof element);
  }
}

/// All rows of a strip, along either of its loops.
template <class S, class Id>
void add_few_lines(const Strip& s, bool along, Share share) {
  const int64_t lines = along ? s.outer : s.inner, n = along ? s.inner : s.outer;
  const Strip::Steps next = along ? s.outer_step : s.inner_step;
  const Strip::Steps step = along ? s.inner_step : s.outer_step;
  std::vector<std::pair<uint64_t, int64_t>> order;
  for (int64_t line = 0; line < lines; ++line) {
    add_few<S, Id>(s.walked + line * next.walked, step.walked, s.chosen + line * next.chosen,
                   s.step, s.ids + line * next.ids, step.ids, n, share, order);
  }
}

}  // namespace

void add_narrow(const Strip& s, bool along, DType dtype, DType id_type, Share share, Isa isa) {
  if (share.count == 0) return;
  const int64_t n = along ? s.inner : s.outer;
  with_id_type(id_type, [&](auto zero) {
    using Id = decltype(zero);
    if (static_cast<uint64_t>(n) <= share.count / 8) {
      if (dtype == DType::f16) return add_few_lines<math::f16, Id>(s, along, share);
      if (dtype == DType::bf16) return add_few_lines<math::bf16, Id>(s, along, share);
      return add_few_lines<math::f8e4m3, Id>(s, along, share);
    }
    const Converter convert(dtype, isa);
    along ? add_lines<Id>(s, convert, share) : add_columns<Id>(s, convert, share);
  });
}

}  // namespace wick::cpu
