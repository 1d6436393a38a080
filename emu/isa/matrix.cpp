#include "emu/isa/matrix.h"

#include <cstring>
#include <stdexcept>

#include "emu/isa/encoding.h"
#include "emu/isa/vector.h"

namespace emu {
namespace {

constexpr uint32_t kMask = 0xff800000, kBits = 0xd3800000;
constexpr uint32_t kLoadScale = 0x2c;            // two dwords that precede a matrix instruction
constexpr uint32_t kRead = 0x58, kWrite = 0x59;  // moves from and to accumulation registers

/// gfx950's opcodes. Sources of f8f6f4 instructions have 4, 6 or 8 registers.
struct Added {
  uint32_t opcode;
  const char* name;
  uint8_t result, a, b, c;
};
constexpr Added kGfx950[] = {
    {0x2d, "v_mfma_f32_16x16x128_f8f6f4", 4, 8, 8, 4},
    {0x2e, "v_mfma_f32_32x32x64_f8f6f4", 16, 8, 8, 16},
    {0x35, "v_mfma_f32_16x16x32_bf16", 4, 4, 4, 4},
    {0x36, "v_mfma_i32_16x16x64_i8", 4, 4, 4, 4},
    {0x37, "v_mfma_f32_32x32x16_bf16", 16, 4, 4, 16},
    {0x38, "v_mfma_i32_32x32x32_i8", 16, 4, 4, 16},
    {0x39, "v_smfmac_f32_16x16x64_bf16", 4, 4, 8, 1},
    {0x3a, "v_smfmac_i32_16x16x128_i8", 4, 4, 8, 1},
    {0x3b, "v_smfmac_f32_16x16x128_bf8_bf8", 4, 4, 8, 1},
    {0x3c, "v_smfmac_f32_16x16x128_bf8_fp8", 4, 4, 8, 1},
    {0x3d, "v_smfmac_f32_16x16x128_fp8_bf8", 4, 4, 8, 1},
    {0x43, "v_smfmac_f32_16x16x128_fp8_fp8", 4, 4, 8, 1},
    {0x46, "v_smfmac_f32_32x32x32_bf16", 16, 4, 8, 1},
    {0x47, "v_smfmac_i32_32x32x64_i8", 16, 4, 8, 1},
    {0x4b, "v_smfmac_f32_32x32x64_bf8_bf8", 16, 4, 8, 1},
    {0x4e, "v_smfmac_f32_32x32x64_bf8_fp8", 16, 4, 8, 1},
    {0x4f, "v_smfmac_f32_32x32x64_fp8_bf8", 16, 4, 8, 1},
    {0x53, "v_smfmac_f32_32x32x64_fp8_fp8", 16, 4, 8, 1},
    {0x54, "v_mfma_f32_16x16x32_f16", 4, 4, 4, 4},
    {0x55, "v_mfma_f32_32x32x16_f16", 16, 4, 4, 16},
    {0x5a, "v_smfmac_f32_16x16x64_f16", 4, 4, 8, 1},
    {0x5b, "v_smfmac_f32_32x32x32_f16", 16, 4, 8, 1},
};

bool is_matrix(std::string_view name) {
  return name.starts_with("v_mfma_") || name.starts_with("v_smfmac_");
}

/// Registers that hold the 32 elements of a lane, by the format that CBSZ or BLGP names: fp8, bf8,
/// two formats of 6 bits, and one of 4.
uint8_t registers_of(uint32_t format) {
  constexpr uint8_t kRegisters[] = {8, 8, 6, 6, 4};
  if (format >= std::size(kRegisters)) throw std::runtime_error("reserved format of a matrix");
  return kRegisters[format];
}

Operand registers(bool accumulation, uint32_t number, uint8_t count) {
  Operand operand;
  operand.kind = accumulation ? Kind::agpr : Kind::vgpr;
  operand.reg = static_cast<uint16_t>(number);
  operand.dwords = count;
  return operand;
}

/// A source that is in vector or accumulation registers, or a constant where that is allowed.
Operand source(uint32_t bits, bool accumulation, uint8_t count, bool constant) {
  if (bits >= kFirstVgpr) return registers(accumulation, bits - kFirstVgpr, count);
  const bool is_constant = (bits >= 128 && bits <= 208) || (bits >= 240 && bits <= 248);
  if (!constant || !is_constant) throw std::runtime_error("reserved operand");
  return source_operand(9, bits, Operand(), 0);
}

Inst decode_move(std::span<const uint32_t> words) {
  const bool reads = field(words[0], 16, 7) == kRead;
  const uint32_t source = field(words[1], 0, 9);
  check_source(source, reads ? kVectorSource : kVectorSource | kScalarSource | kConstantSource,
               false);
  Operand one;
  one.kind = reads ? Kind::agpr : Kind::vgpr;
  Inst inst;
  inst.name = reads ? "v_accvgpr_read_b32" : "v_accvgpr_write_b32";
  inst.size = 8;
  inst.operands = {registers(!reads, field(words[0], 0, 8), 1), source_operand(9, source, one, 0)};
  return inst;
}

void add_modifier(Inst& inst, const char* name, uint32_t value) {
  if (value != 0) inst.modifiers.emplace_back(name, value);
}

}  // namespace

std::optional<Inst> MatrixDecoder::decode(std::span<const uint32_t> words) {
  if (generation_ != 9 || words.empty() || (words[0] & kMask) != kBits) return std::nullopt;
  const auto need = [&words](size_t count) {
    if (words.size() < count) throw std::runtime_error("the code ends within an instruction");
  };
  if (gfx950_ && field(words[0], 16, 7) == kLoadScale) {
    need(4);
    const Shape* shape = (words[2] & kMask) == kBits ? find(field(words[2], 16, 7)) : nullptr;
    if (shape == nullptr || !shape->name.ends_with("_f8f6f4")) {
      throw std::runtime_error("scales without a matrix instruction");
    }
    Inst inst = decode_plain(*shape, words[2], words[3]);
    read_scales(words, inst);
    return inst;
  }
  const uint32_t opcode = field(words[0], 16, 7);
  if (opcode == kRead || opcode == kWrite) {
    need(2);
    return decode_move(words);
  }
  const Shape* shape = find(opcode);
  if (shape == nullptr) return std::nullopt;
  need(2);
  return decode_plain(*shape, words[0], words[1]);
}

Inst MatrixDecoder::decode_plain(const Shape& shape, uint32_t low, uint32_t high) const {
  Inst inst;
  inst.name = shape.name;
  inst.size = 8;
  const uint32_t cbsz = field(low, 8, 3), blgp = field(high, 29, 3);
  const bool formats = shape.name.ends_with("_f8f6f4"), sparse = shape.name.starts_with("v_smfmac");
  const bool accumulation = field(low, 15, 1) != 0;
  const uint8_t a = formats ? registers_of(cbsz) : shape.a;
  const uint8_t b = formats ? registers_of(blgp) : shape.b;
  inst.operands = {registers(accumulation, field(low, 0, 8), shape.result),
                   source(field(high, 0, 9), field(high, 27, 1) != 0, a, false),
                   source(field(high, 9, 9), field(high, 28, 1) != 0, b, false),
                   source(field(high, 18, 9), accumulation && !sparse, shape.c, !sparse)};
  add_modifier(inst, "cbsz", cbsz);
  add_modifier(inst, "abid", field(low, 11, 4));
  // From gfx942 on, this field says which operands of f64 are negated. Sparse instructions ignore
  // it.
  if (shape.name.ends_with("_f64")) {
    if (blgp != 0) {
      inst.lists.emplace_back("neg",
                              std::vector<int>{int(blgp & 1), int(blgp >> 1 & 1), int(blgp >> 2)});
    }
  } else if (!sparse) {
    add_modifier(inst, "blgp", blgp);
  }
  return inst;
}

/// Appends the registers or constants of the scales, and the byte of them that each lane reads.
void MatrixDecoder::read_scales(std::span<const uint32_t> words, Inst& inst) const {
  inst.name.replace(0, 7, "v_mfma_scale_");
  inst.size = 16;
  Operand one;
  one.kind = Kind::vgpr;
  for (const unsigned at : {0u, 9u}) {
    inst.operands.push_back(source_operand(9, field(words[1], at, 9), one, 0));
  }
  const uint32_t low = field(words[0], 11, 2), high = field(words[1], 27, 2);
  inst.lists.emplace_back("op_sel", std::vector<int>{int(low & 1), int(low >> 1)});
  inst.lists.emplace_back("op_sel_hi", std::vector<int>{int(high & 1), int(high >> 1)});
}

const MatrixDecoder::Shape* MatrixDecoder::find(uint32_t opcode) {
  auto [at, is_new] = known_.try_emplace(opcode);
  if (is_new) at->second = ask(opcode);
  return at->second ? &*at->second : nullptr;
}

std::optional<MatrixDecoder::Shape> MatrixDecoder::ask(uint32_t opcode) const {
  if (gfx950_) {
    for (const Added& row : kGfx950) {
      if (row.opcode == opcode) return Shape{row.name, row.result, row.a, row.b, row.c};
    }
  }
  constexpr uint32_t kA = kFirstVgpr + 32, kB = kFirstVgpr + 64, kC = kFirstVgpr + 96;
  const uint32_t words[] = {kBits | opcode << 16, kC << 18 | kB << 9 | kA};
  uint8_t bytes[sizeof words];
  std::memcpy(bytes, words, sizeof words);
  const auto found = disassembler_.read(bytes, 0);
  if (!found) return std::nullopt;
  const Inst inst = parse_instruction(found->text).at(0);
  if (!is_matrix(inst.name) || inst.operands.size() != 4) return std::nullopt;
  // gfx950, whose dictionary is that of gfx942, has no xf32.
  if (gfx950_ && inst.name.ends_with("_xf32")) return std::nullopt;
  const auto& o = inst.operands;
  return Shape{inst.name, o[0].dwords, o[1].dwords, o[2].dwords, o[3].dwords};
}

}  // namespace emu
