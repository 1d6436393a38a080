#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/jinja/values/run.h"

namespace wick::text::jinja {

struct Token {
  enum class Kind : uint8_t {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    symbol,
    end,
  };
  Kind kind = Kind::end;
  uint32_t line = 1;
  size_t position = 0;  // byte of the source, after newlines were normalized
  size_t size = 0;
  std::string text;  // data, a name, a string's value, a number's digits or a symbol

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

/// The source as jinja2 sees it: newlines are \n, and one newline at the end is dropped.
std::string normalized(std::string_view source);

/// Splits a normalized source into tokens; comments and trimmed white space are left out. Errors: a
/// tag or string that isn't closed; an unknown character. `run` is used for errors.
std::vector<Token> tokenize(std::string_view source, Run& run);

}  // namespace wick::text::jinja
