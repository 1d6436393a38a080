#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// Classes of errors, for callers that handle them differently. Python's exception types follow
/// from them.
enum class ErrorKind : uint8_t {
  value,            ///< an argument, a shape or the contents of a file is invalid
  type,             ///< a dtype isn't supported
  index,            ///< a dim, an id or a position is out of range
  memory,           ///< out of memory
  file,             ///< a file can't be opened, read or written
  not_implemented,  ///< wick doesn't implement the request
  runtime,          ///< the state of a device, a session or the process is invalid
};
inline constexpr int kErrorKindCount = 7;

/// The only exception type of wick.
///
/// Every message has the form `op: what is wrong: operands: rule`; operands and rule may be
/// missing. For example:
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

  /// The text before the first colon: the op, file or option at fault.
  const std::string& op() const noexcept { return op_; }

 private:
  std::string op_;
  ErrorKind kind_;
};

}  // namespace wick
