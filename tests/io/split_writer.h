#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "wick/io/gguf.h"
#include "wick/io/gguf_writer.h"

namespace wick::io::test {

/// What a part says of itself.
struct PartKeys {
  uint32_t no = 0, count = 0;
  int32_t tensors = 0;  ///< of all parts
};

/// Writes a part with the tensors [first, last) of a file. The part with number 0 has the metadata.
inline void write_part(const Gguf& from, const std::string& path, size_t first, size_t last,
                       const PartKeys& keys) {
  GgufWriter w(path);
  if (keys.no == 0) w.copy_metadata(from);
  w.set_u32("split.no", keys.no);
  w.set_u32("split.count", keys.count);
  w.set_i32("split.tensors.count", keys.tensors);
  const auto for_each = [&](const auto& f) {
    for (size_t i = first; i < last; ++i) f(from.tensors()[i]);
  };
  for_each([&](const GgufTensor& t) { w.add_tensor(t.name, *t.dtype, t.shape); });
  for_each([&](const GgufTensor& t) { w.write(t.name, from.data(t)); });
  w.finish();
}

/// Splits a file into parts of about equally many tensors. Returns their paths,
/// PREFIX-00001-of-00003.gguf and so on.
inline std::vector<std::string> split(const Gguf& from, const std::string& prefix, size_t count) {
  std::vector<std::string> paths;
  const size_t tensors = from.tensors().size();
  for (size_t i = 0; i < count; ++i) {
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i + 1, count));
    write_part(from, paths.back(), tensors * i / count, tensors * (i + 1) / count,
               {.no = static_cast<uint32_t>(i),
                .count = static_cast<uint32_t>(count),
                .tensors = static_cast<int32_t>(tensors)});
  }
  return paths;
}

}  // namespace wick::io::test
