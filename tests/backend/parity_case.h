#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"

// Tests registered by name, one for each instruction set that wick has kernels for. Tests of
// instruction sets that the machine lacks are visibly skipped.

namespace wick::parity {

using CaseBody = std::function<void(cpu::Isa isa, DType type, DType dtype)>;

class Case : public testing::Test {
 public:
  Case(cpu::Isa isa, DType type, DType dtype, CaseBody body)
      : isa_(isa), type_(type), dtype_(dtype), body_(std::move(body)) {}
  void TestBody() override {
    const auto isas = cpu::available_isas();
    if (std::find(isas.begin(), isas.end(), isa_) == isas.end()) {
      GTEST_SKIP() << "this machine or binary has no " << cpu::name(isa_);
    }
    body_(isa_, type_, dtype_);
  }

 private:
  cpu::Isa isa_;
  DType type_, dtype_;
  CaseBody body_;
};

/// Registers Parity/<op>.<type>.<dtype>.<what>.cpu-<isa>.
inline void add_case(const char* op, cpu::Isa isa, DType type, DType dtype, const std::string& what,
                     CaseBody body) {
  const std::string test =
      fmt::format("{}.{}.{}.cpu-{}", name(type), name(dtype), what, cpu::name(isa));
  const std::string suite = std::string("Parity/") + op;
  testing::RegisterTest(suite.c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> testing::Test* { return new Case(isa, type, dtype, body); });
}

}  // namespace wick::parity
