#pragma once

// Builds scalar instructions from functions. The parameters are the sources in order, followed by
// `uint32_t& scc` if the instruction reads or writes SCC. The result goes to the destination.

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

/// Returns the bits of a source that are unknown.
template <class T>
EMU_INLINE uint64_t unknown_bits(Wave* w, const Op* op, uint32_t offset) {
  uint64_t known = uint64_t{~0u} << 32 | known_bits(w, op, offset);
  if constexpr (sizeof(T) == 8) {
    known = uint64_t{known_bits(w, op, offset + 4)} << 32 | (known & ~0u);
  }
  return ~known;
}

/// Returns the bits of the result that are known, for logic, shifts and moves. A bit is known if it
/// is the same whether the unknown source bits are zeros or ones.
template <auto F>
uint64_t result_bits(Wave* w, const Op* op, uint64_t of_a, uint64_t of_b) {
  using S = SignatureOf<F>;
  using A = typename S::template Arg<0>;
  const auto a = static_cast<uint64_t>(scalar_source<A>(w, op->a));
  uint32_t scc = 0;
  if constexpr (scalar_sources<F>() == 1) {
    const auto result = [&](uint64_t x) {
      if constexpr (S::kCount == 1) {
        return static_cast<uint64_t>(F(static_cast<A>(x)));
      } else {
        return static_cast<uint64_t>(F(static_cast<A>(x), scc));
      }
    };
    return ~(result(a & ~of_a) ^ result(a | of_a));
  } else {
    using B = typename S::template Arg<1>;
    const auto b = static_cast<uint64_t>(scalar_source<B>(w, op->b));
    const auto result = [&](uint64_t x, uint64_t y) {
      return static_cast<uint64_t>(F(static_cast<A>(x), static_cast<B>(y), scc));
    };
    const uint64_t first = result(a & ~of_a, b & ~of_b);
    // Both sources are one register: their unknown bits are the same, as in s_xor_b32 s0, s0, s0.
    if (op->a == op->b) return ~(first ^ result(a | of_a, b | of_b));
    return ~((first ^ result(a | of_a, b & ~of_b)) | (first ^ result(a & ~of_a, b | of_b)) |
             (first ^ result(a | of_a, b | of_b)));
  }
}

/// Returns the bits of the result that are known. kBits: for logic, shifts and moves, a result bit
/// is unknown if unknown source bits decide it. For other functions without SCC, the whole result
/// is unknown if a source is: functions save registers that their callers may never have written.
/// For other functions with SCC, an unknown source is reported at once.
template <auto F, bool kBits>
EMU_INLINE uint64_t scalar_known(Wave* w, const Op* op) {
  using S = SignatureOf<F>;
  constexpr int kSources = scalar_sources<F>();
  const bool to_exec = is_sgpr(op->dst) && op->dst >= sgpr_offset(kExec);
  if constexpr (kBits) {
    const uint64_t of_a = unknown_bits<typename S::template Arg<0>>(w, op, op->a);
    uint64_t of_b = 0;
    if constexpr (kSources > 1) of_b = unknown_bits<typename S::template Arg<1>>(w, op, op->b);
    if ((of_a | of_b) == 0) [[likely]]
      return ~uint64_t{0};
    uint64_t known = result_bits<F>(w, op, of_a, of_b);
    if (sizeof(typename S::Result) == 4) known |= uint64_t{~0u} << 32;
    if (to_exec && known != ~uint64_t{0}) unknown_scalar(w, op, (of_a != 0 ? op->a : op->b) / 4);
    return known;
  }
  constexpr bool kPasses = kSources == S::kCount && !std::is_void_v<typename S::Result>;
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
  return known ? ~uint64_t{0} : 0;
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

/// Runs an instruction that reads SCC while SCC is unknown. Reports it if the result or the new SCC
/// depends on the old one. SCC stays unknown if the instruction doesn't change it.
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
  uint64_t known = ~uint64_t{0};
  if constexpr (kChecked) {
    known = scalar_known<F, kBits>(w, op);
    if constexpr (!kBits && kWithScc) {
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
    if constexpr (kChecked && kBits && kWithScc) {  // SCC: whether a bit is set
      w->track->scc_known = known == ~uint64_t{0} || (static_cast<uint64_t>(value) & known) != 0;
    }
    write_bits(w, op->dst, static_cast<uint32_t>(known));
    at<uint32_t>(w, op->dst) = static_cast<uint32_t>(value);
    if constexpr (sizeof(value) == 8) {
      write_bits(w, op->dst + 4, static_cast<uint32_t>(known >> 32));
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
  if constexpr (kSources < S::kCount) l.access(kSccOffset, 1, Access::Kind::read);
  if constexpr (kResults == 1) {
    constexpr uint32_t kDwords = sizeof(typename S::Result) / 4;
    if (op.dst + 4 * kDwords > sgpr_offset(kExec) && is_sgpr(op.dst)) return;  // it changes EXEC
    l.access(op.dst, kDwords, Access::Kind::write);
  }
  l.only_computes();
}

template <auto F>
constexpr Row sop(const char* name) {
  return {name, &lower_scalar<F, false>};
}
/// A row of logic or shifts: an unknown source bit makes result bits unknown without a report.
template <auto F>
constexpr Row sop_bits(const char* name) {
  return {name, &lower_scalar<F, false, true>};
}
/// A row whose destination is also the last source.
template <auto F>
constexpr Row sop_accumulate(const char* name) {
  return {name, &lower_scalar<F, true>};
}

}  // namespace
}  // namespace emu
