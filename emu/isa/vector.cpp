#include "emu/isa/vector.h"

#include <stdexcept>

namespace emu {
namespace {

uint32_t word_at(std::span<const uint32_t> words, size_t i) {
  if (i >= words.size()) throw std::runtime_error("the code ends within an instruction");
  return words[i];
}

int source_index(Field field) { return static_cast<int>(field) - static_cast<int>(Field::src0); }
bool is_source(Field field) { return field >= Field::src0 && field <= Field::src2; }

Operand vector_register(const Operand& shape, uint32_t number) {
  Operand out;
  out.kind = shape.kind == Kind::agpr ? Kind::agpr : Kind::vgpr;
  out.dwords = shape.dwords;
  out.reg = static_cast<uint16_t>(number);
  return out;
}

/// In the short encodings of gfx11 and later, bit 7 of a 16-bit operand's register is its half.
void name_half(Operand& operand) {
  if (operand.kind != Kind::vgpr) return;
  operand.hi = (operand.reg & 0x80) != 0;
  operand.reg &= 0x7f;
}

Operand constant_operand(uint32_t bits) {
  Operand out;
  out.kind = Kind::integer;
  out.literal = true;
  out.bits = bits;
  return out;
}

/// OP_SEL, OP_SEL_HI, NEG_LO and NEG_HI, with one bit for each source.
void add_list(Inst& inst, const char* name, uint32_t bits, int sources) {
  std::vector<int> list;
  for (int i = 0; i < sources; ++i) list.push_back(static_cast<int>(bits >> i & 1));
  inst.lists.emplace_back(name, std::move(list));
}

void read_packed(std::span<const uint32_t> words, int sources, Inst& inst) {
  const uint32_t all = (1u << sources) - 1;
  const uint32_t op_sel = field(words[0], 11, 3) & all, neg_hi = field(words[0], 8, 3) & all;
  const uint32_t op_sel_hi = (field(words[1], 27, 2) | field(words[0], 14, 1) << 2) & all;
  const uint32_t neg_lo = field(words[1], 29, 3) & all;
  // For the mix instructions, OP_SEL_HI says which sources are f16. Elsewhere, the usual value
  // selects the upper half for the upper result.
  const bool mixed = inst.name.starts_with("v_fma_mix") || inst.name.starts_with("v_mad_mix");
  if (op_sel != 0) add_list(inst, "op_sel", op_sel, sources);
  if (op_sel_hi != (mixed ? 0 : all)) add_list(inst, "op_sel_hi", op_sel_hi, sources);
  if (mixed) {  // here the signs are as in VOP3, with NEG_HI as ABS
    for (size_t i = 0; i < 3 && i + 1 < inst.operands.size(); ++i) {
      inst.operands[i + 1].neg = (neg_lo >> i & 1) != 0;
      inst.operands[i + 1].abs = (neg_hi >> i & 1) != 0;
    }
    return;
  }
  if (neg_lo != 0) add_list(inst, "neg_lo", neg_lo, sources);
  if (neg_hi != 0) add_list(inst, "neg_hi", neg_hi, sources);
}

/// The output modifiers CLAMP and OMOD.
void read_output(uint32_t clamp, uint32_t omod, Inst& inst) {
  if (clamp != 0) inst.modifiers.emplace_back("clamp", 1);
  if (omod == 3) inst.modifiers.emplace_back("div", 2);
  if (omod == 1 || omod == 2) inst.modifiers.emplace_back("mul", 2 * omod);
}

/// The fields OMOD, ABS and NEG of v_bitop3 are its truth table.
void read_truth_table(std::span<const uint32_t> words, Inst& inst) {
  const uint32_t table =
      field(words[1], 27, 2) << 6 | field(words[0], 8, 3) << 3 | field(words[1], 29, 3);
  inst.modifiers.clear();
  inst.modifiers.emplace_back("bitop3", table);
  for (Operand& operand : inst.operands) operand.neg = operand.abs = false;
}

/// Returns whether OPSEL is the number of a byte or word that isn't the half of an operand.
bool names_bytes(std::string_view name) {
  for (std::string_view prefix :
       {"v_cvt_sr_fp8", "v_cvt_sr_bf8", "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_scalef32"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

std::vector<Inst> VectorDecoder::decode(std::span<const uint32_t> words) {
  if (words.empty()) return {};
  const Encoding* encoding = find_encoding(generation_, words[0]);
  if (encoding == nullptr) return {};
  if (encoding->layout == FieldLayout::vopd) return decode_dual(words);
  const Opcode* opcode = opcodes_.find(*encoding, encoding->opcode(words[0]));
  if (opcode == nullptr) return {};
  const bool is_short = encoding->layout == FieldLayout::vop1 ||
                        encoding->layout == FieldLayout::vop2 ||
                        encoding->layout == FieldLayout::vopc;
  return {is_short ? decode_short(*opcode, encoding->layout, words)
                   : decode_long(*opcode, encoding->layout, words)};
}

/// VOP1, VOP2 and VOPC: one dword, which a literal or a dword of modifiers may follow.
Inst VectorDecoder::decode_short(const Opcode& opcode, FieldLayout layout,
                                 std::span<const uint32_t> words) {
  Inst inst;
  inst.name = opcode.name;
  const uint32_t word = words[0];
  uint32_t src0 = field(word, 0, 9);
  const bool reads = opcode.has(Field::src0);
  const bool eight = generation_ >= 10 && (src0 == kDpp8 || src0 == kDpp8FetchInactive);
  const bool dpp = reads && (eight || (src0 == kDpp16));
  const bool sdwa = reads && src0 == kSdwa && generation_ <= 10;
  const bool literal = reads && src0 == kLiteral;
  const bool follows = dpp || sdwa || literal || opcode.has(Field::constant);
  if ((dpp || sdwa) && opcode.has(Field::constant)) throw std::runtime_error("reserved operand");
  const uint32_t next = follows ? word_at(words, 1) : 0;
  inst.size = follows ? 8 : 4;
  const uint32_t vsrc1 = field(word, 9, 8) | kFirstVgpr;
  uint32_t src1 = vsrc1;
  if (dpp) src0 = kFirstVgpr | field(next, 0, 8);
  if (sdwa) {
    src0 = field(next, 0, 8) | (field(next, 23, 1) == 0 ? kFirstVgpr : 0);
    if (field(next, 31, 1) != 0) src1 = field(word, 9, 8);
  }
  const bool halves = generation_ >= 11;
  size_t first = opcode.operands.size();
  for (const OperandShape& shape : opcode.operands) {
    Operand operand = shape.operand;
    if (shape.field == Field::vdst) {
      const uint32_t vdst = field(word, 17, 8);
      operand = shape.operand.kind == Kind::sgpr ? result_register(generation_, vdst, shape.operand)
                                                 : vector_register(shape.operand, vdst);
      if (halves && is_half(opcode.name, -1)) name_half(operand);
    } else if (is_source(shape.field)) {
      const int i = source_index(shape.field);
      first = std::min(first, inst.operands.size());
      const uint32_t bits = i == 0 ? src0 : src1;
      // SDWA names scalars as source 1, too.
      const unsigned more = sdwa && i == 1 ? kScalarSource | kConstantSource : 0;
      check_source(bits, shape.accepts | more, literal);
      operand = source_operand(generation_, bits, shape.operand, next);
      if (halves && is_half(opcode.name, i)) name_half(operand);
    } else if (shape.field == Field::constant) {
      operand = constant_operand(next);
    }
    inst.operands.push_back(operand);
  }
  if (dpp) {
    read_dpp(generation_, field(word, 0, 9), next, inst);
    if (!eight) {
      for (size_t i = 0; i < 2 && first + i < inst.operands.size(); ++i) {
        inst.operands[first + i].neg = field(next, 20 + 2 * static_cast<unsigned>(i), 1) != 0;
        inst.operands[first + i].abs = field(next, 21 + 2 * static_cast<unsigned>(i), 1) != 0;
      }
    }
  }
  if (sdwa) read_sdwa(generation_, next, layout == FieldLayout::vopc, first, inst);
  return inst;
}

/// VOP3 and VOP3P: two dwords, which a literal or a dword of DPP may follow on gfx11 and later.
Inst VectorDecoder::decode_long(const Opcode& opcode, FieldLayout layout,
                                std::span<const uint32_t> words) {
  Inst inst;
  inst.name = opcode.name;
  const uint32_t low = words[0], high = word_at(words, 1);
  uint32_t fields[3] = {field(high, 0, 9), field(high, 9, 9), field(high, 18, 9)};
  const int sources = opcode.sources();
  bool literal = false;
  for (const OperandShape& shape : opcode.operands) {
    if (is_source(shape.field)) literal |= fields[source_index(shape.field)] == kLiteral;
  }
  const bool eight = fields[0] == kDpp8 || fields[0] == kDpp8FetchInactive;
  const bool dpp = generation_ >= 11 && opcode.has(Field::src0) && (eight || fields[0] == kDpp16);
  literal &= generation_ >= 10;
  const uint32_t next = literal || dpp ? word_at(words, 2) : 0;
  inst.size = literal || dpp ? 12 : 8;
  const uint32_t control = fields[0];
  if (dpp) fields[0] = kFirstVgpr | field(next, 0, 8);

  const bool packed = layout == FieldLayout::vop3p, scalar_result = opcode.has(Field::sdst);
  const bool interpolates =
      layout == FieldLayout::vinterp;  // bits 8 to 10 are a counter to wait for
  const uint32_t abs = packed || scalar_result || interpolates ? 0 : field(low, 8, 3);
  const uint32_t neg = packed ? 0 : field(high, 29, 3);
  const bool permutes = inst.name.starts_with("v_permlane");
  const bool bytes = names_bytes(inst.name);
  const bool halves = opcode.selects_halves && !packed && !scalar_result && !permutes && !bytes;
  const uint32_t op_sel = field(low, 11, 4);
  for (const OperandShape& shape : opcode.operands) {
    Operand operand = shape.operand;
    if (shape.field == Field::vdst) {
      const uint32_t vdst = field(low, 0, 8);
      operand = shape.operand.kind == Kind::sgpr ? result_register(generation_, vdst, shape.operand)
                                                 : vector_register(shape.operand, vdst);
      operand.hi = halves && operand.kind == Kind::vgpr && operand.dwords == 1 && (op_sel & 8) != 0;
    } else if (shape.field == Field::sdst) {
      operand = result_register(generation_, field(low, 8, 7), shape.operand);
    } else if (is_source(shape.field)) {
      const int i = source_index(shape.field);
      // With DPP, gfx11 and packed instructions have vector registers only as source 1.
      const bool vector_only = dpp && i == 1 && (generation_ == 11 || packed);
      const unsigned accepts = vector_only ? kVectorSource : shape.accepts;
      check_source(fields[i], accepts, literal && !dpp);
      constexpr uint32_t kLdsDirect = 254;  // until gfx10
      if (fields[i] == kLdsDirect && generation_ >= 11)
        throw std::runtime_error("reserved operand");
      operand = source_operand(generation_, fields[i], shape.operand, next);
      operand.neg = (neg >> i & 1) != 0;
      operand.abs = (abs >> i & 1) != 0;
      // Sources that are always scalar are masks and numbers of lanes, which have no halves.
      const bool has_halves = halves && shape.operand.kind != Kind::sgpr && operand.dwords == 1;
      operand.hi = has_halves && (op_sel >> i & 1) != 0;
    }
    inst.operands.push_back(operand);
  }
  if (packed) read_packed(words, sources, inst);
  if (permutes && (op_sel & 3) != 0) add_list(inst, "op_sel", op_sel, 2);
  if (bytes && op_sel != 0) add_list(inst, "op_sel", op_sel, 4);
  read_output(field(low, 15, 1), packed || interpolates ? 0 : field(high, 27, 2), inst);
  if (inst.name.starts_with("v_bitop3")) read_truth_table(words, inst);
  if (dpp) read_dpp(generation_, control, next, inst);
  return inst;
}

}  // namespace emu
