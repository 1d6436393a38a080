// Fuzzes the GGUF reader: opens the input as a file and reads everything in it.
//
//   cmake --preset fuzz && ninja -C build/fuzz gguf_fuzz
//   mkdir -p build/fuzz/corpus
//   build/fuzz/bin/gguf_fuzz -max_len=4096 -rss_limit_mb=512 -timeout=5 -max_total_time=1200 \
//       build/fuzz/corpus tests/fuzz/corpus
//
// Each find (crash-*, oom-*, timeout-*) is added to tests/fuzz/corpus/ under a descriptive name.
// The test "GgufCorpus" replays that folder in every build.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/gguf_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wick::io::test::walk_if_valid(std::as_bytes(std::span(data, size)));
  return 0;
}
