#pragma once

#include <gtest/gtest.h>

#include <string>

#include "wick/base/error.h"

namespace wick::test {

/// The message of the wick::Error that `f` throws; "no error" when it throws none. Exceptions of
/// other types fail the test.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    // The grammar: no part is empty, and it is one line.
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
