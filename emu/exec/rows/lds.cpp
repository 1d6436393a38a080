// LDS: loads, stores and atomics.

#include "emu/exec/address.h"
#include "emu/exec/atomics.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE char* lds_base(Wave* w) { return reinterpret_cast<char*>(w->lds); }

/// The LDS addresses of the lanes' elements. The sum of register and offset wraps at 32 bits:
/// compilers rely on it, with negative registers and offsets that compensate them. The addresses
/// are copied because their register may be the destination.
struct LaneAddresses {
  uint32_t at[kLanes];

  [[gnu::always_inline]] LaneAddresses(Wave* w, const Op* op, int half, uint32_t offset) {
    const U32 sum = load_dword(w, op->a, true, half) + offset;
    std::memcpy(at, &sum, sizeof at);
  }
};

EMU_INLINE int halves(const Wave* w) { return w->lanes == 64 ? 2 : 1; }

template <class Format>
Stop load(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    read_vector(w, op, op->a, 1, half, w->s[kExec + half], true);
    const LaneAddresses addresses(w, op, half, op->imm2);
    load_half<Format, Lds>(w, op, lds_base(w), addresses.at, w->s[kExec + half],
                           half_of(w, op->dst, half));
  }
  load_issued(w, op, op->dst, Format::kRegisters, kLds);
  EMU_NEXT;
}

template <class Format>
Stop store(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    read_vector(w, op, op->a, 1, half, w->s[kExec + half], true);
    read_vector(w, op, op->b, Format::kRegisters, half, w->s[kExec + half]);
    const LaneAddresses addresses(w, op, half, op->imm2);
    store_half<Format, Lds>(w, op, lds_base(w), addresses.at, w->s[kExec + half],
                            half_of(w, op->b, half));
  }
  store_issued(w, kLds);
  EMU_NEXT;
}

/// Loads two elements at two offsets.
template <class Format>
Stop load_two(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    read_vector(w, op, op->a, 1, half, w->s[kExec + half], true);
    const LaneAddresses first(w, op, half, op->imm2);
    const LaneAddresses second(w, op, half, static_cast<uint32_t>(op->imm));
    char* to = half_of(w, op->dst, half);
    const LaneMask enabled = w->s[kExec + half];
    load_half<Format, Lds>(w, op, lds_base(w), first.at, enabled, to);
    load_half<Format, Lds>(w, op, lds_base(w), second.at, enabled, to + 128 * Format::kRegisters);
  }
  load_issued(w, op, op->dst, 2 * Format::kRegisters, kLds);
  EMU_NEXT;
}

template <class Format>
Stop store_two(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    read_vector(w, op, op->a, 1, half, w->s[kExec + half], true);
    read_vector(w, op, op->b, Format::kRegisters, half, w->s[kExec + half]);
    read_vector(w, op, op->c, Format::kRegisters, half, w->s[kExec + half]);
    const LaneAddresses first(w, op, half, op->imm2);
    const LaneAddresses second(w, op, half, static_cast<uint32_t>(op->imm));
    const LaneMask enabled = w->s[kExec + half];
    store_half<Format, Lds>(w, op, lds_base(w), first.at, enabled, half_of(w, op->b, half));
    store_half<Format, Lds>(w, op, lds_base(w), second.at, enabled, half_of(w, op->c, half));
  }
  store_issued(w, kLds);
  EMU_NEXT;
}

template <class T, auto F, bool kCompare>
Stop atomic(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    read_vector(w, op, op->a, 1, half, w->s[kExec + half], true);
    read_vector(w, op, op->b, sizeof(T) / 4, half, w->s[kExec + half]);
    char* to = op->dst == 0 ? nullptr : half_of(w, op->dst, half);
    const LaneAddresses addresses(w, op, half, op->imm2);
    if (!atomic_half<T, F, kCompare, Lds>(w, op, lds_base(w), addresses.at, w->s[kExec + half],
                                          half_of(w, op->b, half), to)) {
      return Stop::fault;
    }
  }
  if (op->dst != 0)
    load_issued(w, op, op->dst, sizeof(T) / 4, kLds);
  else
    store_issued(w, kLds);
  EMU_NEXT;
}

/// Atomics with two operands: memory becomes F(old, first, second).
template <class T, auto F>
Stop atomic_of_two(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    read_vector(w, op, op->a, 1, half, enabled, true);
    read_vector(w, op, op->b, sizeof(T) / 4, half, enabled);
    read_vector(w, op, op->c, sizeof(T) / 4, half, enabled);
    const LaneAddresses addresses(w, op, half, op->imm2);
    for (LaneMask left = enabled; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      char* memory = lds_base(w) + addresses.at[lane];
      T old{};
      if (Lds::exchangeable(w, op, memory, sizeof(T), lane)) {
        std::memcpy(&old, memory, sizeof old);
        const T now = F(old, read_lane<T>(half_of(w, op->b, half), lane),
                        read_lane<T>(half_of(w, op->c, half), lane));
        std::memcpy(memory, &now, sizeof now);
      }
      if (op->dst != 0) write_lane<T>(half_of(w, op->dst, half), lane, old);
    }
  }
  if (op->dst != 0)
    load_issued(w, op, op->dst, sizeof(T) / 4, kLds);
  else
    store_issued(w, kLds);
  EMU_NEXT;
}

// The first operand of ds_cmpst is the comparand, the second the new value.
constexpr auto kCompareFirst = [](auto old, auto compare, auto value) {
  return old == compare ? value : old;
};
constexpr auto kCompareSecond = [](auto old, auto value, auto compare) {
  return old == compare ? value : old;
};
constexpr auto kMaskedOr = [](auto old, auto mask, auto data) { return (old & ~mask) | data; };
constexpr auto kWrap = [](uint32_t old, uint32_t limit, uint32_t otherwise) {
  return old >= limit ? old - limit : old + otherwise;
};

/// Adds the number of enabled lanes to a counter at M0, or subtracts it, once per wave.
template <bool kAppend>
Stop count_lanes(Wave* w, const Op* op) {
  read_scalar(w, op, op->a, 1);
  const uint32_t address = (at<uint32_t>(w, op->a) & 0xffff) + op->imm2;
  char* memory = lds_base(w) + address;
  const uint64_t live = w->lanes == 64 ? w->exec() : w->exec() & 0xffffffff;
  uint32_t old = 0;
  if (live != 0 && Lds::exchangeable(w, op, memory, sizeof old, __builtin_ctzll(live) % kLanes)) {
    std::memcpy(&old, memory, sizeof old);
    const auto lanes = static_cast<uint32_t>(__builtin_popcountll(live));
    const uint32_t now = kAppend ? old + lanes : old - lanes;
    std::memcpy(memory, &now, sizeof now);
  }
  for (int half = 0; half < halves(w); ++half) {
    store_dword(w, op->dst + static_cast<uint32_t>(half) * w->half_bytes, w->s[kExec + half],
                splat<U32>(old));
  }
  load_issued(w, op, op->dst, 1, kLds);
  EMU_NEXT;
}

/// Exchanges two elements at two offsets.
template <class Format, class T>
Stop exchange_two(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    read_vector(w, op, op->a, 1, half, enabled, true);
    read_vector(w, op, op->b, Format::kRegisters, half, enabled);
    read_vector(w, op, op->c, Format::kRegisters, half, enabled);
    const LaneAddresses first(w, op, half, op->imm2);
    const LaneAddresses second(w, op, half, static_cast<uint32_t>(op->imm));
    char* to = half_of(w, op->dst, half);
    // The results may overwrite the second data.
    char saved[sizeof(T) / 4 * 128];
    std::memcpy(saved, half_of(w, op->c, half), sizeof saved);
    if (!atomic_half<T, kSwap, false, Lds>(w, op, lds_base(w), first.at, enabled,
                                           half_of(w, op->b, half), to) ||
        !atomic_half<T, kSwap, false, Lds>(w, op, lds_base(w), second.at, enabled, saved,
                                           to + 128 * Format::kRegisters)) {
      return Stop::fault;
    }
  }
  load_issued(w, op, op->dst, 2 * Format::kRegisters, kLds);
  EMU_NEXT;
}

/// Each dword of the data whose upper bit is set replaces a dword of memory, without that bit.
constexpr auto kConditionalExchange = [](uint64_t old, uint64_t data) {
  uint64_t result = old;
  for (const int shift : {0, 32}) {
    const uint64_t mask = uint64_t{0xffffffff} << shift;
    const uint64_t value = (data >> shift & 0x7fffffff) << shift;
    if ((data >> shift & 0x80000000) != 0) result = (result & ~mask) | value;
  }
  return result;
};

/// Accesses consecutive dwords at M0 and an offset, one for each lane.
template <bool kStore>
Stop by_lane(Wave* w, const Op* op) {
  read_scalar(w, op, op->a, 1);
  const uint32_t first = (at<uint32_t>(w, op->a) & 0xffff) + op->imm2;
  for (int half = 0; half < halves(w); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    uint32_t offsets[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      offsets[lane] = first + 4 * (lane + kLanes * static_cast<uint32_t>(half));
    }
    if constexpr (kStore) {
      read_vector(w, op, op->b, 1, half, enabled);
      store_half<Dwords<1>, Lds>(w, op, lds_base(w), offsets, enabled, half_of(w, op->b, half));
    } else {
      load_half<Dwords<1>, Lds>(w, op, lds_base(w), offsets, enabled, half_of(w, op->dst, half));
    }
  }
  if (kStore)
    store_issued(w, kLds);
  else
    load_issued(w, op, op->dst, 1, kLds);
  EMU_NEXT;
}

uint32_t offset(const Inst& inst) { return static_cast<uint32_t>(inst.modifier("offset")); }

template <class Format>
void lower_load(Lowering& l, const Inst& inst) {  // vdst, vaddr
  if constexpr (!std::is_same_v<Format, typename Format::Clearing>) {
    if (l.traits.loads_clear) return lower_load<typename Format::Clearing>(l, inst);
  }
  Op& op = l.emit(&load<Format>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  op.imm2 = offset(inst);
}

template <class Format>
void lower_store(Lowering& l, const Inst& inst) {  // vaddr, vdata
  Op& op = l.emit(&store<Format>);
  op.a = l.source(inst.operands.at(0), Value::b32);
  op.b = l.source(inst.operands.at(1), Value::b32);
  op.imm2 = offset(inst);
}

/// Offsets count elements, or units of 64 elements.
template <class Format, int kScale>
void two_offsets(const Inst& inst, Op& op) {
  constexpr auto kStep = static_cast<uint32_t>(Format::kBytes * kScale);
  op.imm2 = static_cast<uint32_t>(inst.modifier("offset0")) * kStep;
  op.imm = static_cast<int32_t>(static_cast<uint32_t>(inst.modifier("offset1")) * kStep);
}

template <class Format, int kScale>
void lower_load_two(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&load_two<Format>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  two_offsets<Format, kScale>(inst, op);
}

template <class Format, int kScale>
void lower_store_two(Lowering& l, const Inst& inst) {  // vaddr, vdata0, vdata1
  Op& op = l.emit(&store_two<Format>);
  op.a = l.source(inst.operands.at(0), Value::b32);
  op.b = l.source(inst.operands.at(1), Value::b32);
  op.c = l.source(inst.operands.at(2), Value::b32);
  two_offsets<Format, kScale>(inst, op);
}

template <class T, auto F, bool kReturns>
void lower_atomic(Lowering& l, const Inst& inst) {  // [vdst,] vaddr, vdata
  constexpr size_t kFirst = kReturns ? 1 : 0;
  Op& op = l.emit(&atomic<T, F, false>);
  if (kReturns) op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(kFirst), Value::b32);
  op.b = l.source(inst.operands.at(kFirst + 1), Value::b32);
  op.imm2 = offset(inst);
}

template <class T, auto F, bool kReturns>
void lower_of_two(Lowering& l, const Inst& inst) {  // [vdst,] vaddr, vdata0, vdata1
  constexpr size_t kFirst = kReturns ? 1 : 0;
  Op& op = l.emit(&atomic_of_two<T, F>);
  if (kReturns) op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(kFirst), Value::b32);
  op.b = l.source(inst.operands.at(kFirst + 1), Value::b32);
  op.c = l.source(inst.operands.at(kFirst + 2), Value::b32);
  op.imm2 = offset(inst);
}

template <class Format, class T, int kScale>
void lower_exchange_two(Lowering& l, const Inst& inst) {  // vdst, vaddr, vdata0, vdata1
  Op& op = l.emit(&exchange_two<Format, T>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  op.b = l.source(inst.operands.at(2), Value::b32);
  op.c = l.source(inst.operands.at(3), Value::b32);
  two_offsets<Format, kScale>(inst, op);
}

template <bool kStore>
void lower_by_lane(Lowering& l, const Inst& inst) {  // vdst or vdata
  if (inst.has("gds")) throw NotImplemented("global data share");
  Op& op = l.emit(&by_lane<kStore>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(0));
  op.a = sgpr_offset(kM0);
  op.imm2 = offset(inst);
}

template <bool kAppend>
void lower_count(Lowering& l, const Inst& inst) {  // vdst
  if (inst.has("gds")) throw NotImplemented("global data share");
  Op& op = l.emit(&count_lanes<kAppend>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = sgpr_offset(kM0);
  op.imm2 = offset(inst);
}

#define EMU_DS_LOAD(name, ...) \
  { name, &lower_load<__VA_ARGS__> }
#define EMU_DS_STORE(name, ...) \
  { name, &lower_store<__VA_ARGS__> }
// The names of gfx10 and earlier, followed by those of gfx11 and later.
#define EMU_DS_ATOMIC(name, T, F) \
  {"ds_" name, &lower_atomic<T, F, false>}, { "ds_" name "_rtn", &lower_atomic<T, F, true> }
#define EMU_DS_ATOMICS(base, type32, type64, T32, T64, F)       \
  {"ds_" base "_" type32, &lower_atomic<T32, F, false>},        \
      {"ds_" base "_rtn_" type32, &lower_atomic<T32, F, true>}, \
      {"ds_" base "_" type64, &lower_atomic<T64, F, false>}, {  \
    "ds_" base "_rtn_" type64, &lower_atomic<T64, F, true>      \
  }
#define EMU_DS_OF_TWO(base, type, T, F)                \
  {"ds_" base "_" type, &lower_of_two<T, F, false>}, { \
    "ds_" base "_rtn_" type, &lower_of_two<T, F, true> \
  }

constexpr Row kRows[] = {
    EMU_DS_LOAD("ds_load_u8", Small<uint8_t, 0>),
    EMU_DS_LOAD("ds_read_u8", Small<uint8_t, 0>),
    EMU_DS_LOAD("ds_load_i8", Small<int8_t, 0>),
    EMU_DS_LOAD("ds_read_i8", Small<int8_t, 0>),
    EMU_DS_LOAD("ds_load_u16", Small<uint16_t, 0>),
    EMU_DS_LOAD("ds_read_u16", Small<uint16_t, 0>),
    EMU_DS_LOAD("ds_load_i16", Small<int16_t, 0>),
    EMU_DS_LOAD("ds_read_i16", Small<int16_t, 0>),
    EMU_DS_LOAD("ds_load_u8_d16", Small<uint8_t, 1>),
    EMU_DS_LOAD("ds_read_u8_d16", Small<uint8_t, 1>),
    EMU_DS_LOAD("ds_load_i8_d16", Small<int8_t, 1>),
    EMU_DS_LOAD("ds_read_i8_d16", Small<int8_t, 1>),
    EMU_DS_LOAD("ds_load_u16_d16", Small<uint16_t, 1>),
    EMU_DS_LOAD("ds_read_u16_d16", Small<uint16_t, 1>),
    EMU_DS_LOAD("ds_load_u8_d16_hi", Small<uint8_t, 2>),
    EMU_DS_LOAD("ds_read_u8_d16_hi", Small<uint8_t, 2>),
    EMU_DS_LOAD("ds_load_i8_d16_hi", Small<int8_t, 2>),
    EMU_DS_LOAD("ds_read_i8_d16_hi", Small<int8_t, 2>),
    EMU_DS_LOAD("ds_load_u16_d16_hi", Small<uint16_t, 2>),
    EMU_DS_LOAD("ds_read_u16_d16_hi", Small<uint16_t, 2>),
    EMU_DS_LOAD("ds_load_b32", Dwords<1>),
    EMU_DS_LOAD("ds_read_b32", Dwords<1>),
    EMU_DS_LOAD("ds_load_b64", Dwords<2>),
    EMU_DS_LOAD("ds_read_b64", Dwords<2>),
    EMU_DS_LOAD("ds_load_b96", Dwords<3>),
    EMU_DS_LOAD("ds_read_b96", Dwords<3>),
    EMU_DS_LOAD("ds_load_b128", Dwords<4>),
    EMU_DS_LOAD("ds_read_b128", Dwords<4>),
    EMU_DS_STORE("ds_store_b8", Small<uint8_t, 0>),
    EMU_DS_STORE("ds_write_b8", Small<uint8_t, 0>),
    EMU_DS_STORE("ds_store_b16", Small<uint16_t, 0>),
    EMU_DS_STORE("ds_write_b16", Small<uint16_t, 0>),
    EMU_DS_STORE("ds_store_b8_d16_hi", Small<uint8_t, 2>),
    EMU_DS_STORE("ds_write_b8_d16_hi", Small<uint8_t, 2>),
    EMU_DS_STORE("ds_store_b16_d16_hi", Small<uint16_t, 2>),
    EMU_DS_STORE("ds_write_b16_d16_hi", Small<uint16_t, 2>),
    EMU_DS_STORE("ds_store_b32", Dwords<1>),
    EMU_DS_STORE("ds_write_b32", Dwords<1>),
    EMU_DS_STORE("ds_store_b64", Dwords<2>),
    EMU_DS_STORE("ds_write_b64", Dwords<2>),
    EMU_DS_STORE("ds_store_b96", Dwords<3>),
    EMU_DS_STORE("ds_write_b96", Dwords<3>),
    EMU_DS_STORE("ds_store_b128", Dwords<4>),
    EMU_DS_STORE("ds_write_b128", Dwords<4>),
    {"ds_load_2addr_b32", &lower_load_two<Dwords<1>, 1>},
    {"ds_load_2addr_b64", &lower_load_two<Dwords<2>, 1>},
    {"ds_load_2addr_stride64_b32", &lower_load_two<Dwords<1>, 64>},
    {"ds_load_2addr_stride64_b64", &lower_load_two<Dwords<2>, 64>},
    {"ds_store_2addr_b32", &lower_store_two<Dwords<1>, 1>},
    {"ds_store_2addr_b64", &lower_store_two<Dwords<2>, 1>},
    {"ds_store_2addr_stride64_b32", &lower_store_two<Dwords<1>, 64>},
    {"ds_store_2addr_stride64_b64", &lower_store_two<Dwords<2>, 64>},
    {"ds_read2_b32", &lower_load_two<Dwords<1>, 1>},
    {"ds_read2_b64", &lower_load_two<Dwords<2>, 1>},
    {"ds_read2st64_b32", &lower_load_two<Dwords<1>, 64>},
    {"ds_read2st64_b64", &lower_load_two<Dwords<2>, 64>},
    {"ds_write2_b32", &lower_store_two<Dwords<1>, 1>},
    {"ds_write2_b64", &lower_store_two<Dwords<2>, 1>},
    {"ds_write2st64_b32", &lower_store_two<Dwords<1>, 64>},
    {"ds_write2st64_b64", &lower_store_two<Dwords<2>, 64>},
    EMU_DS_ATOMICS("add", "u32", "u64", uint32_t, uint64_t, kAdd),
    EMU_DS_ATOMICS("sub", "u32", "u64", uint32_t, uint64_t, kSub),
    EMU_DS_ATOMICS("rsub", "u32", "u64", uint32_t, uint64_t, kReverseSub),
    EMU_DS_ATOMICS("inc", "u32", "u64", uint32_t, uint64_t, kIncrement),
    EMU_DS_ATOMICS("dec", "u32", "u64", uint32_t, uint64_t, kDecrement),
    EMU_DS_ATOMICS("min", "i32", "i64", int32_t, int64_t, kMin),
    EMU_DS_ATOMICS("min", "u32", "u64", uint32_t, uint64_t, kMin),
    EMU_DS_ATOMICS("max", "i32", "i64", int32_t, int64_t, kMax),
    EMU_DS_ATOMICS("max", "u32", "u64", uint32_t, uint64_t, kMax),
    EMU_DS_ATOMICS("and", "b32", "b64", uint32_t, uint64_t, kAnd),
    EMU_DS_ATOMICS("or", "b32", "b64", uint32_t, uint64_t, kOr),
    EMU_DS_ATOMICS("xor", "b32", "b64", uint32_t, uint64_t, kXor),
    EMU_DS_ATOMICS("min", "f32", "f64", float, double, kMinFloat),
    EMU_DS_ATOMICS("max", "f32", "f64", float, double, kMaxFloat),
    EMU_DS_ATOMICS("add", "f32", "f64", float, double, kAdd),
    EMU_DS_ATOMIC("pk_add_f16", uint32_t, kPackedAddF16),
    EMU_DS_ATOMIC("pk_add_bf16", uint32_t, kPackedAddBf16),
    {"ds_pk_add_rtn_f16", &lower_atomic<uint32_t, kPackedAddF16, true>},
    {"ds_pk_add_rtn_bf16", &lower_atomic<uint32_t, kPackedAddBf16, true>},
    EMU_DS_ATOMICS("min_num", "f32", "f64", float, double, kMinFloat),
    EMU_DS_ATOMICS("max_num", "f32", "f64", float, double, kMaxFloat),
    {"ds_cond_sub_u32", &lower_atomic<uint32_t, kConditionalSub, false>},
    {"ds_cond_sub_rtn_u32", &lower_atomic<uint32_t, kConditionalSub, true>},
    {"ds_sub_clamp_u32", &lower_atomic<uint32_t, kSubClamp, false>},
    {"ds_sub_clamp_rtn_u32", &lower_atomic<uint32_t, kSubClamp, true>},
    {"ds_condxchg32_rtn_b64", &lower_atomic<uint64_t, kConditionalExchange, true>},
    {"ds_wrxchg2_rtn_b32", &lower_exchange_two<Dwords<1>, uint32_t, 1>},
    {"ds_wrxchg2_rtn_b64", &lower_exchange_two<Dwords<2>, uint64_t, 1>},
    {"ds_wrxchg2st64_rtn_b32", &lower_exchange_two<Dwords<1>, uint32_t, 64>},
    {"ds_wrxchg2st64_rtn_b64", &lower_exchange_two<Dwords<2>, uint64_t, 64>},
    {"ds_storexchg_2addr_rtn_b32", &lower_exchange_two<Dwords<1>, uint32_t, 1>},
    {"ds_storexchg_2addr_rtn_b64", &lower_exchange_two<Dwords<2>, uint64_t, 1>},
    {"ds_storexchg_2addr_stride64_rtn_b32", &lower_exchange_two<Dwords<1>, uint32_t, 64>},
    {"ds_storexchg_2addr_stride64_rtn_b64", &lower_exchange_two<Dwords<2>, uint64_t, 64>},
    {"ds_read_addtid_b32", &lower_by_lane<false>},
    {"ds_load_addtid_b32", &lower_by_lane<false>},
    {"ds_write_addtid_b32", &lower_by_lane<true>},
    {"ds_store_addtid_b32", &lower_by_lane<true>},
    {"ds_storexchg_rtn_b32", &lower_atomic<uint32_t, kSwap, true>},
    {"ds_storexchg_rtn_b64", &lower_atomic<uint64_t, kSwap, true>},
    {"ds_wrxchg_rtn_b32", &lower_atomic<uint32_t, kSwap, true>},
    {"ds_wrxchg_rtn_b64", &lower_atomic<uint64_t, kSwap, true>},
    // Before gfx11 the comparand is the first operand.
    EMU_DS_OF_TWO("cmpst", "b32", uint32_t, kCompareFirst),
    EMU_DS_OF_TWO("cmpst", "b64", uint64_t, kCompareFirst),
    EMU_DS_OF_TWO("cmpst", "f32", float, kCompareFirst),
    EMU_DS_OF_TWO("cmpst", "f64", double, kCompareFirst),
    EMU_DS_OF_TWO("cmpstore", "b32", uint32_t, kCompareSecond),
    EMU_DS_OF_TWO("cmpstore", "b64", uint64_t, kCompareSecond),
    EMU_DS_OF_TWO("cmpstore", "f32", float, kCompareSecond),
    EMU_DS_OF_TWO("cmpstore", "f64", double, kCompareSecond),
    EMU_DS_OF_TWO("mskor", "b32", uint32_t, kMaskedOr),
    EMU_DS_OF_TWO("mskor", "b64", uint64_t, kMaskedOr),
    {"ds_wrap_rtn_b32", &lower_of_two<uint32_t, kWrap, true>},
    {"ds_append", &lower_count<true>},
    {"ds_consume", &lower_count<false>},
};

}  // namespace

std::span<const Row> lds_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
