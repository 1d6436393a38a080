#pragma once

// Which implementation of a convolution was measured to be the fastest, by shape: in memory, and on
// disk beside the compiled kernels.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "wick/backend/gpu/compile/kernel_cache.h"
#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {

/// wick's kernels, or one of the library's algorithms on operands in one of two formats.
struct ConvChoice {
  bool library = false;
  bool channels_last = false;
  int algorithm = 0;

  bool operator==(const ConvChoice&) const = default;
  /// "own", or for example "channels_last 2".
  std::string str() const;
};

class ConvChoices {
 public:
  /// A shape in the first format, and a number that says which operands are copied in either.
  using Key = std::pair<ConvKey, int64_t>;

  /// context: everything else that times depend on, such as the device and the library's version.
  ConvChoices(std::string context, const KernelCache& cache)
      : context_(std::move(context)), cache_(cache) {}

  /// The choice in memory, otherwise the one on disk; nothing if there is none. A damaged file
  /// counts as none.
  std::optional<ConvChoice> find(const Key& key);
  /// Records a choice in memory and, with `on_disk`, in a file, if possible.
  void store(const Key& key, ConvChoice choice, bool on_disk);

 private:
  std::string file_key(const Key& key) const;

  const std::string context_;
  const KernelCache& cache_;
  std::mutex mutex_;
  std::map<Key, std::optional<ConvChoice>> known_;  ///< nothing: there is no file either
};

}  // namespace wick::gpu
