#include "wick/base/error.h"

namespace wick {
namespace {

std::string compose(std::string_view op, std::string_view what, std::string_view operands,
                    std::string_view rule) {
  std::string message(op);
  for (std::string_view part : {what, operands, rule}) {
    if (part.empty()) continue;
    message += ": ";
    message += part;
  }
  return message;
}

}  // namespace

Error::Error(ErrorKind kind, std::string_view op, std::string_view what, std::string_view operands,
             std::string_view rule)
    : std::runtime_error(compose(op, what, operands, rule)), op_(op), kind_(kind) {}

Error::~Error() = default;  // out of line: one type_info for all shared objects

}  // namespace wick
