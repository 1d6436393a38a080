#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Characters as Python's str sees them. Text is UTF-8; a byte that begins no character counts as
// one character, which belongs to no class.
namespace wick::text::jinja {

/// A character: its code point, 0xFFFD if ill-formed, and its bytes.
struct Character {
  char32_t point;
  size_t length;
};

/// The first character of non-empty `text`.
Character first_character(std::string_view text);
/// The start of the last character of non-empty `text`.
size_t last_character(std::string_view text);
/// The number of characters.
size_t count_characters(std::string_view text);
/// The byte offset of character `index`; the size of the text if there are fewer.
size_t offset_of(std::string_view text, size_t index);

/// str.isspace() of a character.
bool is_space(char32_t point);
/// Whether str.splitlines() splits at a character.
bool ends_line(char32_t point);
/// Whether repr() shows a character as it is.
bool is_printable(char32_t point);

/// Text without the white space at its start, or at its end.
std::string_view without_leading_space(std::string_view text);
std::string_view without_trailing_space(std::string_view text);

/// Maps each character to upper or lower case by Unicode's one-to-one mappings. Characters that
/// Python maps to several (such as ß) stay.
std::string upper(std::string_view text);
std::string lower(std::string_view text);

/// Classes of characters, as in str.isalpha() and its relatives.
enum class CharacterClass : uint8_t { alpha, alnum, decimal, digit, numeric, upper, lower, word };
/// Whether text isn't empty and all its characters belong to a class.
bool all_in_class(std::string_view text, CharacterClass wanted);
/// Whether the text has a character of a class.
bool any_in_class(std::string_view text, CharacterClass wanted);

}  // namespace wick::text::jinja
