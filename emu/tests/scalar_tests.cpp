// Scalar instructions: arithmetic, logic, comparisons, moves, EXEC, branches.

#include <gtest/gtest.h>

#include <memory>

#include "emu/tests/covered.h"
#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

/// The operands of an instruction's text.
enum class Shape { result, compare, constant, accumulate, accumulate_constant };

struct ScalarSpec {
  std::string name;
  Shape shape;
  std::vector<Type> sources;
  Type result;
  std::function<u64(const u64*, bool&)> reference;
};

std::vector<ScalarSpec>& specs() {
  static std::vector<ScalarSpec> all;
  return all;
}

template <class F, class R, class C, class... Args>
void add(const std::string& name, Shape shape, F f, R (C::*)(Args...) const) {
  constexpr bool kScc = (std::is_same_v<Args, bool&> || ...);
  ScalarSpec spec;
  spec.name = name;
  spec.shape = shape;
  spec.sources = {type_of<std::remove_reference_t<Args>>()...};
  if (kScc) spec.sources.pop_back();
  spec.result = Type::b32;
  if constexpr (!std::is_void_v<R>) spec.result = type_of<R>();
  spec.reference = [f](const u64* in, bool& scc) -> u64 {
    const auto call = [&]<size_t... I>(std::index_sequence<I...>) {
      const auto get = [&]<class T>(std::type_identity<T>, size_t i) -> decltype(auto) {
        if constexpr (std::is_same_v<T, bool&>)
          return (scc);
        else
          return from_bits<T>(in[i]);
      };
      return f(get(std::type_identity<Args>(), I)...);
    };
    if constexpr (std::is_void_v<R>) {
      call(std::index_sequence_for<Args...>());
      return 0;
    } else {
      return to_bits(call(std::index_sequence_for<Args...>()));
    }
  };
  specs().push_back(std::move(spec));
}

template <class F>
void op(const std::string& name, F f) {
  add(name, Shape::result, f, &F::operator());
}
template <class F>
void cmp(const std::string& name, F f) {
  add(name, Shape::compare, f, &F::operator());
}
template <class F>
void with_constant(const std::string& name, Shape shape, F f) {
  add(name, shape, f, &F::operator());
}

template <class T>
T set(T value, bool& scc) {
  scc = value != 0;
  return value;
}

void add_arithmetic() {
  op("s_add_u32", [](u32 a, u32 b, bool& c) {
    c = (u64{a} + b) >> 32 != 0;
    return a + b;
  });
  op("s_sub_u32", [](u32 a, u32 b, bool& c) {
    c = a < b;
    return a - b;
  });
  op("s_add_i32", [](i32 a, i32 b, bool& c) {
    const i64 sum = i64{a} + b;
    c = sum != static_cast<i32>(sum);
    return static_cast<u32>(sum);
  });
  op("s_sub_i32", [](i32 a, i32 b, bool& c) {
    const i64 sum = i64{a} - b;
    c = sum != static_cast<i32>(sum);
    return static_cast<u32>(sum);
  });
  op("s_addc_u32", [](u32 a, u32 b, bool& c) {
    const u64 sum = u64{a} + b + c;
    c = sum >> 32 != 0;
    return static_cast<u32>(sum);
  });
  op("s_subb_u32", [](u32 a, u32 b, bool& c) {
    const i64 rest = i64{a} - b - c;
    c = rest < 0;
    return static_cast<u32>(rest);
  });
  op("s_absdiff_i32", [](i32 a, i32 b, bool& c) {
    const u32 d = static_cast<u32>(a) - static_cast<u32>(b);
    return set(static_cast<i32>(d) < 0 ? 0 - d : d, c);
  });
  op("s_abs_i32", [](u32 a, bool& c) { return set(static_cast<i32>(a) < 0 ? 0 - a : a, c); });
  op("s_min_i32", [](i32 a, i32 b, bool& c) {
    c = a < b;
    return c ? a : b;
  });
  op("s_min_u32", [](u32 a, u32 b, bool& c) {
    c = a < b;
    return c ? a : b;
  });
  op("s_max_i32", [](i32 a, i32 b, bool& c) {
    c = a >= b;
    return c ? a : b;
  });
  op("s_max_u32", [](u32 a, u32 b, bool& c) {
    c = a >= b;
    return c ? a : b;
  });
  op("s_mul_i32", [](u32 a, u32 b) { return a * b; });
  op("s_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); });
  op("s_mul_hi_i32", [](i32 a, i32 b) { return static_cast<u32>(u64(i64{a} * b) >> 32); });
  for (int n = 1; n <= 4; ++n) {
    op("s_lshl" + std::to_string(n) + "_add_u32", [n](u32 a, u32 b, bool& c) {
      const u64 sum = (u64{a} << n) + b;
      c = sum >> 32 != 0;
      return static_cast<u32>(sum);
    });
  }
  op("s_sext_i32_i8", [](u32 a) { return i32{static_cast<int8_t>(a)}; });
  op("s_sext_i32_i16", [](u32 a) { return i32{static_cast<i16>(a)}; });
}

template <class T>
void add_logic(const std::string& type) {
  op("s_and_" + type, [](T a, T b, bool& c) { return set<T>(a & b, c); });
  op("s_or_" + type, [](T a, T b, bool& c) { return set<T>(a | b, c); });
  op("s_xor_" + type, [](T a, T b, bool& c) { return set<T>(a ^ b, c); });
  op("s_nand_" + type, [](T a, T b, bool& c) { return set<T>(~(a & b), c); });
  op("s_nor_" + type, [](T a, T b, bool& c) { return set<T>(~(a | b), c); });
  op("s_xnor_" + type, [](T a, T b, bool& c) { return set<T>(~(a ^ b), c); });
  op("s_and_not1_" + type, [](T a, T b, bool& c) { return set<T>(a & ~b, c); });
  op("s_or_not1_" + type, [](T a, T b, bool& c) { return set<T>(a | ~b, c); });
  op("s_not_" + type, [](T a, bool& c) { return set<T>(~a, c); });
  op("s_mov_" + type, [](T a) { return a; });
  op("s_cselect_" + type, [](T a, T b, bool& c) { return c ? a : b; });
  with_constant("s_cmov_" + type, Shape::accumulate,
                [](T a, T old, bool& c) { return c ? a : old; });
  constexpr u32 kBits = 8 * sizeof(T);
  op("s_lshl_" + type, [](T a, u32 n, bool& c) { return set<T>(a << (n % kBits), c); });
  op("s_lshr_" + type, [](T a, u32 n, bool& c) { return set<T>(a >> (n % kBits), c); });
  op("s_bfm_" + type, [](u32 n, u32 at) { return ((T{1} << (n % kBits)) - 1) << (at % kBits); });
  op("s_brev_" + type, [](T a) {
    T r = 0;
    for (u32 i = 0; i < kBits; ++i) r |= (a >> i & 1) << (kBits - 1 - i);
    return r;
  });
  op("s_bcnt1_i32_" + type, [](T a, bool& c) {
    u32 n = 0;
    for (u32 i = 0; i < kBits; ++i) n += static_cast<u32>(a >> i & 1);
    return set(n, c);
  });
  op("s_bcnt0_i32_" + type, [](T a, bool& c) {
    u32 n = kBits;
    for (u32 i = 0; i < kBits; ++i) n -= static_cast<u32>(a >> i & 1);
    return set(n, c);
  });
  op("s_ff0_i32_" + type, [](T a) -> i32 {
    for (u32 i = 0; i < kBits; ++i) {
      if (!(a >> i & 1)) return static_cast<i32>(i);
    }
    return -1;
  });
  op("s_ctz_i32_" + type, [](T a) -> i32 {
    for (u32 i = 0; i < kBits; ++i) {
      if (a >> i & 1) return static_cast<i32>(i);
    }
    return -1;
  });
  op(std::string("s_clz_i32_") + (kBits == 32 ? "u32" : "u64"), [](T a) -> i32 {
    for (u32 i = 0; i < kBits; ++i) {
      if (a >> (kBits - 1 - i) & 1) return static_cast<i32>(i);
    }
    return -1;
  });
  op(kBits == 32 ? "s_cls_i32" : "s_cls_i32_i64", [](T a) -> i32 {
    for (u32 i = 1; i < kBits; ++i) {
      if ((a >> (kBits - 1 - i) & 1) != a >> (kBits - 1)) return static_cast<i32>(i);
    }
    return -1;
  });
  op("s_wqm_" + type, [](T a, bool& c) {
    T r = 0;
    for (u32 i = 0; i < kBits; ++i) r |= T{(a >> (i & ~3u) & 15) != 0} << i;
    return set(r, c);
  });
  op("s_quadmask_" + type, [](T a, bool& c) {
    T r = 0;
    for (u32 i = 0; i < kBits / 4; ++i) r |= T{(a >> (4 * i) & 15) != 0} << i;
    return set(r, c);
  });
  cmp("s_bitcmp0_" + type, [](T a, u32 n, bool& c) { c = (a >> (n % kBits) & 1) == 0; });
  cmp("s_bitcmp1_" + type, [](T a, u32 n, bool& c) { c = (a >> (n % kBits) & 1) == 1; });
  with_constant("s_bitset0_" + type, Shape::accumulate,
                [](u32 n, T a) { return a & ~(T{1} << (n % kBits)); });
  with_constant("s_bitset1_" + type, Shape::accumulate,
                [](u32 n, T a) { return a | T{1} << (n % kBits); });
}

/// Returns a field of `width` bits from bit `at` on, of a value extended to 128 bits.
template <class T>
T field(T a, u32 control) {
  constexpr u32 kBits = 8 * sizeof(T);
  const u32 at = control % kBits, width = control >> 16 & 127;
  if (width == 0) return 0;
  if (width >= kBits) return static_cast<T>(a >> at);
  const __int128 wide = __int128{a} >> at;
  const __int128 part = wide & ((__int128{1} << width) - 1);
  if (std::is_signed_v<T> && (part >> (width - 1) & 1) != 0) {
    return static_cast<T>(part - (__int128{1} << width));
  }
  return static_cast<T>(part);
}

void add_fields() {
  op("s_ashr_i32", [](i32 a, u32 n, bool& c) { return set(a >> (n % 32), c); });
  op("s_ashr_i64", [](i64 a, u32 n, bool& c) { return set(a >> (n % 64), c); });
  op("s_bfe_u32", [](u32 a, u32 n, bool& c) { return set(field(a, n), c); });
  op("s_bfe_i32", [](i32 a, u32 n, bool& c) { return set(field(a, n), c); });
  op("s_bfe_u64", [](u64 a, u32 n, bool& c) { return set(field(a, n), c); });
  op("s_bfe_i64", [](i64 a, u32 n, bool& c) { return set(field(a, n), c); });
  op("s_bitreplicate_b64_b32", [](u32 a) {
    u64 r = 0;
    for (int i = 0; i < 64; ++i) r |= u64{a >> (i / 2) & 1} << i;
    return r;
  });
  op("s_pack_ll_b32_b16", [](u32 a, u32 b) { return (a & 0xffff) | b << 16; });
  op("s_pack_lh_b32_b16", [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); });
  op("s_pack_hh_b32_b16", [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); });
  op("s_pack_hl_b32_b16", [](u32 a, u32 b) { return a >> 16 | b << 16; });
}

template <class T>
void add_compare(const std::string& type) {
  cmp("s_cmp_eq_" + type, [](T a, T b, bool& c) { c = a == b; });
  cmp("s_cmp_lg_" + type, [](T a, T b, bool& c) { c = a != b; });
  if (sizeof(T) == 8) return;
  cmp("s_cmp_lt_" + type, [](T a, T b, bool& c) { c = a < b; });
  cmp("s_cmp_le_" + type, [](T a, T b, bool& c) { c = a <= b; });
  cmp("s_cmp_gt_" + type, [](T a, T b, bool& c) { c = a > b; });
  cmp("s_cmp_ge_" + type, [](T a, T b, bool& c) { c = a >= b; });
  const auto k = [&](const char* relation, auto f) {
    with_constant(std::string("s_cmpk_") + relation + "_" + type, Shape::constant, f);
  };
  // The constant is sign- or zero-extended according to the type.
  using K = std::conditional_t<std::is_signed_v<T>, i16, u16>;
  k("eq", [](T a, K b, bool& c) { c = a == T{b}; });
  k("lg", [](T a, K b, bool& c) { c = a != T{b}; });
  k("lt", [](T a, K b, bool& c) { c = a < T{b}; });
  k("le", [](T a, K b, bool& c) { c = a <= T{b}; });
  k("gt", [](T a, K b, bool& c) { c = a > T{b}; });
  k("ge", [](T a, K b, bool& c) { c = a >= T{b}; });
}

void add_constants() {
  const auto k = [](const char* name, auto f) {
    with_constant(name, Shape::accumulate_constant, f);
  };
  k("s_movk_i32", [](i16 b, u32) { return static_cast<u32>(i32{b}); });
  k("s_cmovk_i32", [](i16 b, u32 old, bool& c) { return c ? static_cast<u32>(i32{b}) : old; });
  k("s_mulk_i32", [](i16 b, u32 a) { return a * static_cast<u32>(i32{b}); });
  k("s_addk_i32", [](i16 b, i32 a, bool& c) {
    const i64 sum = i64{a} + b;
    c = sum != static_cast<i32>(sum);
    return static_cast<u32>(sum);
  });
}

bool wide(Type type) { return type == Type::b64; }

std::string sreg(int n, bool pair) {
  return pair ? "s[" + std::to_string(n) + ":" + std::to_string(n + 1) + "]"
              : "s" + std::to_string(n);
}

struct ScalarCase {
  int id;
  std::vector<u64> constants;  // value of each source
  std::vector<bool> is_constant;
};

constexpr int kReg[3] = {10, 20, 30}, kTo = 40;

class ScalarTest : public testing::Test {
 public:
  ScalarTest(std::shared_ptr<Batch> batch, const ScalarSpec& spec, std::vector<ScalarCase> cases)
      : batch_(std::move(batch)), spec_(spec), cases_(std::move(cases)) {}

  void TestBody() override {
    ASSERT_TRUE(batch_->exists(cases_[0].id))
        << "no such instruction: " << batch_->text(cases_[0].id);
    expect_covered(*batch_, cases_[0].id, {spec_.name});
    for (const ScalarCase& each : cases_) {
      if (!batch_->exists(each.id)) continue;
      for (int round = 0; round < 200 && !HasFailure(); ++round) run(each, round);
    }
  }

 private:
  bool accumulates() const {
    return spec_.shape == Shape::accumulate || spec_.shape == Shape::accumulate_constant;
  }

  void run(const ScalarCase& each, int round) {
    Random random(static_cast<u64>(round) * 977 + static_cast<u64>(each.id));
    State state;
    state.v.clear();  // scalar instructions don't use them
    for (u32& s : state.s) s = static_cast<u32>(random.next());
    const size_t count = spec_.sources.size();
    std::vector<u64> in(count);
    for (size_t i = 0; i < count; ++i) {
      in[i] = each.is_constant[i] ? each.constants[i] : interesting(spec_.sources[i], random);
      const int reg = accumulates() && i + 1 == count ? kTo : kReg[i];
      if (each.is_constant[i]) continue;
      state.s[reg] = static_cast<u32>(in[i]);
      if (wide(spec_.sources[i])) state.set_s64(reg, in[i]);
    }
    state.scc = random.next() & 1;
    const State before = state;
    bool scc = state.scc != 0;
    const u64 want = spec_.reference(in.data(), scc);
    const Outcome outcome = batch_->run(each.id, state);
    ASSERT_EQ(outcome.ran, Ran::well)
        << (outcome.ran == Ran::missing ? "missing: " : "") << outcome.message;
    std::string said = batch_->text(each.id) + " of";
    for (u64 bits : in) said += " " + std::to_string(bits);
    EXPECT_EQ(state.scc, scc ? 1u : 0u) << "SCC of " << said << ", before " << before.scc;
    if (spec_.shape != Shape::compare && spec_.shape != Shape::constant) {
      EXPECT_EQ(wide(spec_.result) ? state.s64(kTo) : state.s[kTo], want) << said;
    }
    for (int reg = 0; reg < 106; ++reg) {
      if (reg == kTo || (reg == kTo + 1 && wide(spec_.result))) continue;
      ASSERT_EQ(state.s[reg], before.s[reg]) << "s" << reg << " by " << said;
    }
    EXPECT_EQ(state.exec, before.exec & (batch_->target().wave64 ? ~u64{0} : 0xffffffff)) << said;
  }

  std::shared_ptr<Batch> batch_;
  const ScalarSpec& spec_;
  std::vector<ScalarCase> cases_;
};

ScalarCase add_case(Batch& batch, const ScalarSpec& spec, size_t constant_at,
                    const std::string& text, u64 value) {
  const bool accumulate =
      spec.shape == Shape::accumulate || spec.shape == Shape::accumulate_constant;
  const bool has_result = spec.shape != Shape::compare && spec.shape != Shape::constant;
  std::string line = spec.name + " ";
  if (has_result) line += sreg(kTo, wide(spec.result));
  ScalarCase added;
  const size_t shown = spec.sources.size() - (accumulate ? 1 : 0);
  for (size_t i = 0; i < spec.sources.size(); ++i) {
    const bool is_constant = i == constant_at;
    added.is_constant.push_back(is_constant);
    added.constants.push_back(is_constant ? value : 0);
    if (i >= shown) continue;
    if (i > 0 || has_result) line += ", ";
    line += is_constant ? text : sreg(kReg[i], wide(spec.sources[i]));
  }
  added.id = batch.add(line);
  return added;
}

std::vector<ScalarCase> cases_of(Batch& batch, const ScalarSpec& spec) {
  std::vector<ScalarCase> cases;
  if (spec.shape == Shape::constant || spec.shape == Shape::accumulate_constant) {
    const size_t at = spec.shape == Shape::constant ? 1 : 0;
    for (int k : {0x1234, 0, 1, 0x7fff, 0x8000, 0xffff}) {
      const auto value = static_cast<u64>(k);
      cases.push_back(add_case(batch, spec, at, std::to_string(k), value));
    }
    return cases;
  }
  cases.push_back(add_case(batch, spec, 99, "", 0));
  const size_t shown = spec.sources.size() - (spec.shape == Shape::accumulate ? 1 : 0);
  for (size_t i = 0; i < shown; ++i) {
    const bool pair = wide(spec.sources[i]);
    cases.push_back(add_case(batch, spec, i, "-7", pair ? ~u64{6} : 0xfffffff9));
    cases.push_back(add_case(batch, spec, i, "33", 33));
    cases.push_back(add_case(batch, spec, i, "0x12345", 0x12345));
    if (!pair) cases.push_back(add_case(batch, spec, i, "0x98765432", 0x98765432));
    if (!pair) cases.push_back(add_case(batch, spec, i, "0.5", 0x3f000000));
  }
  return cases;
}

void register_scalar_on(const Target& target) {
  auto named = std::make_shared<std::vector<ScalarSpec>>(specs());
  std::erase_if(*named, [&](ScalarSpec& spec) {
    const std::string anywhere = spec.name;
    spec.name = name_on(target, spec.name);
    return !note_case("Scalar", anywhere, target, {spec.name}, {anywhere});
  });
  auto batch = std::make_shared<Batch>(target);
  auto once = std::make_shared<bool>(false);
  const std::string suite = suite_on("Scalar", target);
  for (const ScalarSpec& spec : *named) {
    auto cases = cases_of(*batch, spec);
    testing::RegisterTest(suite.c_str(), spec.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [named, batch, once, &spec, cases]() -> testing::Test* {
                            if (!*once) batch->assemble();
                            *once = true;
                            return new ScalarTest(batch, spec, cases);
                          });
  }
}

}  // namespace

void register_scalar() {
  add_arithmetic();
  add_logic<u32>("b32");
  add_logic<u64>("b64");
  add_fields();
  add_compare<i32>("i32");
  add_compare<u32>("u32");
  add_compare<u64>("u64");
  add_constants();
  for (const Target& chip : all_chips()) register_scalar_on(chip);
}

}  // namespace emu::test
