// Fuzzes the readers of vocabularies and the tokenizers that they make.
//
//   cmake --preset fuzz && ninja -C build/fuzz tokenizer_fuzz
//   mkdir -p build/fuzz/tokenizers
//   build/fuzz/bin/tokenizer_fuzz -max_len=8192 -rss_limit_mb=1024 -timeout=10 -max_total_time=1200
//   \
//       build/fuzz/tokenizers tests/fuzz/tokenizers
//
// Each find (crash-*, oom-*, timeout-*) is added to tests/fuzz/tokenizers/ under a descriptive
// name. The test "TokenizerCorpus" replays that folder in every build.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/tokenizer_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wick::text::test::walk_if_valid({reinterpret_cast<const char*>(data), size});
  return 0;
}
