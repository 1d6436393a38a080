#pragma once

/// Marks a symbol of the public library; everything else has hidden visibility.
#if defined(_WIN32)
#define WICK_API
#else
#define WICK_API __attribute__((visibility("default")))
#endif
