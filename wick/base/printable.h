#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// `text` made fit for one line of a terminal: control characters, backslashes and bytes that are
/// no UTF-8 become \n, \t, \\ or \xNN, and what is longer than `max_bytes` ends in "…".
WICK_API std::string printable(std::string_view text, size_t max_bytes = 200);

}  // namespace wick
