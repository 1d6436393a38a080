#pragma once

// JSON files that come with models. Their contents aren't trusted.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace wick::io {

/// Parses JSON. `name` is the file's name in error messages. Errors: the text isn't JSON; it is
/// nested deeper than 64 levels; an object has a key twice; a number exceeds the range of its type.
nlohmann::json parse_json(std::string_view text, const std::string& name);

/// The contents of a regular file of at most `most` bytes. Errors: it can't be read, is larger, or
/// changed while it was read; the message names it.
std::string read_small_file(const std::string& path, size_t most);

/// Reads and parses a file of at most `most` bytes. Errors: those of read_small_file() and of
/// parse_json().
nlohmann::json read_json(const std::string& path, size_t most);

}  // namespace wick::io
