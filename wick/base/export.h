#pragma once

/// Marks a symbol of the public library; everything else has hidden visibility. WICK_API_VALUE marks
/// a class so whose objects mustn't be ignored where a function returns one; GCC 12 takes no mixture
/// of [[nodiscard]] and __attribute__ there.
#if defined(_WIN32)
#define WICK_API
#define WICK_API_VALUE [[nodiscard]]
#else
#define WICK_API __attribute__((visibility("default")))
#define WICK_API_VALUE [[nodiscard, gnu::visibility("default")]]
#endif
