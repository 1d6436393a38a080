#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// Makes `text` safe to print in one line of a terminal: control characters, backslashes and bytes
/// that aren't UTF-8 become \n, \t, \\ or \xNN, and text longer than `max_bytes` is cut and ends in
/// "…".
WICK_API std::string printable(std::string_view text, size_t max_bytes = 200);

}  // namespace wick
