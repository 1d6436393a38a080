#pragma once

#include <cstdint>
#include <string>

namespace emu::test {

/// Returns the source of a kernel `random_SEED`, which uses corpus/corpus.h.
std::string random_kernel(uint64_t seed);

}  // namespace emu::test
