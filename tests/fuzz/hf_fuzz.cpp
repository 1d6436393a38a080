// Fuzzes the readers of a Hugging Face directory: config.json, the index and safetensors files.
//
//   cmake --preset fuzz && ninja -C build/fuzz hf_fuzz
//   mkdir -p build/fuzz/hf_corpus
//   build/fuzz/bin/hf_fuzz -max_len=4096 -rss_limit_mb=512 -timeout=5 -max_total_time=1200 \
//       build/fuzz/hf_corpus tests/fuzz/hf_corpus
//
// Each find (crash-*, oom-*, timeout-*) is added to tests/fuzz/hf_corpus/ under a descriptive name.
// The test "HfCorpus" replays that folder in every build.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/hf_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wick::models::hf::test::walk_hf(std::as_bytes(std::span(data, size)));
  return 0;
}
