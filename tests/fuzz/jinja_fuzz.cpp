// Fuzzes the evaluator of chat templates: the input is a template.
//
//   cmake --preset fuzz && ninja -C build/fuzz jinja_fuzz
//   mkdir -p build/fuzz/jinja
//   build/fuzz/bin/jinja_fuzz -max_len=4096 -rss_limit_mb=2048 -timeout=60 -max_total_time=1200 \
//       -dict=tests/fuzz/jinja.dict build/fuzz/jinja tests/fuzz/jinja_corpus
//
// Each find (crash-*, oom-*, timeout-*) is added to tests/fuzz/jinja_corpus/ under a descriptive
// name. The test "JinjaCorpus" replays that folder in every build.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/jinja_render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  wick::text::jinja::test::render_if_valid({reinterpret_cast<const char*>(data), size});
  return 0;
}
