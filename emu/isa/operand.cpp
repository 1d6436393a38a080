// The operands that source fields name: registers, inline constants, literals.

#include <stdexcept>
#include <string_view>

#include "emu/isa/vector.h"

namespace emu {
namespace {

// The numbers of gfx11 and later, which the rest of the emulator uses for all families.
constexpr uint16_t kNullRegister = 124, kM0Register = 125;

Operand scalar_register(int generation, uint32_t number, const Operand& shape) {
  Operand out;
  out.kind = Kind::sgpr;
  out.dwords = shape.dwords;
  out.reg = static_cast<uint16_t>(number);
  if (generation <= 10 && number == 124) out.reg = kM0Register;
  if (generation <= 10 && number == 125) out.reg = kNullRegister;  // reserved on gfx9
  if (out.reg == kNullRegister) out.dwords = 1;
  if (out.dwords > 1) out.reg &= ~1;  // pairs are aligned
  return out;
}

Operand special(const char* name) {
  Operand out;
  out.kind = Kind::special;
  out.name = name;
  return out;
}

const char* special_name(uint32_t bits) {
  switch (bits) {
    case 235:
      return "src_shared_base";
    case 236:
      return "src_shared_limit";
    case 237:
      return "src_private_base";
    case 238:
      return "src_private_limit";
    case 239:
      return "src_pops_exiting_wave_id";
    case 251:
      return "src_vccz";
    case 252:
      return "src_execz";
    case 254:
      return "src_lds_direct";
    default:
      return "reserved";
  }
}

/// Returns which kind of source the 9 bits of a field name.
Accepts kind_of_source(uint32_t bits) {
  if (bits >= kFirstVgpr) return kVectorSource;
  if (bits == kLiteral) return kLiteralSource;
  const bool is_constant = (bits >= 128 && bits <= 208) || (bits >= 240 && bits <= 248);
  return is_constant ? kConstantSource : kScalarSource;
}

}  // namespace

void check_source(uint32_t bits, unsigned accepts, bool has_literal) {
  const Accepts kind = kind_of_source(bits);
  if ((accepts & kind) == 0 || (kind == kLiteralSource && !has_literal)) {
    throw std::runtime_error("reserved operand");
  }
}

Operand source_operand(int generation, uint32_t bits, const Operand& shape, uint32_t literal) {
  // The last one is 1 / (2 pi), rounded to double. Half of the rounded 1 / pi is another number.
  constexpr double kReals[] = {0.5, -0.5, 1, -1, 2, -2, 4, -4, 0.15915494309189532};
  Operand out;
  if (bits >= kFirstVgpr) {
    out.kind = shape.kind == Kind::agpr ? Kind::agpr : Kind::vgpr;
    out.dwords = shape.dwords;
    out.reg = static_cast<uint16_t>(bits - kFirstVgpr);
    return out;
  }
  if (bits < 128) return scalar_register(generation, bits, shape);
  if (bits <= 208) {
    out.kind = Kind::integer;
    out.bits = bits <= 192 ? bits - 128 : 192 - uint64_t{bits};
    return out;
  }
  if (bits >= 240 && bits <= 248) {
    out.kind = Kind::real;
    out.real = kReals[bits - 240];
    return out;
  }
  if (bits == 253) {
    out.kind = Kind::scc;
    return out;
  }
  if (bits == kLiteral) {
    out.kind = Kind::integer;
    out.literal = true;
    out.bits = literal;
    return out;
  }
  return special(special_name(bits));
}

Operand result_register(int generation, uint32_t bits, const Operand& shape) {
  const bool is_null = bits == (generation <= 10 ? 125 : 124);
  const bool misaligned = shape.dwords > 1 && bits % 2 != 0 && !is_null;
  if (bits >= 128 || misaligned) throw std::runtime_error("reserved result register");
  return scalar_register(generation, bits, shape);
}

bool is_half(std::string_view name, int i) {
  // Packed operands are whole registers, although their names end in a 16-bit type.
  for (std::string_view whole : {"v_pk_", "v_dot2", "v_cvt_pk"}) {
    if (name.starts_with(whole)) return false;
  }
  if (name.starts_with("v_sat_pk")) return i < 0;
  const auto is_type = [](std::string_view word) {
    return word == "f16" || word == "i16" || word == "u16" || word == "b16" || word == "bf16";
  };
  const auto last_word = [](std::string_view& text) {
    const size_t at = text.rfind('_');
    const std::string_view word = text.substr(at + 1);
    text = text.substr(0, at == text.npos ? 0 : at);
    return word;
  };
  // v_OPERATION_RESULT_SOURCE, or v_OPERATION_TYPE.
  const std::string_view source = last_word(name), result = last_word(name);
  if (i >= 0) return is_type(source);
  const bool has_result_type = is_type(result) || result == "f32" || result == "i32" ||
                               result == "u32" || result == "f64" || result == "b32";
  return has_result_type ? is_type(result) : is_type(source);
}

}  // namespace emu
