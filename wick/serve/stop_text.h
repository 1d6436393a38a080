#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace wick::serve {

/// Passes text on until one of some strings appears in it. Text that may be the beginning of such a
/// string is held back until the following text decides.
class StopText {
 public:
  /// Empty strings are ignored.
  explicit StopText(const std::vector<std::string>& stops) {
    for (const std::string& stop : stops) {
      if (!stop.empty()) stops_.push_back(stop);
    }
  }
  /// Returns the text that may be shown now. After a stop string there is none.
  std::string push(std::string_view text) {
    if (found_) return {};
    held_ += text;
    size_t first = std::string::npos;
    for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
    if (first != std::string::npos) {
      found_ = true;
      return take(first);
    }
    return take(held_.size() - undecided());
  }
  /// Returns the text that was held back.
  std::string finish() { return found_ ? std::string() : take(held_.size()); }
  bool found() const { return found_; }

 private:
  /// The length of the longest end of held_ that a stop string begins with.
  size_t undecided() const {
    size_t most = 0;
    for (const std::string& stop : stops_) {
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > most; --n) {
        if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) most = n;
      }
    }
    return most;
  }
  std::string take(size_t count) {
    std::string taken = held_.substr(0, count);
    held_.erase(0, count);
    return taken;
  }

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace wick::serve
