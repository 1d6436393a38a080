#pragma once

#include <vector>

#include "python/bindings/binding.h"
#include "wick/text/chat.h"

namespace wick::python {

/// Reads a conversation: mappings with a role, content, and further keys. Errors: an item isn't a
/// mapping; a key is missing; a value has a type that templates don't know.
std::vector<text::ChatMessage> messages_of(const std::vector<nb::object>& items);
/// Reads the named arguments of render_chat and encode_chat.
text::ChatOptions chat_options_of(const nb::kwargs& named);

}  // namespace wick::python
