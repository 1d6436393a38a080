#pragma once

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tests/models/tiny_model.h"
#include "wick/base/device.h"

namespace wick::test {

/// Appends a result to the file that WICK_MODEL_RESULTS names; tools/models_table.py makes
/// docs/models.md of these files.
inline void record(const TinyModel& tiny, Device device, std::string_view check, double value) {
  const char* path = std::getenv("WICK_MODEL_RESULTS");
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app) << tiny.architecture << '\t' << tiny.name << '\t'
                                     << device.str() << '\t' << check << '\t' << value << '\n';
}

}  // namespace wick::test
