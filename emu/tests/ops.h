#pragma once

// Directed tests of opcodes that work lane by lane. A table gives a mnemonic and a scalar function
// of its operands; this code generates forms, modifiers, EXEC masks and values.

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "emu/tests/harness.h"

namespace emu::test {

enum class Type : uint8_t { b16, f16, b32, f32, b64, f64, pk_b16, pk_f16, bit };

template <class T>
struct Pk {
  T lo, hi;
};
/// A value and one bit of a lane mask, such as a sum and its carry.
template <class T>
struct With {
  T value;
  bool bit;
};

using half = _Float16;

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Type::bit;
  else if constexpr (std::is_same_v<T, float>)
    return Type::f32;
  else if constexpr (std::is_same_v<T, double>)
    return Type::f64;
  else if constexpr (std::is_same_v<T, half>)
    return Type::f16;
  else if constexpr (std::is_same_v<T, Pk<half>>)
    return Type::pk_f16;
  else if constexpr (requires(T t) { t.lo; })
    return Type::pk_b16;
  else if constexpr (sizeof(T) == 8)
    return Type::b64;
  else if constexpr (sizeof(T) == 4)
    return Type::b32;
  else
    return Type::b16;
}

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else if constexpr (requires(T t) { t.lo; }) {
    return {from_bits<decltype(T::lo)>(bits & 0xffff), from_bits<decltype(T::lo)>(bits >> 16)};
  } else if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(bits);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  else
    return std::bit_cast<T>(static_cast<uint16_t>(bits));
}

template <class T>
uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value;
  else if constexpr (requires(T t) { t.lo; })
    return to_bits(value.lo) | to_bits(value.hi) << 16;
  else if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(value);
  else
    return std::bit_cast<uint16_t>(value);
}

struct Result {
  uint64_t bits = 0;
  bool bit = false;
};
using Reference = std::function<Result(const uint64_t*)>;

/// Returns the IEEE bit of MODE, for functions that depend on it.
bool ieee_mode();

struct Spec {
  std::string name;
  std::vector<Type> sources;
  Type result = Type::b32;
  bool has_value = true, has_bit = false;
  Reference reference, clamp_reference;
  double ulps = 0, absolute = 0;
  bool exact_bits = false;     // NaN must match bit by bit, too
  bool is_accumulate = false;  // the destination is also the last source
  int constant = -1;           // index of a source that is always a literal
  bool is_cmpx = false;
  bool normal_only = false;  // denormal inputs may be flushed
  bool no_abs = false;
  bool reads_vcc = false;  // VCC is a source that isn't among the operands

  Spec& ulp(double n) {
    ulps = n;
    return *this;
  }
  Spec& within(double error) {
    absolute = error;
    return *this;
  }
  Spec& exact() {
    exact_bits = true;
    return *this;
  }
  Spec& accumulate() {
    is_accumulate = true;
    return *this;
  }
  Spec& literal(int source) {
    constant = source;
    return *this;
  }
  Spec& normal() {
    normal_only = true;
    return *this;
  }
  Spec& with_vcc() {
    reads_vcc = true;
    return *this;
  }
  Spec& without_abs() {
    no_abs = true;
    return *this;
  }
  template <class F>
  Spec& clamped(F f);
};

template <class F, class R, class C, class... Args>
Reference wrap(F f, R (C::*)(Args...) const) {
  return [f](const uint64_t* in) {
    const auto call = [&]<size_t... I>(std::index_sequence<I...>) {
      return f(from_bits<Args>(in[I])...);
    };
    const R r = call(std::index_sequence_for<Args...>());
    if constexpr (requires { r.bit; })
      return Result{to_bits(r.value), r.bit};
    else if constexpr (std::is_same_v<R, bool>)
      return Result{0, r};
    else
      return Result{to_bits(r), false};
  };
}

template <class F, class R, class C, class... Args>
Spec make_spec(std::string name, F f, R (C::*call)(Args...) const) {
  Spec spec;
  spec.name = std::move(name);
  spec.sources = {type_of<Args>()...};
  spec.reference = wrap(f, call);
  if constexpr (requires(R r) { r.bit; }) {
    spec.result = type_of<decltype(R::value)>();
    spec.has_bit = true;
  } else if constexpr (std::is_same_v<R, bool>) {
    spec.has_value = false;
    spec.has_bit = true;
  } else {
    spec.result = type_of<R>();
  }
  return spec;
}

template <class F>
Spec& Spec::clamped(F f) {
  clamp_reference = wrap(f, &F::operator());
  return *this;
}

class Table {
 public:
  template <class F>
  Spec& op(const std::string& name, F f) {
    specs.push_back(make_spec(name, f, &F::operator()));
    return specs.back();
  }
  std::vector<Spec> specs;
};

// The tables; each has its own file.
void add_float32(Table& table);
void add_float64(Table& table);
void add_float16(Table& table);
void add_integer(Table& table);
void add_bits(Table& table);
void add_convert(Table& table);
void add_packed(Table& table);
void add_compare(Table& table);

/// Returns edge cases of a type first, then random values.
uint64_t interesting(Type type, Random& random);

/// Registers gtest cases "Opcode/<target>.<mnemonic>". Call it before RUN_ALL_TESTS.
void register_ops(const Target& target);

}  // namespace emu::test
