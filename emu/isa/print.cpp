// Writes decoded instructions in assembler syntax, for messages.

#include <algorithm>
#include <cstdio>

#include "emu/isa/inst.h"

namespace emu {
namespace {

std::string register_text(const Operand& operand) {
  const char* prefix = operand.kind == Kind::vgpr ? "v" : operand.kind == Kind::agpr ? "a" : "s";
  int reg = operand.reg;
  if (operand.kind == Kind::sgpr) {
    if (reg == 106) return operand.dwords == 2 ? "vcc" : "vcc_lo";
    if (reg == 107) return "vcc_hi";
    if (reg == 124) return "null";
    if (reg == 125) return "m0";
    if (reg == 126) return operand.dwords == 2 ? "exec" : "exec_lo";
    if (reg == 127) return "exec_hi";
    if (reg >= 108) {
      prefix = "ttmp";
      reg -= 108;
    }
  }
  if (operand.dwords == 1) return prefix + std::to_string(reg);
  return std::string(prefix) + "[" + std::to_string(reg) + ":" +
         std::to_string(reg + operand.dwords - 1) + "]";
}

std::string number_text(const Operand& operand) {
  char text[32];
  if (operand.kind == Kind::real) {
    std::snprintf(text, sizeof text, "%.17g", operand.real);
  } else if (operand.literal) {
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(operand.bits));
  } else {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(operand.bits));
  }
  return text;
}

std::string operand_text(const Operand& operand) {
  std::string text;
  switch (operand.kind) {
    case Kind::none:
      text = "off";
      break;
    case Kind::scc:
      text = "src_scc";
      break;
    case Kind::integer:
    case Kind::real:
      text = number_text(operand);
      break;
    case Kind::special:
      text = operand.name;
      break;
    default:
      text = register_text(operand);
  }
  if (operand.hi) text += ".h";
  if (operand.sext) text = "sext(" + text + ")";
  if (operand.abs) text = "|" + text + "|";
  if (operand.neg) text = "-" + text;
  return text;
}

/// Returns whether a modifier is written without its value, which is 1.
bool is_flag(std::string_view name) {
  constexpr std::string_view kFlags[] = {"clamp", "gds", "glc", "slc",   "dlc",   "scc",
                                         "sc0",   "sc1", "nt",  "offen", "idxen", "lds",
                                         "tfe",   "lwe", "d16", "a16",   "r128",  "unorm"};
  return std::find(std::begin(kFlags), std::end(kFlags), name) != std::end(kFlags);
}

}  // namespace

std::string to_text(const Inst& inst) {
  std::string text = inst.name;
  for (size_t i = 0; i < inst.operands.size(); ++i) {
    text += (i == 0 ? " " : ", ") + operand_text(inst.operands[i]);
  }
  for (const auto& [name, list] : inst.lists) {
    if (name == "address") continue;  // the name of an operand shows it
    text += " " + name + ":[";
    for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(list[i]);
    text += "]";
  }
  for (const auto& [name, value] : inst.modifiers) {
    text += " " + name + (is_flag(name) ? "" : ":" + std::to_string(value));
  }
  for (const auto& [name, word] : inst.words) text += " " + name + ":" + word;
  return text;
}

}  // namespace emu
