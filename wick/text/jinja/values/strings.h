#pragma once

#include <string_view>

#include "wick/text/jinja/values/run.h"
#include "wick/text/jinja/values/value.h"

// Python's methods of str. They keep the marks of content.
namespace wick::text::jinja {

using StringMethod = Value (*)(Run& run, const String& text, Arguments& arguments);
/// Null if str has no such method, or templates can't call it.
StringMethod find_string_method(std::string_view name);
/// Whether a method gives jinja2's Markup for one, without escaping its arguments.
bool keeps_html(std::string_view name);

/// Text without the white space, or without the characters of `characters`, at its ends.
MarkedString stripped(Run& run, const MarkedString& text, const std::string* characters,
                      bool at_start, bool at_end);
/// text.replace(from, to, count); a negative count replaces all.
MarkedString replaced(Run& run, const MarkedString& text, std::string_view from,
                      const MarkedString& to, int64_t count);
/// text.splitlines(keep_ends).
std::vector<MarkedString> lines_of(Run& run, const MarkedString& text, bool keep_ends);
/// text with its characters in upper or lower case.
MarkedString in_case(Run& run, const MarkedString& text, bool upper_case);
/// Text with &, <, > and quotes as HTML's entities.
MarkedString escaped(Run& run, const MarkedString& text);
/// text.capitalize().
MarkedString capitalized(Run& run, const MarkedString& text);
/// Text in the middle of a field of `width` characters.
MarkedString centered(Run& run, const MarkedString& text, int64_t width, std::string_view fill);

}  // namespace wick::text::jinja
