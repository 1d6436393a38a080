// Forms of instructions that version 19 of the assembler can't write. Bits of the machine words are
// set where AMD's manuals place the fields.

#include "emu/tests/forms.h"
#include "emu/tests/names.h"

namespace emu::test {
namespace {

using Words = std::vector<uint32_t>;

bool is_half(Type type) { return type == Type::b16 || type == Type::f16; }

/// VOP3 and VOP3P: two dwords, with source fields of 9 bits in the second one.
bool is_long(const Words& words, bool gfx9) {
  const uint32_t prefix = words[0] >> 26;
  return gfx9 ? prefix == 0b110100 : prefix == 0b110101 || prefix == 0b110011;
}

/// Which halves an instruction names: bit i for the register of source field i, bit 3 for the
/// result.
void name_halves(Words& words, unsigned halves) {
  if (is_long(words, false)) {
    words[0] |= halves << 11;  // OPSEL
    return;
  }
  const uint32_t src0 = words[0] & 0x1ff;
  const bool dpp = src0 == 0xfa || src0 == 0xe9 || src0 == 0xea;
  if (halves & 1) words[dpp ? 1 : 0] |= 0x80;
  if (halves & 2) words[0] |= 0x80u << 9;
  if (halves & 8) words[0] |= 0x80u << 17;
}

void fill_unused(Words& words, bool gfx9, size_t used, uint32_t value) {
  if (!is_long(words, gfx9)) return;
  for (size_t i = used; i < 3; ++i) {
    words[1] &= ~(0x1ffu << (9 * i));
    words[1] |= value << (9 * i);
  }
}

/// The sources that come from fields. Field i of an instruction is the i-th of them.
std::vector<size_t> fields_of(const Form& form) {
  std::vector<size_t> fields;
  for (size_t i = 0; i < form.sources.size(); ++i) {
    const Source::Kind kind = form.sources[i].kind;
    if (kind != Source::destination && kind != Source::constant) fields.push_back(i);
  }
  return fields;
}

class WordForms {
 public:
  WordForms(const Spec& spec, const Target& target, const Form& plain)
      : spec_(spec), target_(target), plain_(plain), fields_(fields_of(plain)) {
    plain_.rounds = 2;
  }

  std::vector<Form> make() {
    if (generation(target_) >= 11) halves();
    for (const uint32_t value : {0x80u, 0x1ffu}) unused(value);
    return std::move(forms_);
  }

 private:
  void halves() {
    unsigned possible = spec_.has_value && is_half(spec_.result) ? 8 : 0;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (is_half(spec_.sources[fields_[i]])) possible |= 1u << i;
    }
    for (unsigned chosen = 1; chosen < 16; ++chosen) {
      if ((chosen & ~possible) != 0) continue;
      add_halves(chosen, plain_, "_e32");
      add_halves(chosen, plain_, "_e64");
      add_halves(chosen, plain_, "");
      Form shuffled = plain_;
      shuffled.dpp.text = " quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf";
      for (int lane = 0; lane < target_.lanes(); ++lane) shuffled.dpp.from.push_back(lane ^ 3);
      if (spec_.is_cmpx || fields_.empty() || fields_[0] != 0) continue;
      add_halves(chosen, shuffled, "_dpp");
      add_halves(chosen, shuffled, "_e64_dpp");
    }
  }

  void add_halves(unsigned chosen, Form form, const std::string& suffix) {
    write_text(spec_, target_, suffix, form);  // before halves are chosen: it can't write them
    form.text += " ; halves " + std::to_string(chosen);
    form.dst_hi = (chosen & 8) != 0;
    for (size_t i = 0; i < fields_.size(); ++i) {
      form.sources[fields_[i]].hi = (chosen >> i & 1) != 0;
    }
    if (spec_.is_accumulate) form.sources.back().hi = form.dst_hi;
    form.patch = [chosen](Words& words) { name_halves(words, chosen); };
    forms_.push_back(std::move(form));
  }

  void unused(uint32_t value) {
    const size_t used = fields_.size() - (spec_.reads_vcc ? 1 : 0);
    if (used >= 3 || spec_.constant >= 0) return;
    const bool gfx9 = is_gfx9(target_);
    for (const char* suffix : {"_e64", ""}) {
      Form form = plain_;
      write_text(spec_, target_, suffix, form);
      form.text += " ; unused fields " + std::to_string(value);
      form.patch = [=](Words& words) { fill_unused(words, gfx9, used, value); };
      forms_.push_back(std::move(form));
    }
  }

  const Spec& spec_;
  const Target& target_;
  Form plain_;
  const std::vector<size_t> fields_;
  std::vector<Form> forms_;
};

}  // namespace

std::vector<Form> word_forms(const Spec& spec, const Target& target, const Form& plain) {
  return WordForms(spec, target, plain).make();
}

}  // namespace emu::test
