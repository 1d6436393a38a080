#pragma once

#include <span>
#include <string_view>

#include "wick/text/jinja/library/library.h"
#include "wick/text/jinja/values/operators.h"

namespace wick::text::jinja {

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

/// The filters of strings and numbers, and those of lists and dicts.
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> sequence_filters();

}  // namespace wick::text::jinja
