#pragma once

// Scalar instructions from functions: parameters are the sources in order, a last `uint32_t& scc`
// where the instruction reads or writes it; the result goes to the destination.

#include <array>

#include "emu/exec/lowering.h"
#include "emu/exec/track.h"
#include "emu/exec/values.h"

namespace emu {
namespace {

template <class T>
inline constexpr bool kIsScc = std::is_same_v<T, uint32_t&>;

template <auto F>
constexpr int scalar_sources() {
  using S = SignatureOf<F>;
  if constexpr (S::kCount == 0) {
    return 0;
  } else {
    return kIsScc<typename S::template Arg<S::kCount - 1>> ? S::kCount - 1 : S::kCount;
  }
}

template <class T>
EMU_INLINE T scalar_source(Wave* w, uint32_t offset) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(uint64_t{at<uint32_t>(w, offset + 4)} << 32 | at<uint32_t>(w, offset));
  } else {
    return static_cast<T>(at<uint32_t>(w, offset));
  }
}

/// Of logic or a shift: whether the result's dwords are known though some of a source's aren't.
/// They are where those as zeros and as ones give the same.
template <auto F>
void known_dwords(Wave* w, const Op* op, bool& low_known, bool& known) {
  using S = SignatureOf<F>;
  using A = typename S::template Arg<0>;
  using B = typename S::template Arg<1>;
  const auto unknown_bits = [&](uint32_t offset, size_t dwords) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < dwords; ++i) {
      if (!pass_scalar(w, op, offset + 4 * i, 1)) bits |= uint64_t{0xffffffff} << (32 * i);
    }
    return bits;
  };
  const uint64_t of_a = unknown_bits(op->a, sizeof(A) / 4);
  const uint64_t of_b = unknown_bits(op->b, sizeof(B) / 4);
  if (of_a != 0 && of_b != 0) return;
  const auto a = static_cast<uint64_t>(scalar_source<A>(w, op->a));
  const auto b = static_cast<uint64_t>(scalar_source<B>(w, op->b));
  uint32_t scc = 0;
  const auto zeros =
      static_cast<uint64_t>(F(static_cast<A>(a & ~of_a), static_cast<B>(b & ~of_b), scc));
  const auto ones =
      static_cast<uint64_t>(F(static_cast<A>(a | of_a), static_cast<B>(b | of_b), scc));
  low_known = ((zeros ^ ones) & 0xffffffff) == 0;
  known = (zeros ^ ones) >> 32 == 0;
}

/// What a scalar instruction's sources say of its result.
struct KnownResult {
  bool low = true, high = true;  // dwords
};

/// kBits: logic and shifts. Of those and of moves a result is unknown where a source is; everything
/// else that reads what was never written is a mistake at once.
template <auto F, bool kBits>
EMU_INLINE KnownResult scalar_known(Wave* w, const Op* op) {
  using S = SignatureOf<F>;
  constexpr int kSources = scalar_sources<F>();
  // Functions save registers that their callers may never have written.
  constexpr bool kPasses = (kBits || kSources == S::kCount) && !std::is_void_v<typename S::Result>;
  const bool to_exec = is_sgpr(op->dst) && op->dst >= sgpr_offset(kExec);
  bool known = true;
  const auto note = [&](uint32_t offset, uint32_t dwords) {
    if (kPasses && !to_exec) {
      known &= pass_scalar(w, op, offset, dwords);
    } else {
      read_scalar(w, op, offset, dwords);
    }
  };
  if constexpr (kSources > 0) note(op->a, sizeof(typename S::template Arg<0>) / 4);
  if constexpr (kSources > 1) note(op->b, sizeof(typename S::template Arg<1>) / 4);
  if constexpr (kSources > 2) note(op->c, sizeof(typename S::template Arg<2>) / 4);
  KnownResult result{known, known};
  if constexpr (kBits) {
    // Compilers let a mask of lanes begin as anything: with EXEC in it the lanes that count are
    // known.
    const bool of_exec = op->a == sgpr_offset(kExec) || op->b == sgpr_offset(kExec);
    if (of_exec) return {};
    if (!known) known_dwords<F>(w, op, result.low, result.high);
  }
  return result;
}

/// Calls use(sources...).
template <auto F, class Use>
EMU_INLINE auto with_sources(Wave* w, const Op* op, const Use& use) {
  using S = SignatureOf<F>;
  constexpr int kSources = scalar_sources<F>();
  if constexpr (kSources == 0) {
    return use();
  } else if constexpr (kSources == 1) {
    return use(scalar_source<typename S::template Arg<0>>(w, op->a));
  } else if constexpr (kSources == 2) {
    return use(scalar_source<typename S::template Arg<0>>(w, op->a),
               scalar_source<typename S::template Arg<1>>(w, op->b));
  } else {
    return use(scalar_source<typename S::template Arg<0>>(w, op->a),
               scalar_source<typename S::template Arg<1>>(w, op->b),
               scalar_source<typename S::template Arg<2>>(w, op->c));
  }
}

/// An instruction with SCC, which may be unknown: it decides where the result or the new SCC depends
/// on it; it stays unknown where the instruction leaves it alone.
template <auto F>
void meet_unknown_scc(Wave* w, const Op* op) {
  bool matters = false, stays = false;
  with_sources<F>(w, op, [&](auto... sources) {
    uint32_t of_zero = 0, of_one = 1;
    if constexpr (std::is_void_v<typename SignatureOf<F>::Result>) {
      F(sources..., of_zero);
      F(sources..., of_one);
    } else {
      matters = F(sources..., of_zero) != F(sources..., of_one);
    }
    stays = of_zero != of_one;
  });
  if (matters) unknown_scc(w, op);
  w->track->scc_known = !stays;
}

template <auto F, bool kBits = false>
Stop scalar(Wave* w, const Op* op) {
  using S = SignatureOf<F>;
  constexpr bool kWithScc = scalar_sources<F>() < S::kCount;
  KnownResult known;
  if constexpr (kChecked) {
    known = scalar_known<F, kBits>(w, op);
    if constexpr (kBits) {
      w->track->scc_known = known.low && known.high;
    } else if constexpr (kWithScc) {
      if (!w->track->scc_known) [[unlikely]]
        meet_unknown_scc<F>(w, op);
    }
  }
  const auto result = [&] {
    return with_sources<F>(w, op, [&](auto... sources) {
      if constexpr (kWithScc) {
        return F(sources..., w->scc);
      } else {
        return F(sources...);
      }
    });
  };
  if constexpr (std::is_void_v<typename S::Result>) {
    result();
  } else {
    const auto value = result();
    write_scalar(w, op, op->dst, 1, known.low);
    at<uint32_t>(w, op->dst) = static_cast<uint32_t>(value);
    if constexpr (sizeof(value) == 8) {
      write_scalar(w, op, op->dst + 4, 1, known.high);
      at<uint32_t>(w, op->dst + 4) = static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32);
    }
  }
  EMU_NEXT;
}

template <class T>
constexpr Value scalar_value() {
  if constexpr (std::is_same_v<T, uint64_t>) return Value::u64;
  if constexpr (std::is_same_v<T, int64_t>) return Value::b64;
  return Value::b32;
}

template <auto F, bool kAccumulate, bool kBits = false>
void lower_scalar(Lowering& l, const Inst& inst) {
  using S = SignatureOf<F>;
  constexpr int kSources = scalar_sources<F>();
  constexpr size_t kResults = std::is_void_v<typename S::Result> ? 0 : 1;
  const auto values = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<Value, kSources>{scalar_value<typename S::template Arg<I>>()...};
  }
  (std::make_integer_sequence<int, kSources>());
  Op& op = l.place_scalar(inst, {.results = kResults, .accumulate = kAccumulate}, values);
  op.fn = &scalar<F, kBits>;
  const uint32_t from[] = {op.a, op.b, op.c};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (l.access(from[I], sizeof(typename S::template Arg<I>) / 4, Access::Kind::read), ...);
  }
  (std::make_integer_sequence<int, kSources>());
  if constexpr (kResults == 1) {
    constexpr uint32_t kDwords = sizeof(typename S::Result) / 4;
    if (op.dst + 4 * kDwords > sgpr_offset(kExec) && is_sgpr(op.dst)) return;  // EXEC changes
    l.access(op.dst, kDwords, Access::Kind::write);
  }
  l.only_computes();
}

template <auto F>
constexpr Row sop(const char* name) {
  return {name, &lower_scalar<F, false>};
}
/// Logic and shifts: an unknown bit makes the result unknown, and is no mistake yet.
template <auto F>
constexpr Row sop_bits(const char* name) {
  return {name, &lower_scalar<F, false, true>};
}
/// The destination is also the last source.
template <auto F>
constexpr Row sop_accumulate(const char* name) {
  return {name, &lower_scalar<F, true>};
}

}  // namespace
}  // namespace emu
