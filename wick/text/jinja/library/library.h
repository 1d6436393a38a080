#pragma once

#include <optional>
#include <string_view>

#include "wick/text/jinja/values/run.h"
#include "wick/text/jinja/values/value.h"

// The filters, tests and functions of templates, by name.
namespace wick::text::jinja {

using Filter = Value (*)(Run& run, const Value& value, Arguments& arguments);
using Test = bool (*)(Run& run, const Value& value, Arguments& arguments);
/// Null if there is none of this name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
/// A function that every template can call, such as range; nullopt if there is none.
std::optional<Value> find_function(std::string_view name);

}  // namespace wick::text::jinja
