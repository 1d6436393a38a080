#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "emu/isa/inst.h"

namespace emu {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

bool take_prefix(std::string_view& s, std::string_view prefix) {
  if (!s.starts_with(prefix)) return false;
  s.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& s, std::string_view suffix) {
  if (!s.ends_with(suffix)) return false;
  s.remove_suffix(suffix.size());
  return true;
}

std::optional<int64_t> read_integer(std::string_view s) {
  const bool negative = take_prefix(s, "-");
  const int base = take_prefix(s, "0x") ? 16 : 10;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - value : value);
}

/// Splits at each `separator` outside brackets.
std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '[' || s[i] == '(') ++depth;
    if (s[i] == ']' || s[i] == ')') --depth;
    if (s[i] != separator || depth > 0) continue;
    parts.push_back(s.substr(start, i - start));
    start = i + 1;
  }
  parts.push_back(s.substr(start));
  return parts;
}

struct Named {
  std::string_view name;
  uint16_t reg;
  uint8_t dwords;
};

/// The named scalar registers.
constexpr Named kNamed[] = {
    {"vcc", 106, 2},
    {"vcc_lo", 106, 1},
    {"vcc_hi", 107, 1},
    {"exec", 126, 2},
    {"exec_lo", 126, 1},
    {"exec_hi", 127, 1},
    {"m0", 125, 1},
    {"null", 124, 1},
    {"flat_scratch", 102, 2},
    {"xnack_mask", 104, 2},
    {"xnack_mask_lo", 104, 1},
    {"xnack_mask_hi", 105, 1},
    {"flat_scratch_lo", 102, 1},
    {"flat_scratch_hi", 103, 1},
};

/// Parses v12, s[4:7], a3 or ttmp[8:9]. Returns false if `s` isn't a register.
bool read_register(std::string_view s, Operand& out) {
  for (const Named& named : kNamed) {
    if (s != named.name) continue;
    out.kind = Kind::sgpr;
    out.reg = named.reg;
    out.dwords = named.dwords;
    return true;
  }
  out.hi = take_suffix(s, ".h");
  take_suffix(s, ".l");
  uint16_t base = 0;
  if (take_prefix(s, "ttmp")) {
    out.kind = Kind::sgpr;
    base = 108;
  } else if (take_prefix(s, "v")) {
    out.kind = Kind::vgpr;
  } else if (take_prefix(s, "s")) {
    out.kind = Kind::sgpr;
  } else if (take_prefix(s, "a")) {
    out.kind = Kind::agpr;
  } else {
    return false;
  }
  std::optional<int64_t> first, last;
  if (take_prefix(s, "[")) {
    take_suffix(s, "]");
    const size_t colon = s.find(':');
    first = read_integer(s.substr(0, colon));
    last = colon == s.npos ? first : read_integer(s.substr(colon + 1));
  } else if (!s.empty() && std::isdigit(static_cast<unsigned char>(s.front()))) {
    first = last = read_integer(s);
  }
  if (!first || !last) return false;
  out.reg = static_cast<uint16_t>(base + *first);
  out.dwords = static_cast<uint8_t>(*last - *first + 1);
  return true;
}

Operand read_operand(std::string_view s) {
  Operand out;
  if (s.starts_with("-") && s.size() > 1 && !std::isdigit(static_cast<unsigned char>(s[1]))) {
    out.neg = true;
    s.remove_prefix(1);
  } else if (s.starts_with("neg(")) {
    out.neg = true;
    s = s.substr(4, s.size() - 5);
  }
  if (s.starts_with("|")) {
    out.abs = true;
    s = s.substr(1, s.size() - 2);
  } else if (s.starts_with("abs(")) {
    out.abs = true;
    s = s.substr(4, s.size() - 5);
  }
  if (s.starts_with("sext(")) {
    out.sext = true;
    s = s.substr(5, s.size() - 6);
  }
  if (s == "off" || s.empty()) return out;
  if (s == "scc" || s == "src_scc") {
    out.kind = Kind::scc;
    return out;
  }
  if (const auto value = read_integer(s)) {
    out.kind = Kind::integer;
    out.bits = static_cast<uint64_t>(*value);
    return out;
  }
  if (read_register(s, out)) return out;
  const std::string text(s);
  char* end = nullptr;
  out.real = std::strtod(text.c_str(), &end);
  if (end == text.c_str() + text.size()) {
    out.kind = Kind::real;
    return out;
  }
  out.kind = Kind::special;
  out.hi = false;
  out.name = text;
  return out;
}

void read_modifier(std::string_view s, Inst& inst) {
  const size_t colon = s.find(':');
  const std::string name(s.substr(0, colon));
  if (colon == s.npos) {
    inst.modifiers.emplace_back(name, 1);
    return;
  }
  const std::string_view value = s.substr(colon + 1);
  if (value.starts_with("[")) {
    std::vector<int> list;
    for (std::string_view item : split(value.substr(1, value.size() - 2), ',')) {
      const auto number = read_integer(trim(item));
      if (!number) {  // a name, as that of a buffer's format
        inst.words.emplace_back(name, value);
        return;
      }
      list.push_back(static_cast<int>(*number));
    }
    inst.lists.emplace_back(name, std::move(list));
  } else if (const auto number = read_integer(value)) {
    inst.modifiers.emplace_back(name, *number);
  } else {
    inst.words.emplace_back(name, value);
  }
}

/// Removes the encoding's suffix from the mnemonic.
void read_mnemonic(std::string_view name, Inst& inst) {
  bool again = true;
  while (again) {
    again = false;
    for (std::string_view suffix : {"_e32", "_e64", "_dpp", "_sdwa"}) {
      if (!take_suffix(name, suffix)) continue;
      again = true;
      if (suffix == "_dpp") inst.form = Form::dpp16;
      if (suffix == "_sdwa") inst.form = Form::sdwa;
    }
  }
  inst.name = name;
}

/// Returns whether a word is a modifier of an instruction that has no operands: scope:SCOPE_DEV, or
/// one of the bits that say how caches are used. A colon within brackets is that of registers.
bool is_modifier(std::string_view word) {
  const size_t at = word.find_first_of(":[(");
  if (at != word.npos && word[at] == ':') return true;
  for (std::string_view bit : {"glc", "slc", "dlc", "scc", "sc0", "sc1", "nt"}) {
    if (word == bit) return true;
  }
  return false;
}

Inst parse_one(std::string_view text) {
  Inst inst;
  inst.text = text;
  const size_t space = text.find_first_of(" \t");
  read_mnemonic(text.substr(0, space), inst);
  if (space == text.npos) return inst;
  bool modifiers_follow = false;
  for (std::string_view chunk : split(trim(text.substr(space)), ',')) {
    bool first = !modifiers_follow;
    for (std::string_view word : split(trim(chunk), ' ')) {
      word = trim(word);
      if (word.empty()) continue;
      if (first && !(inst.operands.empty() && is_modifier(word))) {
        inst.operands.push_back(read_operand(word));
      } else {
        read_modifier(word, inst);
        modifiers_follow = true;
      }
      first = false;
    }
  }
  if (!inst.list("dpp8").empty()) inst.form = Form::dpp8;
  return inst;
}

template <class Pairs>
auto find(const Pairs& pairs, std::string_view name) {
  auto it = pairs.begin();
  while (it != pairs.end() && it->first != name) ++it;
  return it;
}

}  // namespace

int64_t Inst::modifier(std::string_view wanted, int64_t otherwise) const {
  const auto it = find(modifiers, wanted);
  return it == modifiers.end() ? otherwise : it->second;
}

const std::vector<int>& Inst::list(std::string_view wanted) const {
  static const std::vector<int> none;
  const auto it = find(lists, wanted);
  return it == lists.end() ? none : it->second;
}

std::string_view Inst::word(std::string_view wanted) const {
  const auto it = find(words, wanted);
  return it == words.end() ? std::string_view() : std::string_view(it->second);
}

bool Inst::has(std::string_view wanted) const {
  return find(modifiers, wanted) != modifiers.end() || find(lists, wanted) != lists.end() ||
         find(words, wanted) != words.end();
}

std::vector<Inst> parse_instruction(std::string_view text) {
  text = trim(text);
  const size_t dual = text.find(" :: ");
  if (dual == text.npos) return {parse_one(text)};
  std::vector<Inst> both = {parse_one(trim(text.substr(0, dual))),
                            parse_one(trim(text.substr(dual + 4)))};
  for (Inst& half : both) {
    if (half.name.starts_with("v_dual_")) half.name.replace(0, 7, "v_");
    if (half.name == "v_cndmask_b32" && half.operands.size() == 3) {  // the text omits VCC
      half.operands.push_back(read_operand("vcc_lo"));
    }
  }
  return both;
}

}  // namespace emu
