// Sets registers before a test case and checks them after it.

#include <algorithm>
#include <cstdio>

#include "emu/tests/forms.h"
#include "emu/tests/names.h"

namespace emu::test {
namespace {

bool is_wide(Type type) { return type == Type::b64 || type == Type::f64; }
bool is_half(Type type) { return type == Type::b16 || type == Type::f16; }

uint64_t sign_bit(Type type) {
  if (type == Type::f64) return uint64_t{1} << 63;
  return type == Type::f32 ? 0x80000000 : 0x8000;
}

int part_width(int part) { return part == kWhole ? 32 : part >= kFirstWord ? 16 : 8; }
int part_start(int part) {
  return part == kWhole ? 0 : part >= kFirstWord ? 16 * (part - kFirstWord) : 8 * part;
}

/// Returns part of a register as a 32-bit number.
uint64_t part_of(uint64_t bits, int part, bool sext) {
  const int width = part_width(part);
  const auto value = static_cast<int64_t>(bits >> part_start(part)) & ((int64_t{1} << width) - 1);
  const bool negative = sext && (value >> (width - 1) & 1) != 0;
  return static_cast<uint32_t>(negative ? value - (int64_t{1} << width) : value);
}

/// Returns the bits of a source as the function receives them.
uint64_t source_bits(const Spec& spec, const Form& form, const State& state, size_t i, int lane) {
  const Source& s = form.sources[i];
  const Type type = spec.sources[i];
  const int reg = kSourceReg[i];
  uint64_t raw = 0;
  if (type == Type::bit) {
    const uint64_t mask = state.s64(form.vcc || spec.reads_vcc ? 106 : reg);
    return mask >> lane & 1;
  }
  const int vgpr = s.kind == Source::destination || (form.in_place && i == 0) ? kDst : reg;
  if (s.kind == Source::constant)
    raw = s.value;
  else if (s.kind == Source::sgpr)
    raw = state.s64(reg);
  else
    raw = state.v64(vgpr, lane);
  if (!is_wide(type)) raw &= 0xffffffff;
  if (form.sdwa) raw = part_of(raw, s.part, s.sext);
  if (type == Type::pk_b16 || type == Type::pk_f16) {
    uint64_t lo = s.hi ? raw >> 16 : raw & 0xffff, hi = s.hi_hi ? raw >> 16 : raw & 0xffff;
    if (s.neg) lo ^= 0x8000;
    if (s.neg_hi) hi ^= 0x8000;
    return lo | hi << 16;
  }
  // A constant is a 16-bit value, and the destination of an accumulating instruction is a low half.
  if (is_half(type)) raw = (s.hi ? raw >> 16 : raw) & 0xffff;
  if (s.abs) raw &= ~sign_bit(type);
  if (s.neg) raw ^= sign_bit(type);
  return raw;
}

template <class T>
T output(const Form& form, T value) {
  if (form.omod == 1) value = value * static_cast<T>(2);
  if (form.omod == 2) value = value * static_cast<T>(4);
  if (form.omod == 3) value = value / static_cast<T>(2);
  if (form.omod != 0 && value == 0) value = 0;  // output modifiers don't give -0
  if (!form.clamp) return value;
  if (!(value > static_cast<T>(0))) return static_cast<T>(0);
  return value > static_cast<T>(1) ? static_cast<T>(1) : value;
}

uint64_t output_bits(const Form& form, Type type, uint64_t bits) {
  switch (type) {
    case Type::f32:
      return to_bits(output(form, from_bits<float>(bits)));
    case Type::f64:
      return to_bits(output(form, from_bits<double>(bits)));
    case Type::f16:
      return to_bits(output(form, from_bits<half>(bits)));
    case Type::pk_f16: {
      const auto both = from_bits<Pk<half>>(bits);
      return to_bits(Pk<half>{output(form, both.lo), output(form, both.hi)});
    }
    default:
      return bits;
  }
}

bool is_nan(Type type, uint64_t bits) {
  switch (type) {
    case Type::f32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case Type::f64:
      return (bits & ~(uint64_t{1} << 63)) > uint64_t{0x7ff} << 52;
    case Type::f16:
      return (bits & 0x7fff) > 0x7c00;
    default:
      return false;
  }
}

double as_double(Type type, uint64_t bits) {
  if (type == Type::f64) return from_bits<double>(bits);
  if (type == Type::f32) return from_bits<float>(bits);
  return static_cast<double>(from_bits<half>(bits));
}

double unit(Type type, double value) {
  const int digits = type == Type::f64 ? 53 : type == Type::f32 ? 24 : 11;
  const int least = type == Type::f64 ? -1074 : type == Type::f32 ? -149 : -24;
  if (value == 0) return std::ldexp(1.0, least);
  return std::ldexp(1.0, std::max(std::ilogb(value) - digits + 1, least));
}

bool same(const Spec& spec, Type type, uint64_t want, uint64_t got) {
  if (want == got) return true;
  if (spec.exact_bits) return false;
  if (type == Type::pk_f16) {
    return same(spec, Type::f16, want & 0xffff, got & 0xffff) &&
           same(spec, Type::f16, want >> 16, got >> 16);
  }
  if (is_nan(type, want)) return is_nan(type, got);
  if (spec.ulps == 0 && spec.absolute == 0) return false;
  const double w = as_double(type, want), g = as_double(type, got);
  if (std::isinf(w) || std::isinf(g) || is_nan(type, got)) return false;
  return std::abs(w - g) <= std::max(spec.absolute, spec.ulps * unit(type, w));
}

uint64_t exec_mask(int kind, int lanes, Random& random) {
  const uint64_t all = lanes == 64 ? ~uint64_t{0} : 0xffffffff;
  switch (kind) {
    case 1:
      return 0x5555555555555555 & all;
    case 2:
      return random.next() & all;
    case 3:
      return 0;
    default:
      return all;
  }
}

/// Finds the lane that source 0 comes from, and returns whether the lane is written at all.
bool dpp_reads(const Form& form, const State& state, int lane, int& from, bool& zero) {
  const Dpp& dpp = form.dpp;
  from = dpp.from[static_cast<size_t>(lane)];
  zero = false;
  if ((dpp.row_mask >> (lane / 16) & 1) == 0 || (dpp.bank_mask >> (lane / 4 % 4) & 1) == 0) {
    return false;
  }
  const bool valid = from >= 0 && (dpp.fetch_inactive || (state.exec >> from & 1) != 0);
  zero = !valid;
  if (!valid) from = lane;
  return valid || dpp.bound_zero;
}

std::string describe(const char* what, int lane, uint64_t want, uint64_t got,
                     const std::vector<uint64_t>& in) {
  char text[200];
  std::snprintf(text, sizeof text, "%s, lane %d: want %llx, got %llx; sources", what, lane,
                static_cast<unsigned long long>(want), static_cast<unsigned long long>(got));
  std::string all = text;
  for (const uint64_t bits : in) {
    std::snprintf(text, sizeof text, " %llx", static_cast<unsigned long long>(bits));
    all += text;
  }
  return all;
}

bool denormal(Type type, uint64_t bits) {
  if (type == Type::f32) return (bits & 0x7f800000) == 0 && (bits & 0x7fffff) != 0;
  if (type == Type::f16) return (bits & 0x7c00) == 0 && (bits & 0x3ff) != 0;
  if (type == Type::f64) return (bits >> 52 & 0x7ff) == 0 && (bits << 12) != 0;
  if (type == Type::pk_f16)
    return denormal(Type::f16, bits & 0xffff) || denormal(Type::f16, bits >> 16);
  return false;
}

}  // namespace

void fill(const Spec& spec, const Form& form, const Target& target, Random& random, State& state) {
  state.v.resize(kFormVgprs);
  for (auto& reg : state.v) {
    for (int lane = 0; lane < target.lanes(); ++lane) {
      reg[static_cast<size_t>(lane)] = static_cast<uint32_t>(random.next());
    }
  }
  for (uint32_t& s : state.s) s = static_cast<uint32_t>(random.next());
  state.exec = exec_mask(form.exec, target.lanes(), random);
  state.mode = form.mode & (default_mode(target) | ~kModeIeee);
  for (size_t i = 0; i < spec.sources.size(); ++i) {
    const Type type = spec.sources[i];
    if (type == Type::bit) continue;
    const Source& s = form.sources[i];
    const int reg =
        s.kind == Source::destination || (form.in_place && i == 0) ? kDst : kSourceReg[i];
    const auto value = [&] {
      uint64_t bits = interesting(type, random);
      // In modes that flush denormals (as output modifiers require), a denormal can't be
      // distinguished from zero.
      while ((spec.normal_only || (form.mode & 0xf0) == 0) && denormal(type, bits)) {
        bits = interesting(type, random);
      }
      if (is_half(type)) bits |= uint64_t{interesting(type, random)} << 16;
      return bits;
    };
    if (s.kind == Source::sgpr) state.set_s64(reg, value());
    if (s.kind == Source::constant) continue;
    for (int lane = 0; lane < target.lanes(); ++lane) {
      const uint64_t bits = value();
      state.v[static_cast<size_t>(reg)][static_cast<size_t>(lane)] = static_cast<uint32_t>(bits);
      if (is_wide(type)) state.set_v64(reg, lane, bits);
    }
  }
}

namespace {

/// Returns whether a flushed result is correct, too: if the form's mode flushes output denormals,
/// before or after an output modifier, or if the instruction always flushes.
bool flushed(const Spec& spec, const Form& form, Type type, uint64_t want, uint64_t got) {
  if ((got & ~sign_bit(type)) != 0) return false;
  if (spec.normal_only) return denormal(type, want);
  if ((form.mode & 0xf0) != 0) return false;
  return denormal(type, want) ||
         (form.omod != 0 &&
          std::abs(as_double(type, want)) < 8 * std::ldexp(1.0, type == Type::f16   ? -14
                                                                : type == Type::f32 ? -126
                                                                                    : -1022));
}

/// Before gfx10, only instructions with three operands preserve the other half of the destination,
/// and only they can write to an upper half. Instructions with "legacy" in their name clear the
/// other half.
bool zeroes_other_half(const Spec& spec, const Target& target) {
  if (!is_gfx9(target)) return false;
  if (spec.name.find("_legacy_") != spec.name.npos) return true;
  const bool sum = spec.name == "v_add_i16" || spec.name == "v_sub_i16";
  const bool keeps = (spec.sources.size() == 3 && !spec.reads_vcc) || sum;
  return !keeps;
}

/// Checks a result that was written to part of its register, and the rest of the register.
std::string check_part(const Spec& spec, const Form& form, uint64_t old, uint64_t now,
                       uint64_t want, int lane, const std::vector<uint64_t>& in) {
  const int width = part_width(form.dst_part), start = part_start(form.dst_part);
  const uint64_t mask = (uint64_t{1} << width) - 1, got = now >> start & mask;
  const bool right = spec.result == Type::f16 ? same(spec, Type::f16, want, got) ||
                                                    flushed(spec, form, Type::f16, want, got)
                                              : got == (want & mask);
  if (!right) return describe("the part", lane, want & mask, got, in);
  const uint64_t others = ~(mask << start) & 0xffffffff;
  const uint64_t above = others & ~((uint64_t{1} << start) - 1);
  const bool negative = (got >> (width - 1) & 1) != 0;
  const uint64_t rest = form.dst_unused == 2   ? old & others
                        : form.dst_unused == 1 ? (negative ? above : 0)
                                               : 0;
  return (now & others) == rest ? "" : describe("the rest", lane, rest, now & others, in);
}

std::string check_value(const Spec& spec, const Form& form, const Target& target, int lane,
                        const State& before, const State& after, const std::vector<uint64_t>& in,
                        uint64_t want) {
  const auto old = is_wide(spec.result) ? before.v64(kDst, lane) : before.v[kDst][lane];
  const auto now = is_wide(spec.result) ? after.v64(kDst, lane) : after.v[kDst][lane];
  if (form.dst_part != kWhole) return check_part(spec, form, old, now, want, lane, in);
  if (!is_half(spec.result)) {
    if (same(spec, spec.result, want, now) || flushed(spec, form, spec.result, want, now))
      return "";
    return describe("value", lane, want, now, in);
  }
  const uint64_t got = form.dst_hi ? now >> 16 : now & 0xffff;
  if (!same(spec, spec.result, want, got) && !flushed(spec, form, spec.result, want, got)) {
    return describe("value", lane, want, got, in);
  }
  const uint64_t rest = form.dst_hi ? now & 0xffff : now >> 16;
  const uint64_t rest_before = zeroes_other_half(spec, target) ? 0
                               : form.dst_hi                   ? old & 0xffff
                                                               : old >> 16;
  return rest == rest_before ? "" : describe("the other half", lane, rest_before, rest, in);
}

/// Checks that every other register is unchanged.
std::string check_rest(const Spec& spec, const Form& form, const Target& target,
                       const State& before, const State& after) {
  for (int reg = 0; reg < kFormVgprs; ++reg) {
    if (spec.has_value && reg >= kDst && reg < kDst + (is_wide(spec.result) ? 2 : 1)) continue;
    if (!std::equal(before.v[reg].begin(), before.v[reg].begin() + target.lanes(),
                    after.v[reg].begin())) {
      return "v" + std::to_string(reg) + " has changed";
    }
  }
  const int mask = form.vcc ? 106 : kMaskOut;
  for (int reg = 0; reg < 106; ++reg) {
    if (spec.has_bit && reg >= mask && reg < mask + target.lanes() / 32) continue;
    if (before.s[reg] != after.s[reg]) return "s" + std::to_string(reg) + " has changed";
  }
  if (!spec.is_cmpx && before.exec != after.exec) return "EXEC has changed";
  return "";
}

}  // namespace

std::string compare(const Spec& spec, const Form& form, const Target& target, const State& before,
                    const State& after) {
  uint64_t bits = 0;
  for (int lane = 0; lane < target.lanes(); ++lane) {
    int from = lane;
    bool zero = false;
    bool written = (before.exec >> lane & 1) != 0;
    if (written && !form.dpp.text.empty()) written = dpp_reads(form, before, lane, from, zero);
    std::vector<uint64_t> in(spec.sources.size());
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = source_bits(spec, form, before, i, i == 0 ? from : lane);
      if (i == 0 && zero) {
        Form none = form;
        in[i] = form.sources[0].neg && !form.sources[0].abs ? sign_bit(spec.sources[0]) : 0;
      }
    }
    if (!written) {
      if (!spec.has_value) continue;
      for (int reg = kDst; reg < kDst + (is_wide(spec.result) ? 2 : 1); ++reg) {
        if (before.v[reg][lane] != after.v[reg][lane]) {
          return describe("a lane that is off", lane, before.v[reg][lane], after.v[reg][lane], in);
        }
      }
      continue;
    }
    bool skip = false;
    for (size_t i = 0; i < in.size(); ++i)
      skip |= spec.normal_only && denormal(spec.sources[i], in[i]);
    if (skip) continue;
    const bool saturate = form.clamp && spec.clamp_reference;
    const Result want = (saturate ? spec.clamp_reference : spec.reference)(in.data());
    if (want.bit) bits |= uint64_t{1} << lane;
    if (!spec.has_value) continue;
    const std::string wrong =
        check_value(spec, form, target, lane, before, after, in,
                    saturate ? want.bits : output_bits(form, spec.result, want.bits));
    if (!wrong.empty()) return wrong;
  }
  const uint64_t mask = after.s64(form.vcc ? 106 : kMaskOut);
  if (spec.is_cmpx && is_gfx9(target) && mask != after.exec) return "the mask isn't EXEC";
  if (spec.has_bit) {
    uint64_t got = spec.is_cmpx ? after.exec : mask;
    if (target.lanes() == 32) got &= 0xffffffff;
    if (got != bits) {
      const int lane = __builtin_ctzll(got ^ bits);
      std::vector<uint64_t> in;
      for (size_t i = 0; i < spec.sources.size(); ++i) {
        in.push_back(source_bits(spec, form, before, i, lane));
      }
      return describe("mask", lane, bits, got, in);
    }
  }
  return check_rest(spec, form, target, before, after);
}

}  // namespace emu::test
