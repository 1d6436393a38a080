#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// The one exception type of wick.
///
/// Every message follows one grammar, `op: what is wrong: operands: rule`, where operands and rule
/// are left out when there is nothing to say, e.g.
/// `matmul: inner dimensions differ: lhs f16[2,8], rhs f16[3,4]: need lhs[-1] == rhs[-2] (8 != 3)`.
class WICK_API Error : public std::runtime_error {
 public:
  Error(std::string_view op, std::string_view what, std::string_view operands = {},
        std::string_view rule = {});
  ~Error() override;

  /// The operation, file or option at fault: the text before the first colon.
  const std::string& op() const noexcept { return op_; }

 private:
  std::string op_;
};

}  // namespace wick
