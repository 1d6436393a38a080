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

/// A hiprtc program that is destroyed at the end of its scope.
struct Rtc {
  explicit Rtc(const char* source, const char* name = nullptr) {
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcCreateProgram(&handle, source, name, 0, nullptr, nullptr));
  }
  ~Rtc() { EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&handle)); }
  operator hiprtcProgram() const { return handle; }
  std::string log() const {
    size_t bytes = 0;
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLogSize(handle, &bytes));
    std::string log(bytes, 'x');
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcGetProgramLog(handle, log.data()));
    EXPECT_EQ(0, log.back()) << "the size is with the zero at the end";
    log.pop_back();
    return log;
  }
  hiprtcProgram handle = nullptr;
};

constexpr char kNothing[] = "extern \"C\" __global__ void nothing() {}";

TEST(HipRtc, TellsItsVersionAndNamesItsResults) {
  int major = 0, minor = -1;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcVersion(&major, &minor));
  EXPECT_GT(major, 0);
  EXPECT_GE(minor, 0);
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(nullptr, &minor));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(&major, nullptr));
  const struct {
    hiprtcResult result;
    const char* name;
  } results[] = {{HIPRTC_SUCCESS, "HIPRTC_SUCCESS"},
                 {HIPRTC_ERROR_OUT_OF_MEMORY, "HIPRTC_ERROR_OUT_OF_MEMORY"},
                 {HIPRTC_ERROR_PROGRAM_CREATION_FAILURE, "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE"},
                 {HIPRTC_ERROR_INVALID_INPUT, "HIPRTC_ERROR_INVALID_INPUT"},
                 {HIPRTC_ERROR_INVALID_PROGRAM, "HIPRTC_ERROR_INVALID_PROGRAM"},
                 {HIPRTC_ERROR_INVALID_OPTION, "HIPRTC_ERROR_INVALID_OPTION"},
                 {HIPRTC_ERROR_COMPILATION, "HIPRTC_ERROR_COMPILATION"},
                 {HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE, "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"},
                 {HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION,
                  "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"},
                 {HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION,
                  "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"},
                 {HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID, "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID"},
                 {HIPRTC_ERROR_INTERNAL_ERROR, "HIPRTC_ERROR_INTERNAL_ERROR"},
                 {HIPRTC_ERROR_LINKING, "HIPRTC_ERROR_LINKING"}};
  for (const auto& [result, name] : results) EXPECT_STREQ(name, hiprtcGetErrorString(result));
  EXPECT_STREQ("Invalid HIPRTC error code", hiprtcGetErrorString(static_cast<hiprtcResult>(99)));
}

TEST(HipRtc, RefusesProgramsWithoutTheirParts) {
  hiprtcProgram program = nullptr;
  const char *text = "", *name = "a.h", *none = nullptr;
  const auto create = [&](hiprtcProgram* to, const char* source, int count,
                          const char* const* texts, const char* const* names) {
    return hiprtcCreateProgram(to, source, "a.hip", count, texts, names);
  };
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(nullptr, kNothing, 0, nullptr, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, kNothing, -1, nullptr, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, kNothing, 1, nullptr, &name));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, kNothing, 1, &text, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, kNothing, 1, &none, &name));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, create(&program, kNothing, 1, &text, &none));
  EXPECT_EQ(nullptr, program);
}

TEST(HipRtc, RefusesWhatIsNoProgram) {
  hiprtcProgram none = nullptr;
  size_t bytes = 0;
  char byte = 0;
  const char* lowered = nullptr;
  constexpr auto kInvalid = HIPRTC_ERROR_INVALID_PROGRAM;
  EXPECT_EQ(kInvalid, hiprtcDestroyProgram(&none));
  EXPECT_EQ(kInvalid, hiprtcAddNameExpression(none, "nothing"));
  EXPECT_EQ(kInvalid, hiprtcCompileProgram(none, 0, nullptr));
  EXPECT_EQ(kInvalid, hiprtcGetLoweredName(none, "nothing", &lowered));
  EXPECT_EQ(kInvalid, hiprtcGetProgramLogSize(none, &bytes));
  EXPECT_EQ(kInvalid, hiprtcGetProgramLog(none, &byte));
  EXPECT_EQ(kInvalid, hiprtcGetCodeSize(none, &bytes));
  EXPECT_EQ(kInvalid, hiprtcGetCode(none, &byte));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcDestroyProgram(nullptr));
}

TEST(HipRtc, AsksInTheRightOrder) {
  const Rtc program(kNothing);
  size_t bytes = 0;
  char byte = 0;
  const char* lowered = nullptr;
  EXPECT_EQ("", program.log());
  EXPECT_EQ(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCodeSize(program, &bytes));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCode(program, &byte));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcAddNameExpression(program, nullptr));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, "nothing"));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program, -1, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program, 1, nullptr));
  const char* missing = nullptr;
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program, 1, &missing));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCompileProgram(program, 0, nullptr)) << program.log();
  EXPECT_EQ(HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION,
            hiprtcAddNameExpression(program, "nothing"));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, "nothing", &lowered));
  EXPECT_STREQ("nothing", lowered);
  EXPECT_EQ(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID,
            hiprtcGetLoweredName(program, "other", &lowered));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetLoweredName(program, nullptr, &lowered));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetLoweredName(program, "nothing", nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetCodeSize(program, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetCode(program, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetProgramLogSize(program, nullptr));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcGetProgramLog(program, nullptr));
}

TEST(HipRtc, NamesVariablesAndKernelsOfTemplates) {
  const Rtc program(R"(
    __device__ int table[4];
    namespace inner { template <class T, int N> __global__ void fill(T* to) { *to = N; } })");
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, "&table"));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, "inner::fill<int, 3>"));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(program, "inner::fill<float, 4>"));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCompileProgram(program, 0, nullptr)) << program.log();
  const char *table = nullptr, *ints = nullptr, *floats = nullptr;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, "&table", &table));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, "inner::fill<int, 3>", &ints));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetLoweredName(program, "inner::fill<float, 4>", &floats));
  EXPECT_STREQ("table", table);
  EXPECT_STRNE(ints, floats);
  EXPECT_EQ(0, std::string(ints).find("_ZN5inner4fill")) << ints;
}

TEST(HipRtc, BadOptionsAndExpressionsDontCompile) {
  const Rtc program(kNothing), unnamed(kNothing);
  for (const char* option : {"--no-such-option", "--gpu-architecture=gfx0", "-DX(="}) {
    EXPECT_EQ(HIPRTC_ERROR_COMPILATION, hiprtcCompileProgram(program, 1, &option)) << option;
    EXPECT_NE("", program.log()) << option;
  }
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcAddNameExpression(unnamed, "no_such_kernel"));
  EXPECT_EQ(HIPRTC_ERROR_COMPILATION, hiprtcCompileProgram(unnamed, 0, nullptr));
  EXPECT_NE(std::string::npos, unnamed.log().find("no_such_kernel")) << unnamed.log();
}

/// A failed compilation discards the output of an earlier one.
TEST(HipRtc, CompilesAgain) {
  const Rtc program(
      "#ifndef BROKEN\nextern \"C\" __global__ void nothing() {}\n#else\n(\n#endif\n");
  const char* broken = "-DBROKEN";
  size_t bytes = 0;
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCompileProgram(program, 0, nullptr)) << program.log();
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcGetCodeSize(program, &bytes));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(HIPRTC_ERROR_COMPILATION, hiprtcCompileProgram(program, 1, &broken));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_PROGRAM, hiprtcGetCodeSize(program, &bytes));
  ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCompileProgram(program, 0, nullptr));
  EXPECT_EQ("", program.log());
}

/// Headers are written only to the program's own folder.
TEST(HipRtc, HeadersStayInTheirFolder) {
  const char* source =
      "#include \"a/b.h\"\nextern \"C\" __global__ void k(int* to) { *to = kOne; }";
  const char* text = "constexpr int kOne = 1;";
  for (const char* name : {"a/b.h", "./a/../a/b.h"}) {
    hiprtcProgram program = nullptr;
    ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCreateProgram(&program, source, "s", 1, &text, &name));
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcCompileProgram(program, 0, nullptr)) << name;
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&program));
  }
  for (const char* name : {"../b.h", "/tmp/wick_emu_b.h", "a/../../b.h"}) {
    hiprtcProgram program = nullptr;
    ASSERT_EQ(HIPRTC_SUCCESS, hiprtcCreateProgram(&program, kNothing, "s", 1, &text, &name));
    EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcCompileProgram(program, 0, nullptr)) << name;
    EXPECT_EQ(HIPRTC_SUCCESS, hiprtcDestroyProgram(&program));
  }
}

}  // namespace
