// All 100 casts, as a widening to one of four types (f32 f64 i32 i64: exact) and a conversion from
// there that rounds once. A run goes through tiles: gather, widen, convert, scatter, each step only
// where it is needed. Moves n·(size in + size out) bytes.

#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/tile.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::i16, math::i32, math::i64, math::u16, math::u32, math::u64, math::u8;

constexpr int64_t kElems = 512;  // of a tile

/// n elements, dense; arrays don't overlap.
using Convert = void (*)(void* to, const void* from, int64_t n);

template <class To, class From>
void convert(void* to_memory, const void* from_memory, int64_t n) {
  To* __restrict to = static_cast<To*>(to_memory);
  const From* __restrict from = static_cast<const From*>(from_memory);
  int64_t i = 0;
  if constexpr (math::kSame<To, f16> && math::kSame<From, float>) {
    i = n / 16 * 16;
    narrow(to, from, i);
  }
  if constexpr (math::kSame<To, float> && math::kSame<From, f16>) {
    i = n / 16 * 16;
    widen(to, from, i);
  }
  for (; i < n; ++i) to[i] = math::cast<To>(from[i]);
}

/// The type that holds every value of a dtype and from which its casts are made.
enum class Via : uint8_t { real32, real64, whole32, whole64 };
constexpr Via via(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return Via::real64;
    case DType::u8:
    case DType::i16:
    case DType::i32:
      return Via::whole32;
    case DType::u32:
    case DType::i64:
      return Via::whole64;
    default:
      return Via::real32;
  }
}

/// Null where a dtype is already its wide type.
constexpr Convert widening(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return convert<i32, u8>;
    case DType::i16:
      return convert<i32, i16>;
    case DType::u32:
      return convert<i64, u32>;
    case DType::bf16:
      return convert<float, bf16>;
    case DType::f16:
      return convert<float, f16>;
    case DType::f8e4m3:
      return convert<float, f8e4m3>;
    default:
      return nullptr;
  }
}

struct ConvertTable {
  Convert widen[kRealDTypeCount];
  Convert from[4][kRealDTypeCount];
};
template <DType kDType>
constexpr void add_target(ConvertTable& table) {
  if constexpr (!is_block(kDType)) {
    using To = Storage<kDType>;
    constexpr int kTo = static_cast<int>(kDType);
    table.from[static_cast<int>(Via::real32)][kTo] = convert<To, float>;
    table.from[static_cast<int>(Via::real64)][kTo] = convert<To, double>;
    table.from[static_cast<int>(Via::whole32)][kTo] = convert<To, i32>;
    table.from[static_cast<int>(Via::whole64)][kTo] = convert<To, i64>;
  }
}
constexpr ConvertTable make_converts() {
  ConvertTable table{};
  for (int d = 0; d < kRealDTypeCount; ++d) table.widen[d] = widening(static_cast<DType>(d));
#define WICK_DTYPE(dtype, ...) add_target<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}
constexpr ConvertTable kConverts = make_converts();

constexpr bool complete() {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    for (const auto& row : kConverts.from) {
      if (row[d] == nullptr) return false;
    }
  }
  return true;
}
static_assert(complete());

void gather_bytes(void* to, const char* from, int64_t stride, int64_t n, int64_t size) {
  switch (size) {
    case 1:
      return gather(static_cast<u8*>(to), from, stride, n);
    case 2:
      return gather(static_cast<u16*>(to), from, stride, n);
    case 4:
      return gather(static_cast<u32*>(to), from, stride, n);
    default:
      return gather(static_cast<u64*>(to), from, stride, n);
  }
}
void scatter_bytes(char* to, int64_t stride, const void* from, int64_t n, int64_t size) {
  switch (size) {
    case 1:
      return scatter(to, stride, static_cast<const u8*>(from), n);
    case 2:
      return scatter(to, stride, static_cast<const u16*>(from), n);
    case 4:
      return scatter(to, stride, static_cast<const u32*>(from), n);
    default:
      return scatter(to, stride, static_cast<const u64*>(from), n);
  }
}

constexpr int64_t size_of(DType dtype) {
  constexpr int64_t kSizes[] = {
#define WICK_DTYPE(dtype, elems, bytes, kind) bytes,
#include "wick/base/dtypes.def"
  };
  return kSizes[static_cast<int>(dtype)];
}

/// Element i of the run: in + i·in_stride → out + i·out_stride.
void cast_run(int64_t n, char* out, int64_t out_stride, const char* in, int64_t in_stride, DType to,
              DType from, bool stream) {
  const Convert widen_step = kConverts.widen[static_cast<int>(from)];
  const Via wide_type = via(from);
  // A target that is the wide type itself needs no second step.
  constexpr DType kWide[] = {DType::f32, DType::f64, DType::i32, DType::i64};
  const bool widen_only = widen_step != nullptr && to == kWide[static_cast<int>(wide_type)];
  const Convert convert_step =
      widen_only ? widen_step : kConverts.from[static_cast<int>(wide_type)][static_cast<int>(to)];
  const int64_t in_size = size_of(from), out_size = size_of(to);
  const bool direct = out_stride == out_size && !stream;
  alignas(64) char raw[kElems * 8];
  alignas(64) char wide[kElems * 8];
  alignas(64) char result[kElems * 8];
  while (n > 0) {
    const int64_t m = n < kElems ? n : kElems;
    const void* source = in;
    if (in_stride != in_size) {
      gather_bytes(raw, in, in_stride, m, in_size);
      source = raw;
    }
    if (widen_step != nullptr && !widen_only) {
      widen_step(wide, source, m);
      source = wide;
    }
    convert_step(direct ? out : result, source, m);
    if (!direct && out_stride == out_size) {
      stream_bytes(out, result, m * out_size);
    } else if (!direct) {
      scatter_bytes(out, out_stride, result, m, out_size);
    }
    n -= m;
    in += m * in_stride;
    out += m * out_stride;
  }
  if (stream) stream_fence();
}

}  // namespace

constexpr CastKernels cast_kernels = {cast_run};

}  // namespace wick::cpu::WICK_ISA
