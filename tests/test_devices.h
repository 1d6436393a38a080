#pragma once

// The devices that WICK_TEST_DEVICES names, separated by commas: "cuda:0,hip:0".

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "wick/base/device.h"

namespace wick::test {

/// Returns the names as written, or none if the variable is unset or empty.
inline std::vector<std::string> device_names() {
  std::vector<std::string> all;
  const char* names = std::getenv("WICK_TEST_DEVICES");
  std::stringstream words(names == nullptr ? "" : names);
  for (std::string word; std::getline(words, word, ',');) all.push_back(word);
  return all;
}

inline std::vector<std::string> gpu_names() {
  std::vector<std::string> all = device_names();
  std::erase(all, "cpu");
  return all;
}

inline std::vector<Device> devices() {
  std::vector<Device> all;
  for (const std::string& name : device_names()) all.push_back(Device::parse(name));
  return all;
}

/// Returns the CPU followed by those devices.
inline std::vector<Device> cpu_and_devices() {
  std::vector<Device> all = devices();
  all.insert(all.begin(), Device::cpu());
  return all;
}

}  // namespace wick::test
