// Comparisons that write a mask or EXEC.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

template <class F>
void both(Table& t, const std::string& rest, F f) {
  t.op("v_cmp_" + rest, f);
  t.op("v_cmpx_" + rest, f).is_cmpx = true;
}

template <class T>
void add_order(Table& t, const std::string& type) {
  both(t, "lt_" + type, [](T a, T b) { return a < b; });
  both(t, "eq_" + type, [](T a, T b) { return a == b; });
  both(t, "le_" + type, [](T a, T b) { return a <= b; });
  both(t, "gt_" + type, [](T a, T b) { return a > b; });
  both(t, "ge_" + type, [](T a, T b) { return a >= b; });
  both(t, "f_" + type, [](T, T) { return false; });
  both(t, "t_" + type, [](T, T) { return true; });
}

template <class T>
void add_integer(Table& t, const std::string& type) {
  add_order<T>(t, type);
  both(t, "ne_" + type, [](T a, T b) { return a != b; });
}

template <class T>
void add_float(Table& t, const std::string& type) {
  add_order<T>(t, type);
  const auto unordered = [](T a, T b) { return a != a || b != b; };
  both(t, "lg_" + type, [](T a, T b) { return a < b || a > b; });
  both(t, "o_" + type, [unordered](T a, T b) { return !unordered(a, b); });
  both(t, "u_" + type, unordered);
  both(t, "nge_" + type, [unordered](T a, T b) { return unordered(a, b) || a < b; });
  both(t, "nlg_" + type, [unordered](T a, T b) { return unordered(a, b) || a == b; });
  both(t, "ngt_" + type, [unordered](T a, T b) { return unordered(a, b) || a <= b; });
  both(t, "nle_" + type, [unordered](T a, T b) { return unordered(a, b) || a > b; });
  both(t, "neq_" + type, [unordered](T a, T b) { return unordered(a, b) || a < b || a > b; });
  both(t, "nlt_" + type, [unordered](T a, T b) { return unordered(a, b) || a >= b; });
}

/// Returns the bit of a class mask that a value belongs to.
template <class T>
int class_of(T x) {
  constexpr int kMantissa = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : 10;
  const uint64_t bits = to_bits(x) << 1 << (64 - 8 * sizeof(T)) >> 1 >> (64 - 8 * sizeof(T));
  const bool negative = sign_of(x);
  if (x != x) return is_signalling(x) ? 0 : 1;
  if (bits == 0) return negative ? 5 : 6;
  if (bits >> kMantissa == 0) return negative ? 4 : 7;
  const uint64_t infinity = ((uint64_t{1} << (8 * sizeof(T) - 1 - kMantissa)) - 1) << kMantissa;
  if (bits == infinity) return negative ? 2 : 9;
  return negative ? 3 : 8;
}

template <class T, class M>
void add_class(Table& t, const std::string& type) {
  both(t, "class_" + type, [](T a, M mask) { return (mask >> class_of(a) & 1) != 0; });
}

}  // namespace

void add_compare(Table& t) {
  add_integer<i32>(t, "i32");
  add_integer<u32>(t, "u32");
  add_integer<i64>(t, "i64");
  add_integer<u64>(t, "u64");
  add_integer<i16>(t, "i16");
  add_integer<u16>(t, "u16");
  add_float<float>(t, "f32");
  add_float<double>(t, "f64");
  add_float<half>(t, "f16");
  add_class<float, u32>(t, "f32");
  add_class<double, u32>(t, "f64");
  add_class<half, u16>(t, "f16");
}

}  // namespace emu::test
