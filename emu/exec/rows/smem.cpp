// Scalar loads.

#include "emu/exec/address.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

/// Kernel arguments are always initialized, and nothing writes them while the kernel runs.
EMU_INLINE bool is_argument(Wave* w, uint64_t address, uint32_t bytes) {
  const uint64_t offset = address - w->launch->kernarg, size = w->launch->descriptor.kernarg_bytes;
  return offset < size && bytes <= size - offset;
}

/// Returns the address of elements of `align` bytes, whose lowest bits the hardware ignores.
EMU_INLINE uint64_t scalar_address(Wave* w, const Op* op, uint32_t align) {
  read_scalar(w, op, op->a, 2);
  read_scalar(w, op, op->b, 1);
  const uint64_t address =
      scalar_pair(w, op->a) + at<uint32_t>(w, op->b) + static_cast<uint64_t>(int64_t{op->imm});
  if (kChecked && (address & (align - 1)) != 0) [[unlikely]]
    bad_scalar_address(w, op, address, align);
  return address & ~uint64_t{align - 1};
}

template <int kDwords>
Stop scalar_load(Wave* w, const Op* op) {
  const uint64_t address = scalar_address(w, op, 4);
  const auto* from = reinterpret_cast<const char*>(address);
  if (kChecked && !is_argument(w, address, 4 * kDwords) &&
      !Global::readable(w, op, from, 4 * kDwords, 0)) {
    return Stop::fault;
  }
  uint32_t values[kDwords];
  std::memcpy(values, from, sizeof values);
  std::memcpy(&at<uint32_t>(w, op->dst), values, sizeof values);
  load_issued(w, op, op->dst, kDwords, kSmem);
  EMU_NEXT;
}

/// Loads an element that is smaller than a dword.
template <class T>
Stop scalar_load_small(Wave* w, const Op* op) {
  const uint64_t address = scalar_address(w, op, sizeof(T));
  const auto* from = reinterpret_cast<const char*>(address);
  if (kChecked && !is_argument(w, address, sizeof(T)) &&
      !Global::readable(w, op, from, sizeof(T), 0)) {
    return Stop::fault;
  }
  T value;
  std::memcpy(&value, from, sizeof value);
  at<uint32_t>(w, op->dst) = static_cast<uint32_t>(int32_t{value});
  load_issued(w, op, op->dst, 1, kSmem);
  EMU_NEXT;
}

/// Loads through a buffer descriptor; beyond its end the result is zero.
template <int kDwords>
Stop scalar_buffer_load(Wave* w, const Op* op) {
  read_scalar(w, op, op->a, 4);
  read_scalar(w, op, op->b, 1);
  const uint64_t base = scalar_pair(w, op->a) & 0xffffffffffff;
  const uint64_t stride = at<uint32_t>(w, op->a + 4) >> 16 & 0x3fff;
  const uint64_t records = at<uint32_t>(w, op->a + 8);
  const uint64_t size = stride == 0 ? records : records * stride;
  const uint64_t offset =
      (uint64_t{at<uint32_t>(w, op->b)} + static_cast<uint64_t>(int64_t{op->imm})) & ~uint64_t{3};
  uint32_t values[kDwords] = {};
  for (uint64_t i = 0; i < kDwords && offset + 4 * i + 4 <= size; ++i) {
    const auto* from = reinterpret_cast<const char*>(base + offset + 4 * i);
    if (!Global::readable(w, op, from, 4, 0)) return Stop::fault;
    std::memcpy(&values[i], from, 4);
  }
  std::memcpy(&at<uint32_t>(w, op->dst), values, sizeof values);
  load_issued(w, op, op->dst, kDwords, kSmem);
  EMU_NEXT;
}

template <Handler kHandler>
void lower_load(Lowering& l, const Inst& inst) {  // sdst, sbase, soffset or an immediate
  Op& op = l.emit(kHandler);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b64);
  const Operand& offset = inst.operands.at(2);
  op.imm = static_cast<int32_t>(inst.modifier("offset"));
  if (offset.kind == Kind::sgpr) {
    op.b = l.source(offset, Value::b32);
  } else {
    op.b = l.constant(0);
    op.imm += static_cast<int32_t>(offset.bits);
  }
}

#define EMU_SCALAR_LOAD(dwords, old_name, new_name)                            \
  {"s_load_" old_name, &lower_load<&scalar_load<dwords>>},                     \
      {"s_load_" new_name, &lower_load<&scalar_load<dwords>>},                 \
      {"s_buffer_load_" old_name, &lower_load<&scalar_buffer_load<dwords>>}, { \
    "s_buffer_load_" new_name, &lower_load<&scalar_buffer_load<dwords>>        \
  }

constexpr Row kRows[] = {
    EMU_SCALAR_LOAD(1, "dword", "b32"),
    EMU_SCALAR_LOAD(2, "dwordx2", "b64"),
    EMU_SCALAR_LOAD(3, "dwordx3", "b96"),
    EMU_SCALAR_LOAD(4, "dwordx4", "b128"),
    {"s_load_u8", &lower_load<&scalar_load_small<uint8_t>>},
    {"s_load_i8", &lower_load<&scalar_load_small<int8_t>>},
    {"s_load_u16", &lower_load<&scalar_load_small<uint16_t>>},
    {"s_load_i16", &lower_load<&scalar_load_small<int16_t>>},
    EMU_SCALAR_LOAD(8, "dwordx8", "b256"),
    EMU_SCALAR_LOAD(16, "dwordx16", "b512"),
};

}  // namespace

std::span<const Row> smem_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
