#pragma once

#include <string>

#include "wick/base/export.h"

namespace wick::models {

/// The path of a model that a user named. A name without a slash that doesn't exist in the working
/// directory is looked up in the folder wick/models of the user's cache (user_cache_folder()), with
/// or without the ending .gguf. Other names are returned as they are. Errors: the name
/// has only blanks; it is in neither folder, and the message lists models of the cache.
WICK_API std::string find_model(const std::string& name);

}  // namespace wick::models
