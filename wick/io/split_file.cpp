// Models split into several GGUF files: llama.cpp's gguf-split writes split.count and split.no
// (counted from 0) into each.
#include "wick/io/split_file.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::io {

void require_whole(const Gguf& file) {
  const uint64_t count = file.get_u64("split.count", 1);
  if (count <= 1) return;
  const uint64_t part = file.get_u64("split.no", 0);
  const std::string which = part < count ? fmt::format("part {} of {}", part + 1, count)
                                         : fmt::format("split.no = {} of {} parts", part, count);
  throw Error(printable(file.path()), "file is one part of a split model", which,
              "join the parts first: llama-gguf-split --merge FIRST-PART OUT");
}

}  // namespace wick::io
