#pragma once

#include <string_view>

namespace wick::text::test {

/// Makes a tokenizer of `data` and encodes and decodes some texts, among them a part of `data`. A
/// first byte '{' begins a tokenizer.json; other data describe the keys of a GGUF file: a line
/// "model pre", and lines with a token's type, its score, its text and a merge, separated by tabs.
/// Returns whether there was a tokenizer; errors of type Error are expected.
bool walk_if_valid(std::string_view data);

}  // namespace wick::text::test
