// Names and descriptions of errors, and the last error of a thread. Also tests the profiler's
// switches.

#include <set>
#include <string>

#include "emu/tests/hip_stream_support.h"

namespace {

struct Code {
  hipError_t code;
  const char* name;
};
#define CODE(code) \
  { code, #code }
constexpr Code kCodes[] = {CODE(hipSuccess),
                           CODE(hipErrorInvalidValue),
                           CODE(hipErrorOutOfMemory),
                           CODE(hipErrorNotInitialized),
                           CODE(hipErrorDeinitialized),
                           CODE(hipErrorProfilerDisabled),
                           CODE(hipErrorProfilerNotInitialized),
                           CODE(hipErrorProfilerAlreadyStarted),
                           CODE(hipErrorProfilerAlreadyStopped),
                           CODE(hipErrorInvalidConfiguration),
                           CODE(hipErrorInvalidPitchValue),
                           CODE(hipErrorInvalidSymbol),
                           CODE(hipErrorInvalidDevicePointer),
                           CODE(hipErrorInvalidMemcpyDirection),
                           CODE(hipErrorInsufficientDriver),
                           CODE(hipErrorMissingConfiguration),
                           CODE(hipErrorPriorLaunchFailure),
                           CODE(hipErrorInvalidDeviceFunction),
                           CODE(hipErrorNoDevice),
                           CODE(hipErrorInvalidDevice),
                           CODE(hipErrorInvalidImage),
                           CODE(hipErrorInvalidContext),
                           CODE(hipErrorContextAlreadyCurrent),
                           CODE(hipErrorMapFailed),
                           CODE(hipErrorUnmapFailed),
                           CODE(hipErrorArrayIsMapped),
                           CODE(hipErrorAlreadyMapped),
                           CODE(hipErrorNoBinaryForGpu),
                           CODE(hipErrorAlreadyAcquired),
                           CODE(hipErrorNotMapped),
                           CODE(hipErrorNotMappedAsArray),
                           CODE(hipErrorNotMappedAsPointer),
                           CODE(hipErrorECCNotCorrectable),
                           CODE(hipErrorUnsupportedLimit),
                           CODE(hipErrorContextAlreadyInUse),
                           CODE(hipErrorPeerAccessUnsupported),
                           CODE(hipErrorInvalidKernelFile),
                           CODE(hipErrorInvalidGraphicsContext),
                           CODE(hipErrorInvalidSource),
                           CODE(hipErrorFileNotFound),
                           CODE(hipErrorSharedObjectSymbolNotFound),
                           CODE(hipErrorSharedObjectInitFailed),
                           CODE(hipErrorOperatingSystem),
                           CODE(hipErrorInvalidHandle),
                           CODE(hipErrorIllegalState),
                           CODE(hipErrorNotFound),
                           CODE(hipErrorNotReady),
                           CODE(hipErrorIllegalAddress),
                           CODE(hipErrorLaunchOutOfResources),
                           CODE(hipErrorLaunchTimeOut),
                           CODE(hipErrorPeerAccessAlreadyEnabled),
                           CODE(hipErrorPeerAccessNotEnabled),
                           CODE(hipErrorSetOnActiveProcess),
                           CODE(hipErrorContextIsDestroyed),
                           CODE(hipErrorAssert),
                           CODE(hipErrorHostMemoryAlreadyRegistered),
                           CODE(hipErrorHostMemoryNotRegistered),
                           CODE(hipErrorLaunchFailure),
                           CODE(hipErrorCooperativeLaunchTooLarge),
                           CODE(hipErrorNotSupported),
                           CODE(hipErrorStreamCaptureUnsupported),
                           CODE(hipErrorStreamCaptureInvalidated),
                           CODE(hipErrorStreamCaptureMerge),
                           CODE(hipErrorStreamCaptureUnmatched),
                           CODE(hipErrorStreamCaptureUnjoined),
                           CODE(hipErrorStreamCaptureIsolation),
                           CODE(hipErrorStreamCaptureImplicit),
                           CODE(hipErrorCapturedEvent),
                           CODE(hipErrorStreamCaptureWrongThread),
                           CODE(hipErrorGraphExecUpdateFailure),
                           CODE(hipErrorUnknown),
                           CODE(hipErrorRuntimeMemory),
                           CODE(hipErrorRuntimeOther),
                           CODE(hipErrorTbd)};

TEST(HipErrors, AllHaveTheirNameAndAText) {
  for (const Code& c : kCodes) {
    EXPECT_STREQ(c.name, hipGetErrorName(c.code));
    ASSERT_NE(nullptr, hipGetErrorString(c.code)) << c.name;
    EXPECT_STRNE("", hipGetErrorString(c.code)) << c.name;
    const bool unknown = std::string("unknown error") == hipGetErrorString(c.code);
    EXPECT_EQ(c.code == hipErrorUnknown, unknown) << c.name;
    const char *name = nullptr, *text = nullptr;
    HIP_OK(hipDrvGetErrorName(c.code, &name));
    HIP_OK(hipDrvGetErrorString(c.code, &text));
    EXPECT_STREQ(c.name, name);
    EXPECT_STREQ(hipGetErrorString(c.code), text);
  }
}

TEST(HipErrors, NumbersThatAreNone) {
  std::set<unsigned> known;
  for (const Code& c : kCodes) known.insert(c.code);
  int asked = 0;
  for (unsigned number = 0; number < 1100; ++number) {
    if (known.contains(number)) continue;
    const auto code = static_cast<hipError_t>(number);
    const char *name = "", *text = "";
    ASSERT_STREQ("hipErrorUnknown", hipGetErrorName(code)) << number;
    ASSERT_STREQ("unknown error", hipGetErrorString(code)) << number;
    ASSERT_EQ(hipErrorInvalidValue, hipDrvGetErrorName(code, &name)) << number;
    ASSERT_EQ(hipErrorInvalidValue, hipDrvGetErrorString(code, &text)) << number;
    ASSERT_EQ(nullptr, name);
    ASSERT_EQ(nullptr, text);
    ++asked;
  }
  EXPECT_GT(asked, 1000);
  HIP_REFUSES(hipErrorInvalidValue, hipDrvGetErrorName(hipSuccess, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipDrvGetErrorString(hipSuccess, nullptr));
}

TEST(HipErrors, TheLastOneStaysUntilItIsTaken) {
  (void)hipGetLastError();
  EXPECT_EQ(hipErrorInvalidValue, hipStreamCreate(nullptr));
  EXPECT_EQ(hipErrorInvalidHandle, hipEventDestroy(nullptr));
  const Stream works;  // a successful call doesn't clear the error
  EXPECT_EQ(hipErrorInvalidHandle, hipPeekAtLastError());
  EXPECT_EQ(hipErrorInvalidHandle, hipPeekAtLastError());
  EXPECT_EQ(hipErrorInvalidHandle, hipGetLastError());
  EXPECT_EQ(hipSuccess, hipPeekAtLastError());
  EXPECT_EQ(hipErrorInvalidValue, hipStreamCreate(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipExtGetLastError());
  EXPECT_EQ(hipSuccess, hipExtGetLastError());
  EXPECT_EQ(hipSuccess, hipGetLastError());
}

TEST(HipErrors, NotBeingReadyIsTheLastError) {
  (void)hipGetLastError();
  const Stream stream;
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  EXPECT_EQ(hipErrorNotReady, hipStreamQuery(stream));
  EXPECT_EQ(hipErrorNotReady, hipGetLastError());
  EXPECT_EQ(hipSuccess, hipGetLastError());
  gate.open = true;
  HIP_OK(hipStreamSynchronize(stream));
}

/// The environment determines what is profiled. Programs may call the switches, which have no
/// effect.
TEST(HipErrors, TheProfilersSwitchesAreTaken) {
  HIP_OK(hipProfilerStart());
  HIP_OK(hipProfilerStart());
  HIP_OK(hipProfilerStop());
  HIP_OK(hipProfilerStop());
}

}  // namespace
