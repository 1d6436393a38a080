#include "emu/tests/forms.h"

#include <algorithm>

#include "emu/tests/names.h"

namespace emu::test {
namespace {

bool is_float(Type type) { return type == Type::f16 || type == Type::f32 || type == Type::f64; }
bool is_packed(Type type) { return type == Type::pk_b16 || type == Type::pk_f16; }
bool is_wide(Type type) { return type == Type::b64 || type == Type::f64; }
bool is_half(Type type) { return type == Type::b16 || type == Type::f16; }

std::string reg(char file, int number, bool wide) {
  const std::string n = std::to_string(number);
  return wide ? std::string(1, file) + "[" + n + ":" + std::to_string(number + 1) + "]" : file + n;
}

std::string source_text(const Spec& spec, const Form& form, const Target& target, size_t i) {
  const Source& s = form.sources[i];
  const Type type = spec.sources[i];
  std::string text;
  if (type == Type::bit) {
    if (spec.reads_vcc) return "";
    return form.vcc ? (target.wave64 ? "vcc" : "vcc_lo") : reg('s', kSourceReg[i], target.wave64);
  }
  switch (s.kind) {
    case Source::vgpr:
      text = reg('v', form.in_place && i == 0 ? kDst : kSourceReg[i], is_wide(type));
      break;
    case Source::sgpr:
      text = reg('s', kSourceReg[i], is_wide(type));
      break;
    case Source::constant:
      text = s.text;
      break;
    case Source::destination:
      return "";
  }
  if (is_packed(type)) return text;
  if (s.sext) text = "sext(" + text + ")";
  if (s.abs) text = "|" + text + "|";
  if (s.neg) text = "-" + text;
  return text;
}

std::string list(const char* name, const std::vector<int>& values) {
  std::string text = std::string(" ") + name + ":[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
  return text + "]";
}

void append_selects(const Spec& spec, const Form& form, std::string& text) {
  std::vector<int> sel, sel_hi, neg_lo, neg_hi;
  for (size_t i = 0; i < form.sources.size(); ++i) {
    const Source& s = form.sources[i];
    if (s.kind == Source::destination) continue;
    sel.push_back(s.hi);
    sel_hi.push_back(s.hi_hi);
    neg_lo.push_back(s.neg);
    neg_hi.push_back(s.neg_hi);
  }
  const auto any = [](const std::vector<int>& v, int want) {
    return std::find(v.begin(), v.end(), want) != v.end();
  };
  const bool packed = !spec.sources.empty() && is_packed(spec.sources[0]);
  if (!packed) {
    if (is_half(spec.result) && spec.has_value) sel.push_back(form.dst_hi);
    if (any(sel, 1)) text += list("op_sel", sel);
    return;
  }
  if (any(sel, 1)) text += list("op_sel", sel);
  if (any(sel_hi, 0)) text += list("op_sel_hi", sel_hi);
  if (any(neg_lo, 1)) text += list("neg_lo", neg_lo);
  if (any(neg_hi, 1)) text += list("neg_hi", neg_hi);
}

void append_parts(const Spec& spec, const Form& form, std::string& text) {
  static constexpr const char* kParts[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                           "WORD_0", "WORD_1", "DWORD"};
  static constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
  if (spec.has_value) {
    text += std::string(" dst_sel:") + kParts[form.dst_part] + " dst_unused:";
    text += kUnused[form.dst_unused];
  }
  for (size_t i = 0; i < form.sources.size(); ++i) {
    if (spec.sources[i] == Type::bit) continue;
    text += " src" + std::to_string(i) + "_sel:" + kParts[form.sources[i].part];
  }
}

}  // namespace

void write_text(const Spec& spec, const Target& target, const std::string& suffix, Form& form) {
  std::vector<std::string> operands;
  if (spec.has_value) operands.push_back(reg('v', kDst, is_wide(spec.result)));
  // On gfx9, comparisons that change EXEC also write a mask.
  if (spec.has_bit && (!spec.is_cmpx || is_gfx9(target))) {
    operands.push_back(form.vcc ? (target.wave64 ? "vcc" : "vcc_lo")
                                : reg('s', kMaskOut, target.wave64));
  }
  for (size_t i = 0; i < form.sources.size(); ++i) {
    const std::string text = source_text(spec, form, target, i);
    if (!text.empty()) operands.push_back(text);
  }
  std::string text = spec.name + suffix;
  for (size_t i = 0; i < operands.size(); ++i) text += (i ? ", " : " ") + operands[i];
  append_selects(spec, form, text);
  if (form.clamp) text += " clamp";
  if (form.omod == 1) text += " mul:2";
  if (form.omod == 2) text += " mul:4";
  if (form.omod == 3) text += " div:2";
  text += form.dpp.text;
  if (form.sdwa) append_parts(spec, form, text);
  form.text = text;
}

namespace {

uint64_t inline_bits(Type type, double value) {
  switch (type) {
    case Type::f64:
      return to_bits(value);
    case Type::f32:
    case Type::b32:
      return to_bits(static_cast<float>(value));
    default:
      return to_bits(static_cast<half>(value));
  }
}

Dpp make_dpp(const std::string& control, int amount, int lanes, int row_mask, int bank_mask,
             bool bound_zero, bool fi) {
  Dpp dpp;
  dpp.text = " " + control + (amount < 0 ? "" : ":" + std::to_string(amount)) +
             " row_mask:" + std::to_string(row_mask) + " bank_mask:" + std::to_string(bank_mask) +
             (bound_zero ? " bound_ctrl:1" : "") + (fi ? " fi:1" : "");
  dpp.row_mask = row_mask;
  dpp.bank_mask = bank_mask;
  dpp.bound_zero = bound_zero;
  dpp.fetch_inactive = fi;
  for (int lane = 0; lane < lanes; ++lane) dpp.from.push_back(dpp_lane(control, amount, lane));
  return dpp;
}

std::vector<Dpp> dpp_controls(int lanes, bool gfx9) {
  std::vector<Dpp> all = {
      make_dpp("quad_perm:[3,2,1,0]", -1, lanes, 15, 15, false, false),
      make_dpp("quad_perm:[1,1,3,0]", -1, lanes, 5, 15, true, false),
      make_dpp("row_shl", 1, lanes, 15, 15, false, false),
      make_dpp("row_shl", 15, lanes, 15, 10, true, false),
      make_dpp("row_shr", 3, lanes, 15, 15, true, false),
      make_dpp("row_ror", 5, lanes, 15, 15, false, false),
      make_dpp("row_mirror", -1, lanes, 15, 15, false, false),
      make_dpp("row_half_mirror", -1, lanes, 10, 6, false, false),
  };
  if (gfx9) {
    all.push_back(make_dpp("row_newbcast", 6, lanes, 15, 15, false, false));
    all.push_back(make_dpp("row_bcast", 15, lanes, 10, 15, false, false));
    all.push_back(make_dpp("row_bcast", 31, lanes, 12, 15, false, false));
    all.push_back(make_dpp("wave_ror", 1, lanes, 15, 15, false, false));
    return all;
  }
  all.push_back(make_dpp("row_share", 6, lanes, 15, 15, false, true));
  all.push_back(make_dpp("row_xmask", 9, lanes, 15, 15, true, true));
  for (const bool fi : {false, true}) {
    static const int perm[8] = {7, 0, 5, 2, 2, 6, 1, 4};
    Dpp eight;
    eight.text = std::string(" dpp8:[7,0,5,2,2,6,1,4]") + (fi ? " fi:1" : "");
    eight.bound_zero = true;  // a disabled source lane reads as zero
    eight.fetch_inactive = fi;
    for (int lane = 0; lane < lanes; ++lane) eight.from.push_back(lane / 8 * 8 + perm[lane % 8]);
    all.push_back(eight);
  }
  return all;
}

/// Adds the forms of one spec. The first form must exist on the target.
class Maker {
 public:
  Maker(const Spec& spec, const Target& target) : spec_(spec), target_(target) {
    plain_.sources.resize(spec.sources.size());
    for (size_t i = 0; i < spec.sources.size(); ++i) {
      Source& s = plain_.sources[i];
      if (spec.is_accumulate && i + 1 == spec.sources.size()) s.kind = Source::destination;
      if (spec.constant == static_cast<int>(i)) set_constant(s, "0x40490fdb", 0x40490fdb);
      if (s.kind == Source::constant && is_half(spec.sources[i])) set_constant(s, "0x4248", 0x4248);
    }
  }

  std::vector<Form> make() {
    Form first = plain_;
    first.rounds = 24;
    add(first, "");
    for (int exec = 1; exec <= 3; ++exec) {
      Form form = plain_;
      form.exec = exec;
      add(form, "");
    }
    Form in_place = plain_;
    in_place.in_place = !spec_.sources.empty() && spec_.has_value && !spec_.is_accumulate &&
                        plain_.sources[0].kind == Source::vgpr &&
                        is_wide(spec_.sources[0]) == is_wide(spec_.result);
    if (in_place.in_place) add(in_place, "");
    carry();
    scalars();
    constants();
    signs();
    selects();
    output();
    cross_lane();
    parts();
    for (Form& form : word_forms(spec_, target_, plain_)) forms_.push_back(std::move(form));
    return std::move(forms_);
  }

 private:
  static void set_constant(Source& s, std::string text, uint64_t value) {
    s.kind = Source::constant;
    s.text = std::move(text);
    s.value = value;
  }

  void add(Form form, const std::string& suffix) {
    write_text(spec_, target_, suffix, form);
    forms_.push_back(std::move(form));
  }

  bool variable(size_t i) const {
    return plain_.sources[i].kind == Source::vgpr && spec_.sources[i] != Type::bit;
  }

  void carry() {
    if (spec_.reads_vcc) return;
    if (!spec_.has_bit && (spec_.sources.empty() || spec_.sources.back() != Type::bit)) return;
    Form form = plain_;
    form.vcc = true;
    add(form, "");
    add(form, "_e32");
  }

  void scalars() {
    for (size_t i = 0; i < plain_.sources.size(); ++i) {
      if (!variable(i)) continue;
      Form form = plain_;
      form.sources[i].kind = Source::sgpr;
      add(form, "");
      add(form, "_e64");
    }
    if (plain_.sources.size() > 1 && variable(0) && variable(1)) {
      Form form = plain_;
      form.sources[0].kind = form.sources[1].kind = Source::sgpr;
      add(form, "");
    }
  }

  void constants() {
    for (size_t i = 0; i < plain_.sources.size(); ++i) {
      if (!variable(i)) continue;
      const Type type = spec_.sources[i];
      const bool packed = is_packed(type);
      Form form = plain_;
      form.sources[i].hi_hi = !packed;
      const uint64_t minus_four = is_wide(type)             ? ~uint64_t{3}
                                  : packed || is_half(type) ? 0xfffc
                                                            : 0xfffffffc;
      if (!packed) {
        set_constant(form.sources[i], "-4", minus_four);
        add(form, "");
      }
      if (is_float(type) || type == Type::pk_f16) {
        set_constant(form.sources[i], "-0.5", inline_bits(type, -0.5));
        add(form, "");
        set_constant(form.sources[i], "4.0", inline_bits(type, 4.0));
        add(form, "");
      }
      if (type == Type::b32 || type == Type::f32) {
        set_constant(form.sources[i], "0xc2f60123", 0xc2f60123);
        add(form, "");
        set_constant(form.sources[i], "64", 64);
        add(form, "");
      }
    }
  }

  void signs() {
    for (size_t i = 0; i < plain_.sources.size(); ++i) {
      if (!is_float(spec_.sources[i]) || !variable(i)) continue;
      for (int bits = 1; bits < 4; ++bits) {
        if (spec_.no_abs && bits > 1) continue;
        Form form = plain_;
        form.sources[i].neg = bits & 1;
        form.sources[i].abs = bits & 2;
        add(form, "");
      }
    }
    if (plain_.sources.size() < 2 || !is_float(spec_.sources[0])) return;
    Form form = plain_;
    for (size_t i = 0; i < form.sources.size(); ++i) {
      if (is_float(spec_.sources[i]) && variable(i)) form.sources[i].neg = true;
    }
    add(form, "");
  }

  void selects() {
    for (size_t i = 0; i < plain_.sources.size(); ++i) {
      if (is_half(spec_.sources[i]) && variable(i)) {
        Form form = plain_;
        form.sources[i].hi = true;
        add(form, "");
        add(form, "_e64");
      }
      if (!is_packed(spec_.sources[i]) || !variable(i)) continue;
      for (int bits = 0; bits < 4; ++bits) {
        Form form = plain_;
        form.sources[i].hi = bits & 1;
        form.sources[i].hi_hi = bits & 2;
        add(form, "");
      }
      for (int bits = 1; spec_.sources[i] == Type::pk_f16 && bits < 4; ++bits) {
        Form form = plain_;
        form.sources[i].neg = bits & 1;
        form.sources[i].neg_hi = bits & 2;
        add(form, "");
      }
    }
    if (!is_half(spec_.result) || !spec_.has_value) return;
    Form form = plain_;
    if (spec_.is_accumulate) return;
    form.dst_hi = true;
    add(form, "");
    add(form, "_e64");
  }

  void output() {
    Form form = plain_;
    if ((spec_.has_value && (is_float(spec_.result) || spec_.result == Type::pk_f16)) ||
        spec_.clamp_reference) {
      form.clamp = true;
      add(form, "");
      form.clamp = false;
    }
    if (!spec_.has_value || !is_float(spec_.result)) return;
    for (int omod = 1; omod <= 3; ++omod) {
      form.omod = omod;
      // The hardware applies output modifiers only if the mode has neither denormals nor the IEEE
      // bit.
      form.mode = kModeClamp;
      if (spec_.ulps == 0 && spec_.absolute == 0) add(form, "");
    }
  }

  void cross_lane() {
    if (spec_.is_cmpx || plain_.sources.empty() || !variable(0)) return;
    for (const Dpp& dpp : dpp_controls(target_.lanes(), is_gfx9(target_))) {
      for (int exec : {0, 2}) {
        if (spec_.has_bit && (exec != 0 || dpp.row_mask != 15 || dpp.bank_mask != 15)) continue;
        if (spec_.has_bit && std::find(dpp.from.begin(), dpp.from.end(), -1) != dpp.from.end()) {
          continue;
        }
        Form form = plain_;
        form.dpp = dpp;
        form.exec = exec;
        form.rounds = 2;
        add(form, generation(target_) < 11 ? "_dpp" : "");
        form.in_place = spec_.has_value && !spec_.is_accumulate;
        if (form.in_place && !is_wide(spec_.result)) add(form, "");
        form.in_place = false;
        if (generation(target_) >= 11) add(form, "_e64_dpp");
      }
    }
  }

  /// SDWA, which reads parts of registers and writes the result to part of one.
  void parts() {
    if (generation(target_) > 10 || !has_parts()) return;
    struct Pick {
      int from[2];
      bool sext[2];
      int to, unused;
    };
    static constexpr Pick kPicks[] = {
        {{0, 3}, {false, false}, kWhole, 0}, {{1, 5}, {true, false}, 4, 0},
        {{4, 2}, {false, true}, 5, 2},       {{kWhole, 1}, {false, true}, 0, 1},
        {{5, 4}, {true, true}, 1, 2},        {{2, kWhole}, {true, false}, 3, 1},
        {{3, 0}, {true, true}, 2, 0},        {{kWhole, 4}, {false, false}, 4, 1},
        {{1, kWhole}, {false, false}, 1, 1}, {{5, 5}, {false, true}, 4, 2}};
    Form form = plain_;
    form.sdwa = true;
    form.rounds = 2;
    form.vcc = spec_.has_value;  // carries; a comparison's mask may be any pair
    for (const Pick& pick : kPicks) {
      for (size_t i = 0; i < std::min<size_t>(form.sources.size(), 2); ++i) {
        pick_part(spec_.sources[i], pick.from[i], pick.sext[i], form.sources[i]);
      }
      form.dst_part = spec_.result == Type::f32   ? kWhole
                      : spec_.result == Type::f16 ? std::max(pick.to, kFirstWord)
                                                  : pick.to;
      form.dst_unused = pick.unused;
      form.exec = form.exec == 0 ? 2 : 0;
      add(form, "_sdwa");
    }
    form.in_place = spec_.has_value;
    add(form, "_sdwa");
    form.in_place = false;
    form.sources[0].kind = Source::sgpr;
    add(form, "_sdwa");
    form.sources[0].kind = Source::vgpr;
    form.clamp = spec_.clamp_reference || (spec_.has_value && is_float(spec_.result));
    form.sources[0].neg = form.sources[0].abs = is_float(spec_.sources[0]);
    if (form.clamp || form.sources[0].neg) add(form, "_sdwa");
  }

  bool has_parts() const {
    const auto narrow = [](Type type) { return !is_wide(type) && !is_packed(type); };
    const auto& types = spec_.sources;
    const bool carry = types.size() == 3 && types[2] == Type::bit && !spec_.reads_vcc;
    return !spec_.is_accumulate && !types.empty() && (types.size() < 3 || carry) &&
           narrow(spec_.result) && std::all_of(types.begin(), types.end(), narrow);
  }

  /// Selects part of a source: a word for f16 and the whole register for f32. Bytes of floats would
  /// be meaningless, although a register has them.
  static void pick_part(Type type, int part, bool sext, Source& to) {
    to.part = type == Type::f32 ? kWhole : type == Type::f16 ? kFirstWord + part % 2 : part;
    to.sext = sext && !is_float(type) && to.part != kWhole;
  }

  const Spec& spec_;
  const Target& target_;
  Form plain_;
  std::vector<Form> forms_;
};

}  // namespace

int dpp_lane(const std::string& control, int amount, int lane) {
  const int row = lane - lane % 16, i = lane % 16;
  if (control.starts_with("quad_perm"))
    return lane - lane % 4 + (control[11 + 2 * (lane % 4)] - '0');
  if (control == "row_shl") return i + amount > 15 ? -1 : lane + amount;
  if (control == "row_shr") return i - amount < 0 ? -1 : lane - amount;
  if (control == "row_ror") return row + (i + 16 - amount) % 16;
  if (control == "row_mirror") return row + 15 - i;
  if (control == "row_half_mirror") return row + (i < 8 ? 7 - i : 23 - i);
  if (control == "row_share" || control == "row_newbcast") return row + amount;
  if (control == "row_bcast") return lane / (amount + 1) * (amount + 1) - 1;
  if (control == "wave_ror") return (lane + 63) % 64;
  return row + (i ^ amount);  // row_xmask
}

std::vector<Form> forms_of(const Spec& spec, const Target& target) {
  return Maker(spec, target).make();
}

}  // namespace emu::test
