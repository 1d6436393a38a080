#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// What sort of thing went wrong, for callers who act on it.
enum class ErrorKind : uint8_t {
  value,            ///< an argument, a shape or what a file says doesn't fit
  type,             ///< a dtype that isn't taken
  index,            ///< a dimension, an id or a position that isn't there
  memory,           ///< there is no more memory
  file,             ///< a file can't be opened, read or written
  not_implemented,  ///< wick doesn't have it
  runtime,          ///< the state of a device, a session or the process; arguments are fine
};
inline constexpr int kErrorKindCount = 7;

/// The one exception type of wick.
///
/// Every message follows one grammar, `op: what is wrong: operands: rule`, where operands and rule
/// are left out when there is nothing to say, e.g.
/// `matmul: inner dimensions differ: lhs f16[2,8], rhs f16[3,4]: need lhs[-1] == rhs[-2] (8 != 3)`.
class WICK_API Error : public std::runtime_error {
 public:
  Error(std::string_view op, std::string_view what, std::string_view operands = {},
        std::string_view rule = {})
      : Error(ErrorKind::value, op, what, operands, rule) {}
  Error(ErrorKind kind, std::string_view op, std::string_view what, std::string_view operands = {},
        std::string_view rule = {});
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }

  /// The operation, file or option at fault: the text before the first colon.
  const std::string& op() const noexcept { return op_; }

 private:
  std::string op_;
  ErrorKind kind_;
};

}  // namespace wick
