#include "emu/hip/rtc.h"
#include "emu/tests/hip_support.h"

namespace {

TEST(HipRtc, CompilesAndNamesKernels) {
  const char* source = R"(
    #include "scale.h"
    template <class T> __global__ void scaled(T* data) { data[threadIdx.x] = data[threadIdx.x] * kScale; }
  )";
  const char *header = "constexpr int kScale = 3;", *name = "scale.h";
  hiprtcProgram program = nullptr;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCreateProgram(&program, source, "scaled.hip", 1, &header, &name));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, "&scaled<int>"));
  const char* lowered = nullptr;
  EXPECT_EQ(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION,
            hiprtcGetLoweredName(program, "&scaled<int>", &lowered));
  const char* options[] = {"--gpu-architecture=gfx1100", "-O2"};
  const hiprtcResult result = hiprtcCompileProgram(program, 2, options);
  size_t bytes = 0;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLogSize(program, &bytes));
  std::string log(bytes, 0);
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLog(program, log.data()));
  ASSERT_EQ(HIPRTC_SUCCESS, result) << log;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, "&scaled<int>", &lowered));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetCodeSize(program, &bytes));
  std::vector<char> code(bytes);
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetCode(program, code.data()));
  hipModule_t module = nullptr;
  HIP_OK(hipModuleLoadData(&module, code.data()));
  hipFunction_t function = nullptr;
  HIP_OK(hipModuleGetFunction(&function, module, lowered));
  Buffer<int> data(32);
  data.set(std::vector<int>(32, 5));
  HIP_OK(launch(function, 1, 32, 0, nullptr, data.data));
  EXPECT_EQ(data.get(), std::vector<int>(32, 15));
  HIP_OK(hipModuleUnload(module));
  EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&program));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcDestroyProgram(&program));
}

TEST(HipRtc, SaysWhatIsWrong) {
  hiprtcProgram program = nullptr;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCreateProgram(&program, "__global__ void broken( {", "broken.hip",
                                                0, nullptr, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_COMPILATION, hiprtcCompileProgram(program, 0, nullptr));
  size_t bytes = 0;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLogSize(program, &bytes));
  std::string log(bytes, 0);
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLog(program, log.data()));
  EXPECT_NE(log.find("broken.hip:1:"), std::string::npos) << log;
  EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&program));
}

}  // namespace
