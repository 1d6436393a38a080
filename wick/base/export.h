#pragma once

/// WICK_API marks a symbol of the public library; all other symbols have hidden visibility.
/// WICK_API_VALUE marks a public class that is also [[nodiscard]]: the compiler warns where the
/// result of a function that returns one is ignored. It exists because GCC 12 doesn't accept
/// [[nodiscard]] beside __attribute__ on a class.
#if defined(_WIN32)
#define WICK_API
#define WICK_API_VALUE [[nodiscard]]
#else
#define WICK_API __attribute__((visibility("default")))
#define WICK_API_VALUE [[nodiscard, gnu::visibility("default")]]
#endif
