#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wick::text {

// Unicode for the readers of vocabularies. All texts are well-formed UTF-8.

/// Returns the code point at `at` and moves `at` behind it.
uint32_t next_code_point(std::string_view text, size_t& at);

/// White_Space.
bool is_space(uint32_t point);
/// General category P, or a symbol of ASCII.
bool is_punctuation(uint32_t point);
/// General category C, but not tab, line feed and carriage return.
bool is_control(uint32_t point);
/// General category M.
bool is_mark(uint32_t point);
/// General category Mn.
bool is_nonspacing_mark(uint32_t point);
/// Letters, marks, digits, connectors and joiners: the characters of words.
bool is_word_character(uint32_t point);
/// The ideographs that BERT's tokenizers isolate.
bool is_ideograph(uint32_t point);

/// Whether a text consists of ASCII alone.
bool is_ascii(std::string_view text);

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };
/// Normalises `text`. Time is linear in its length.
void normalize(std::string& text, NormalForm form);

/// Converts each character to lower case by its full mapping, without regard to its neighbours.
void to_lower(std::string& text);

/// Returns the end of the extended grapheme cluster that begins at `at`.
size_t end_of_grapheme(std::string_view text, size_t at);

}  // namespace wick::text
