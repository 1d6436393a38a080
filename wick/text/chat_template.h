#pragma once

#include <string_view>

#include "wick/base/export.h"
#include "wick/text/chat.h"

namespace wick::text {

/// Whether a chat template (Jinja text) renders the turns of render_chat(). Jinja isn't evaluated:
/// the template's output, in the order of its text, must be turns of `format`, with marker, role,
/// content, marker and newlines as ChatFormat describes them. A role or content may be any
/// expression; in place of content there may be the default system message. Content must be trimmed
/// in Llama 3's turns and untrimmed in ChatML's. Branches and loops for tools are skipped, since no
/// tools are offered. False: the template may render something else.
WICK_API bool gives_turns(std::string_view chat_template, ChatFormat format);

/// "ChatML" or "Llama 3".
WICK_API std::string_view name(ChatFormat format);

}  // namespace wick::text
