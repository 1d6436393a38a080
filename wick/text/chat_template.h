#pragma once

#include <string_view>

#include "wick/base/export.h"
#include "wick/text/chat.h"

namespace wick::text {

/// Whether a chat template (Jinja text) gives the turns of render_chat(), judged by a rule, as
/// Jinja isn't evaluated. What the template puts out, in the order of its text, must be turns of
/// `format`: marker, role, content, marker and newlines as ChatFormat describes them. A role or
/// content may be any expression; in place of content there may be the default system message.
/// Content must be trimmed in Llama 3's turns and must not be in ChatML's. Branches and loops for
/// tools are passed over, since no tools are offered. False: the template may give something else.
WICK_API bool gives_turns(std::string_view chat_template, ChatFormat format);

/// "ChatML" or "Llama 3".
WICK_API std::string_view name(ChatFormat format);

}  // namespace wick::text
