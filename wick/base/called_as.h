#pragma once

#include <string_view>

namespace wick {

/// The name that errors of a call give, for ops that several functions call: an id that is out of
/// range of embedding() names `embedding`, though the backend runs index_select. Set for the
/// calling thread while the backend takes the call.
class CalledAs {
 public:
  /// name: of static duration, or null for the op's own name.
  explicit CalledAs(const char* name) : before_(current) { current = name; }
  ~CalledAs() { current = before_; }
  CalledAs(const CalledAs&) = delete;
  CalledAs& operator=(const CalledAs&) = delete;

  /// The name of the thread's call, or `op`.
  static std::string_view name_or(std::string_view op) { return current != nullptr ? current : op; }

 private:
  static inline constinit thread_local const char* current = nullptr;
  const char* const before_;
};

}  // namespace wick
