#pragma once

// Programs of hiprtc for the tests of the device language.

#include <string>
#include <vector>

#include "emu/hip/rtc.h"
#include "emu/tests/hip_support.h"

/// A program that hiprtc compiles for the first device and loads.
class Compiled {
 public:
  explicit Compiled(const std::string& source, std::vector<const char*> options = {},
                    const std::vector<const char*>& expressions = {}) {
    EXPECT_EQ(HIPRTC_SUCCESS,
              hiprtcCreateProgram(&program, source.c_str(), "test.hip", 0, nullptr, nullptr));
    for (const char* expression : expressions) {
      EXPECT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, expression));
    }
    const hiprtcResult result =
        hiprtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    size_t bytes = 0;
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLogSize(program, &bytes));
    log.resize(bytes);
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLog(program, log.data()));
    log.pop_back();
    EXPECT_EQ(HIPRTC_SUCCESS, result) << log;
    if (result != HIPRTC_SUCCESS) return;
    EXPECT_EQ("", log);
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetCodeSize(program, &bytes));
    std::vector<char> code(bytes);
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetCode(program, code.data()));
    EXPECT_EQ(hipSuccess, hipModuleLoadData(&module, code.data()));
  }
  ~Compiled() {
    if (module != nullptr) EXPECT_EQ(hipSuccess, hipModuleUnload(module));
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&program));
  }
  hipFunction_t operator[](const char* name) const {
    hipFunction_t function = nullptr;
    EXPECT_EQ(hipSuccess, hipModuleGetFunction(&function, module, name)) << name;
    return function;
  }
  /// Returns the kernel of a name expression.
  hipFunction_t named(const char* expression) const {
    const char* lowered = nullptr;
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, expression, &lowered)) << expression;
    return (*this)[lowered];
  }
  hiprtcProgram program = nullptr;
  hipModule_t module = nullptr;
  std::string log;
};

/// Launches a kernel and waits for it.
template <class... Arguments>
void run(hipFunction_t function, unsigned groups, unsigned block, Arguments... arguments) {
  HIP_OK(launch(function, groups, block, 0, nullptr, arguments...));
  HIP_OK(hipDeviceSynchronize());
}
