#include "emu/exec/lowering.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace emu {
namespace {

uint16_t half_bits(double value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }

uint64_t real_bits(double value, Value as) {
  switch (as) {
    case Value::f16:
    case Value::b16:
    case Value::i16:
    case Value::pk_f16:
      return half_bits(value);
    case Value::bf16:
      return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
    case Value::b32:
    case Value::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Value::b64:
    case Value::u64:
    case Value::f64:
      return std::bit_cast<uint64_t>(value);
  }
  return 0;
}

uint64_t integer_bits(uint64_t bits, bool literal, Value as) {
  const auto number = static_cast<int64_t>(bits);
  const bool is_inline = !literal && number >= -16 && number <= 64;
  if (is_inline) return bits;
  if (as == Value::f64) return bits << 32;         // a literal is the upper dword
  if (as == Value::u64) return bits & 0xffffffff;  // u64 literals are zero-extended
  if (as == Value::b64) return static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
  return bits;
}

/// DPP: returns the lane that `lane` reads, or -1.
int dpp_source(const Inst& inst, int lane, int lanes) {
  const int row = lane & ~15, i = lane & 15;
  auto in_row = [&](int to) { return to >= 0 && to < 16 ? row + to : -1; };
  if (const auto& quad = inst.list("quad_perm"); quad.size() == 4) {
    return (lane & ~3) + quad[static_cast<size_t>(lane & 3)];
  }
  if (const auto& eight = inst.list("dpp8"); eight.size() == 8) {
    return (lane & ~7) + eight[static_cast<size_t>(lane & 7)];
  }
  if (inst.has("row_shl")) return in_row(i + static_cast<int>(inst.modifier("row_shl")));
  if (inst.has("row_shr")) return in_row(i - static_cast<int>(inst.modifier("row_shr")));
  if (inst.has("row_ror")) return row + ((i - static_cast<int>(inst.modifier("row_ror"))) & 15);
  if (inst.has("row_mirror")) return row + 15 - i;
  if (inst.has("row_half_mirror")) return (lane & ~7) + 7 - (lane & 7);
  if (inst.has("row_share")) return row + static_cast<int>(inst.modifier("row_share"));
  if (inst.has("row_newbcast")) return row + static_cast<int>(inst.modifier("row_newbcast"));
  if (inst.has("row_xmask")) return row + (i ^ static_cast<int>(inst.modifier("row_xmask")));
  if (inst.has("wave_shl")) return lane + 1 < lanes ? lane + 1 : -1;
  if (inst.has("wave_shr")) return lane - 1;
  if (inst.has("wave_rol")) return (lane + 1) % lanes;
  if (inst.has("wave_ror")) return (lane + lanes - 1) % lanes;
  if (inst.has("row_bcast")) {
    const int last = static_cast<int>(inst.modifier("row_bcast"));  // 15 or 31
    const int block = (last + 1);
    return lane < block ? -1 : (lane / block) * block - 1;
  }
  throw NotImplemented("DPP control of '" + inst.text + "'");
}

void dpp(const Inst& inst, int lanes, Extra& extra) {
  extra.cross_lane = true;
  const bool eight = inst.form == Form::dpp8;
  extra.bound_zero = eight || inst.has("bound_ctrl");
  extra.fetch_inactive = inst.modifier("fi") != 0;
  const int64_t rows = inst.modifier("row_mask", 15), banks = inst.modifier("bank_mask", 15);
  for (int lane = 0; lane < lanes; ++lane) {
    const int from = dpp_source(inst, lane, lanes);
    extra.from[lane] = static_cast<uint8_t>(from < 0 ? 0 : from);
    if (from >= 0) extra.valid |= uint64_t{1} << lane;
    if ((rows >> (lane / 16 & 3) & 1) && (banks >> (lane / 4 & 3) & 1)) {
      extra.enabled |= uint64_t{1} << lane;
    }
  }
}

/// Parses BYTE_n, WORD_n or DWORD.
void sdwa_select(std::string_view word, uint8_t& byte, uint8_t& bytes) {
  if (word.starts_with("BYTE_")) {
    byte = static_cast<uint8_t>(word[5] - '0');
    bytes = 1;
  } else if (word.starts_with("WORD_")) {
    byte = static_cast<uint8_t>(2 * (word[5] - '0'));
    bytes = 2;
  }
}

}  // namespace

uint32_t Lowering::constant(uint64_t bits) {
  const auto it = std::find(constants_.begin(), constants_.end(), bits);
  const auto index = static_cast<uint32_t>(it - constants_.begin());
  if (it == constants_.end()) {
    if (index == kConstants) throw NotImplemented("more constants than a module may have");
    constants_.push_back(bits);
  }
  return kConstantsBase + index * 8;
}

uint32_t Lowering::source(const Operand& operand, Value value) {
  switch (operand.kind) {
    case Kind::none:
      return constant(0);
    case Kind::vgpr:
      if (operand.reg == kSpareVgpr) return offsetof(Wave, spare);
      vgprs = std::max(vgprs, operand.reg + operand.dwords);
      return vgpr_offset(operand.reg);
    case Kind::sgpr:
      if (operand.reg == kNull) return constant(0);
      return sgpr_offset(operand.reg);
    case Kind::agpr:
      vgprs = std::max(vgprs, kFirstAgpr + operand.reg + operand.dwords);
      return vgpr_offset(kFirstAgpr + operand.reg);
    case Kind::scc:
      return offsetof(Wave, scc);
    case Kind::integer:
      return constant(integer_bits(operand.bits, operand.literal, value));
    case Kind::real:
      return constant(real_bits(operand.real, value));
    case Kind::special:
      if (operand.name == "src_shared_base") return constant(kSharedBase);
      if (operand.name == "src_private_base") return constant(kPrivateBase);
      if (operand.name == "src_shared_limit") return constant(kSharedBase | 0xffffffff);
      if (operand.name == "src_private_limit") return constant(kPrivateBase | 0xffffffff);
      break;
    default:
      break;
  }
  throw NotImplemented("operand " + operand.name);
}

Op& Lowering::emit(Handler fn) {
  ops.emplace_back();
  ops.back().fn = fn;
  return ops.back();
}

namespace {

/// Returns whether a mix instruction reads source `i` as f16. Constants are then f16, too.
bool reads_half(const Inst& inst, size_t i) {
  if (!inst.name.starts_with("v_fma_mix") && !inst.name.starts_with("v_mad_mix")) return false;
  const auto& halves = inst.list("op_sel_hi");
  return i < halves.size() && halves[i] != 0;
}

}  // namespace

void refuse_operands(const Inst& inst) { throw NotImplemented("operands of '" + inst.text + "'"); }

Placed Lowering::place_vector(const Inst& given, OperandUse use, std::span<const Value> values) {
  Inst inst = given;
  if (use.accumulate) {
    inst.operands.push_back(inst.operands.at(0));
  }
  if (use.to_exec) {
    const bool named = inst.operands.size() > values.size();
    if (!named) inst.operands.insert(inst.operands.begin(), Operand());
    inst.operands[0] = Operand();
    inst.operands[0].kind = Kind::sgpr;
    inst.operands[0].reg = kExec;
  }
  const auto& operands = inst.operands;
  if (operands.size() < use.results + values.size()) refuse_operands(given);
  Op op;
  op.dst = destination(operands[0]);
  if (use.results == 2) op.dst2 = destination(operands[1]);
  Placed placed{PlacedForm::plain, 0};
  uint32_t* const to[] = {&op.a, &op.b, &op.c};
  for (size_t i = 0; i < values.size(); ++i) {
    const Operand& operand = operands[use.results + i];
    *to[i] = source(operand, reads_half(inst, i) ? Value::f16 : values[i]);
    if (operand.kind == Kind::vgpr || operand.kind == Kind::agpr) placed.vectors |= 1u << i;
  }
  const Extra& x = *extra(inst, use.results, values.size());
  op.extra = &x;
  bool signs = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const SourceForm& form = x.src[i];
    signs |= form.neg || form.abs || form.hi || form.neg_hi;
  }
  if (signs || inst.has("op_sel") || inst.has("op_sel_hi")) placed.form = PlacedForm::quick;
  if (inst.form != Form::plain || x.omod != 0 || x.clamp || x.dst_hi)
    placed.form = PlacedForm::full;
  ops.push_back(op);
  return placed;
}

Op& Lowering::place_scalar(const Inst& inst, OperandUse use, std::span<const Value> values) {
  const auto& operands = inst.operands;
  const size_t written = operands.size() + (use.accumulate ? 1 : 0);
  if (written < use.results + values.size() || operands.empty()) refuse_operands(inst);
  Op op;
  if (use.results > 0) op.dst = destination(operands[0]);
  uint32_t* const to[] = {&op.a, &op.b, &op.c};
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t from = use.results + i;
    *to[i] = source(from < operands.size() ? operands[from] : operands[0], values[i]);
  }
  ops.push_back(op);
  return ops.back();
}

void Lowering::index_registers(const Inst& inst, size_t operations_before) {
  if (index_with == nullptr || !inst.name.starts_with("v_") || ops.size() == operations_before)
    return;
  // The destination of these instructions is also a source: one register with two operand names.
  const bool accumulates =
      inst.name.find("mac") != std::string::npos || inst.name.find("dot2c") != std::string::npos;
  if (ops.size() != operations_before + 1 || accumulates || inst.operands.empty()) {
    throw NotImplemented("register index for this instruction");
  }
  Op head;
  head.fn = index_with;
  for (size_t i = 0; i < inst.operands.size() && i < 4; ++i) {
    const uint32_t bit = i == 0 ? 8 : 1u << (i - 1);
    if (inst.operands[i].kind == Kind::vgpr) head.imm2 |= indexed_operands & bit;
  }
  if (head.imm2 == 0) return;
  ops.insert(ops.end() - 1, head);
  computes = false;
}

uint32_t Lowering::destination(const Operand& operand) {
  if (operand.kind == Kind::sgpr && operand.reg == kNull) return offsetof(Wave, sink);
  // These are constants or state of the wave, which no result may replace.
  const bool is_constant = operand.kind == Kind::integer || operand.kind == Kind::real ||
                           operand.kind == Kind::special || operand.kind == Kind::scc;
  if (is_constant) throw NotImplemented("a result that isn't in a register");
  return source(operand, Value::b32);
}

Extra* Lowering::extra(const Inst& inst, size_t first, size_t sources) {
  Extra& extra = extras.emplace_back();
  extra.omod = static_cast<uint8_t>(inst.modifier("mul") == 2   ? 1
                                    : inst.modifier("mul") == 4 ? 2
                                    : inst.modifier("div") == 2 ? 3
                                                                : 0);
  extra.clamp = inst.has("clamp");
  const auto& kept = traits.keeping_high;
  extra.keep_high =
      traits.keep_high || std::find(kept.begin(), kept.end(), inst.name) != kept.end();
  const bool packed = inst.name.starts_with("v_pk_") || inst.name.starts_with("v_dot2");
  const auto bit = [&](const char* name, size_t i, bool otherwise = false) {
    const auto& list = inst.list(name);
    return i < list.size() ? list[i] != 0 : otherwise;
  };
  for (size_t i = 0; i < sources && i < 3 && first + i < inst.operands.size(); ++i) {
    const Operand& operand = inst.operands[first + i];
    SourceForm& form = extra.src[i];
    form.vector = operand.kind == Kind::vgpr || operand.kind == Kind::agpr;
    form.neg = operand.neg || bit("neg_lo", i);
    form.abs = operand.abs;
    form.sext = operand.sext;
    form.hi = operand.hi || bit("op_sel", i);
    form.hi_hi = bit("op_sel_hi", i, packed);
    form.neg_hi = bit("neg_hi", i);
    const char* select[] = {"src0_sel", "src1_sel", ""};
    sdwa_select(inst.word(select[i]), form.byte, form.bytes);
  }
  if (const auto& sel = inst.list("op_sel"); sel.size() > sources) extra.dst_hi = sel.back() != 0;
  if (!inst.operands.empty() && inst.operands[0].hi) extra.dst_hi = true;
  if (inst.form == Form::dpp16 || inst.form == Form::dpp8) dpp(inst, 32 * halves(), extra);
  sdwa_select(inst.word("dst_sel"), extra.dst_byte, extra.dst_bytes);
  if (inst.word("dst_unused") == "UNUSED_PRESERVE") extra.dst_unused = 2;
  if (inst.word("dst_unused") == "UNUSED_SEXT") extra.dst_unused = 1;
  return &extra;
}

}  // namespace emu
