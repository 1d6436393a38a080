#pragma once

#include <cstddef>
#include <cstdint>

namespace wick::text::jinja {

/// Limits of templates and of their evaluation. Exceeding one is an error that names it.
inline constexpr size_t kMaxSource = 4 << 20;       ///< bytes of a template
inline constexpr int kMaxNesting = 200;             ///< expressions or blocks within each other
inline constexpr size_t kMaxSteps = 10'000'000;     ///< nodes, or 256 bytes of strings, evaluated
inline constexpr size_t kMaxMemory = 512ull << 20;  ///< bytes of all strings, lists and dicts made
inline constexpr size_t kMaxString = 64ull << 20;   ///< bytes of one string, and of the output
inline constexpr int kMaxDepth = 200;               ///< lists and dicts within each other
inline constexpr int kMaxCalls = 1000;              ///< nodes being evaluated within each other
inline constexpr size_t kMaxKey = 64;  ///< tuples and values in a tuple that is a dict's key
inline constexpr size_t kMaxParameters = 255;  ///< parameters of a macro
inline constexpr int64_t kMaxRange = 100'000;  ///< elements of range(), as in jinja2's sandbox

}  // namespace wick::text::jinja
