#pragma once

#include <cstdint>
#include <string>

namespace emu::test {

/// The source of a kernel `random_SEED`, in the terms of corpus/corpus.h.
std::string random_kernel(uint64_t seed);

}  // namespace emu::test
