#pragma once

// Parameter structs as Python arguments: each field is an argument of its name.

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "python/bindings/arguments.h"
#include "wick/tensor/ops.h"

namespace wick::python {

/// Converts one or two numbers to two, for both dims of an image. Error messages begin with `op:
/// name`.
std::array<int64_t, 2> two(IntsArg arg, const char* op, std::string_view name);
/// Converts one number, or a sequence of one, to an int.
int64_t one(IntsArg arg, const char* op, std::string_view name);

/// A field, and the type of its Python argument.
template <class Params, class T>
struct Field {
  using Python = T;
  std::string_view name;
  T Params::* at;
  void set(Params& params, const T& value, const char*) const { params.*at = value; }
};
/// A field with one number per dim that a window moves along: one for lines, two for images.
template <class Params, class T>
struct WindowField {
  using Python = IntsArg;
  std::string_view name;
  T Params::* at;
  void set(Params& params, IntsArg value, const char* op) const {
    if constexpr (std::is_array_v<T>) {
      const std::array<int64_t, 2> numbers = two(value, op, name);
      (params.*at)[0] = numbers[0], (params.*at)[1] = numbers[1];
    } else {
      params.*at = one(value, op, name);
    }
  }
};

/// The fields of a struct; empty for types that aren't parameter structs. kWindow: the number of
/// dims that a window moves along.
template <class T>
struct FieldsOf {
  static constexpr std::tuple<> kAll{};
  static constexpr int kWindow = 0;
};
template <class Params, int kDims>
struct ConvFields {
  static constexpr auto kAll =
      std::tuple(WindowField{"stride", &Params::stride}, WindowField{"padding", &Params::padding},
                 WindowField{"dilation", &Params::dilation}, Field{"groups", &Params::groups});
  static constexpr int kWindow = kDims;
};
template <class Params, int kDims>
struct PoolFields {
  static constexpr auto kAll =
      std::tuple(WindowField{"kernel_size", &Params::kernel},
                 WindowField{"stride", &Params::stride}, WindowField{"padding", &Params::padding},
                 Field{"count_include_pad", &Params::count_include_pad});
  static constexpr int kWindow = kDims;
};
template <>
struct FieldsOf<ConvParams> : ConvFields<ConvParams, 2> {};
template <>
struct FieldsOf<ConvParams1d> : ConvFields<ConvParams1d, 1> {};
template <>
struct FieldsOf<PoolParams> : PoolFields<PoolParams, 2> {};
template <>
struct FieldsOf<PoolParams1d> : PoolFields<PoolParams1d, 1> {};
template <>
struct FieldsOf<AttentionOptions> {
  static constexpr auto kAll = std::tuple(
      Field{"scale", &AttentionOptions::scale}, Field{"causal", &AttentionOptions::causal},
      Field{"window", &AttentionOptions::window}, Field{"soft_cap", &AttentionOptions::soft_cap});
  static constexpr int kWindow = 0;
};

}  // namespace wick::python
