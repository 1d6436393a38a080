#pragma once

#include <string_view>

#include "wick/base/export.h"
#include "wick/text/chat.h"

namespace wick::text {

/// Whether a chat template (Jinja text) renders the turns that render_chat() renders. Jinja isn't
/// evaluated. The template's literal text, in order, must consist of turns of `format`: marker,
/// role, content, marker and newlines as ChatFormat describes them. A role or content may be any
/// expression; content may also be the default system message. Content must be trimmed in Llama 3's
/// turns and untrimmed in ChatML's. Branches and loops for tools are skipped, because wick offers
/// no tools. False: the template may render something else.
WICK_API bool gives_turns(std::string_view chat_template, ChatFormat format);

/// Returns "ChatML" or "Llama 3".
WICK_API std::string_view name(ChatFormat format);

}  // namespace wick::text
