#pragma once

#include <string>

#include "wick/base/export.h"
#include "wick/io/gguf.h"

namespace wick::io {

/// Errors: the file is one part of a model that was split into several (split.count > 1); the
/// message says which part, and how to join the parts.
WICK_API void require_whole(const Gguf& file);

}  // namespace wick::io
