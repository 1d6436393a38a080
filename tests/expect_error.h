#pragma once

#include <gtest/gtest.h>

#include <string>

#include "wick/base/error.h"

namespace wick::test {

/// Returns the message of the wick::Error that `f` throws, or "no error". Exceptions of other types
/// fail the test.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    // Checks the message's format: no part is empty, and it is a single line.
    const std::string message = e.what();
    EXPECT_EQ(message.find(e.op() + ":"), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_EQ(message.find(": :"), std::string::npos) << message;
    return message;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not a wick::Error: " << e.what();
    return e.what();
  }
  return "no error";
}

}  // namespace wick::test
