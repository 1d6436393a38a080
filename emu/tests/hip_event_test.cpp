// Streams and events: priorities, flags, callbacks, memory values, and times.

#include <algorithm>
#include <chrono>
#include <ctime>

#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipStream, PrioritiesAreWithinTheRange) {
  int least = -100, greatest = 100;
  HIP_OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_GT(least, greatest) << "lower numbers come first";
  HIP_OK(hipDeviceGetStreamPriorityRange(nullptr, nullptr));
  for (const int wanted : {least - 1000, greatest, 0, least, least + 1000}) {
    hipStream_t stream = nullptr;
    int priority = -100;
    HIP_OK(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, wanted));
    HIP_OK(hipStreamGetPriority(stream, &priority));
    EXPECT_EQ(std::min(std::max(wanted, greatest), least), priority);
    HIP_OK(hipStreamDestroy(stream));
  }
  int priority = -100;
  HIP_OK(hipStreamGetPriority(nullptr, &priority));
  EXPECT_EQ(0, priority);
  hipStream_t stream = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipStreamCreateWithPriority(&stream, 2, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamCreateWithPriority(nullptr, 0, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamGetPriority(nullptr, nullptr));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamGetPriority(destroyed_stream(), &priority));
}

TEST(HipStream, TellFlagsAndDevice) {
  for (const unsigned wanted : {unsigned{hipStreamDefault}, unsigned{hipStreamNonBlocking}}) {
    const Stream stream(wanted);
    unsigned flags = 99;
    HIP_OK(hipStreamGetFlags(stream, &flags));
    EXPECT_EQ(wanted, flags);
    hipDevice_t device = 99;
    HIP_OK(hipStreamGetDevice(stream, &device));
    EXPECT_EQ(0, device);
    EXPECT_EQ(0, hipGetStreamDeviceId(stream));
  }
  for (const hipStream_t special : {hipStream_t{nullptr}, hipStreamLegacy, hipStreamPerThread}) {
    unsigned flags = 99;
    HIP_OK(hipStreamGetFlags(special, &flags));
    EXPECT_EQ(unsigned{hipStreamDefault}, flags);
    EXPECT_EQ(0, hipGetStreamDeviceId(special));
    HIP_REFUSES(hipErrorInvalidHandle, hipStreamDestroy(special));
  }
  unsigned flags = 0;
  hipDevice_t device = 0;
  HIP_REFUSES(hipErrorInvalidValue, hipStreamGetFlags(nullptr, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamGetDevice(nullptr, nullptr));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamGetFlags(destroyed_stream(), &flags));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamGetDevice(destroyed_stream(), &device));
  HIP_REFUSES(-1, hipGetStreamDeviceId(destroyed_stream()));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamQuery(destroyed_stream()));
}

TEST(HipStream, OfSomeProcessorsWorkAsOthers) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const uint32_t mask[2] = {3, 0};
  hipStream_t stream = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&stream, 0, mask));
  HIP_REFUSES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(&stream, 2, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipExtStreamCreateWithCUMask(nullptr, 2, mask));
  HIP_OK(hipExtStreamCreateWithCUMask(&stream, 2, mask));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 7));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>(32, 7), data.get());
  HIP_OK(hipStreamDestroy(stream));
}

struct Called {
  hipStream_t stream = nullptr;
  hipError_t status = hipErrorUnknown;
  int before = 0;  // value that the preceding kernel had written by then
  const int* data = nullptr;
};

TEST(HipStream, CallbacksComeInOrderWithStreamAndStatus) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const Stream stream;
  Called called;
  called.data = data.data;
  const hipStreamCallback_t callback = [](hipStream_t stream, hipError_t status, void* to) {
    auto* called = static_cast<Called*>(to);
    *called = {stream, status, called->data[0], called->data};
  };
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 5));
  HIP_OK(hipStreamAddCallback(stream, callback, &called, 0));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, stream, data.data, 6));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(stream.handle, called.stream);
  EXPECT_EQ(hipSuccess, called.status);
  EXPECT_EQ(5, called.before);
  EXPECT_EQ(6, data.get()[0]);
  HIP_REFUSES(hipErrorInvalidValue, hipStreamAddCallback(stream, nullptr, &called, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamAddCallback(stream, callback, &called, 1));
  HIP_REFUSES(hipErrorContextIsDestroyed,
              hipStreamAddCallback(destroyed_stream(), callback, &called, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipLaunchHostFunc(stream, nullptr, nullptr));
  const hipHostFn_t nothing = [](void*) {};
  HIP_REFUSES(hipErrorContextIsDestroyed, hipLaunchHostFunc(destroyed_stream(), nothing, nullptr));
}

/// Tests each condition, first unfulfilled and then fulfilled.
TEST(HipStream, WaitForValuesByCondition) {
  struct Case {
    unsigned condition;
    uint64_t value, mask, before, after;
  };
  constexpr uint64_t kAll = ~uint64_t{0};
  const Case cases[] = {
      {hipStreamWaitValueGte, 10, kAll, 9, 10},
      {hipStreamWaitValueGte, 10, kAll, 9, kAll},       // values are unsigned
      {hipStreamWaitValueGte, 16, 0xf0, 0xf0f, 0xf1f},  // only the mask's bits count
      {hipStreamWaitValueEq, 0x30, 0xf0, 0x20, 0x1234567835},
      {hipStreamWaitValueAnd, 6, kAll, 9, 4},
      {hipStreamWaitValueAnd, 6, 2, 4, 2},
      {hipStreamWaitValueNor, 3, 0xf, 0xfffffffffffffffc, 0xfffffffffffffff4},
  };
  const Buffer<uint64_t> flag(1);
  const Stream waiting, writing;
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    HIP_OK(hipStreamWriteValue64(writing, flag.data, c.before, 0));
    HIP_OK(hipStreamSynchronize(writing));
    HIP_OK(hipStreamWaitValue64(waiting, flag.data, c.value, c.condition, c.mask));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    HIP_REFUSES(hipErrorNotReady, hipStreamQuery(waiting));
    HIP_OK(hipStreamWriteValue64(writing, flag.data, c.after, 0));
    HIP_OK(hipStreamSynchronize(waiting));
  }
}

/// The waiting thread yields the CPU to others.
TEST(HipStream, WaitForValuesAtRest) {
  const Buffer<uint64_t> flag(1);
  const Stream waiting, writing;
  HIP_OK(hipStreamWaitValue64(waiting, flag.data, 1, hipStreamWaitValueEq, ~uint64_t{0}));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
  HIP_OK(hipStreamWriteValue64(writing, flag.data, 1, 0));
  HIP_OK(hipStreamSynchronize(waiting));
}

TEST(HipStream, Values32LeaveTheirNeighboursAlone) {
  Buffer<uint32_t> words(3);
  words.set({0xffffffff, 1, 0xffffffff});
  const Stream stream;
  HIP_OK(hipStreamWriteValue32(stream, words.data + 1, 0x80000000, 0));
  HIP_OK(hipStreamWaitValue32(stream, words.data + 1, 0x7fffffff, hipStreamWaitValueGte, ~0u));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ((std::vector<uint32_t>{0xffffffff, 0x80000000, 0xffffffff}), words.get());
  // All bits but those outside the mask are set, so Nor isn't fulfilled: bits above 32 don't count.
  HIP_OK(hipStreamWaitValue32(stream, words.data, 0, hipStreamWaitValueNor, ~0u));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  HIP_REFUSES(hipErrorNotReady, hipStreamQuery(stream));
  const Stream other;
  HIP_OK(hipStreamWriteValue32(other, words.data, 0xfffffffe, 0));
  HIP_OK(hipStreamSynchronize(stream));
}

TEST(HipStream, ValuesAreRefusedWhereTheyCannotBe) {
  const Buffer<uint64_t> flag(1);
  const Stream stream;
  auto* bytes = reinterpret_cast<char*>(flag.data);
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitValue32(stream, nullptr, 0, 0, ~0u));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitValue64(stream, nullptr, 0, 0, ~0u));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue32(stream, nullptr, 0, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue64(stream, nullptr, 0, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitValue32(stream, bytes, 0, 4, ~0u));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitValue64(stream, bytes, 0, 4, ~0u));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue32(stream, bytes, 0, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue64(stream, bytes, 0, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue32(stream, bytes + 2, 0, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWriteValue64(stream, bytes + 4, 0, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitValue64(stream, bytes + 4, 0, 0, ~0u));
  HIP_REFUSES(hipErrorInvalidValue,
              hipStreamWriteValue32(stream, bytes + 8, 0, 0));  // beyond its end
  const hipStream_t gone = destroyed_stream();
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamWaitValue32(gone, bytes, 0, 0, ~0u));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamWriteValue64(gone, bytes, 0, 0));
  EXPECT_EQ(0u, flag.get()[0]);
}

TEST(HipStream, AttachesManagedMemory) {
  void *managed = nullptr, *plain = nullptr;
  HIP_OK(hipMallocManaged(&managed, 4096, hipMemAttachGlobal));
  HIP_OK(hipMalloc(&plain, 4096));
  const Stream stream;
  for (const unsigned flags : {hipMemAttachGlobal, hipMemAttachHost, hipMemAttachSingle}) {
    HIP_OK(hipStreamAttachMemAsync(stream, managed, 0, flags));
  }
  HIP_REFUSES(hipErrorInvalidValue, hipStreamAttachMemAsync(stream, managed, 0, 3));
  HIP_REFUSES(hipErrorInvalidValue,
              hipStreamAttachMemAsync(stream, nullptr, 0, hipMemAttachSingle));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamAttachMemAsync(stream, plain, 0, hipMemAttachSingle));
  HIP_OK(hipFree(managed));
  HIP_OK(hipFree(plain));
}

// --- events

TEST(HipEvent, KnowsItsFlags) {
  const unsigned kinds[] = {hipEventDefault,
                            hipEventBlockingSync,
                            hipEventDisableTiming,
                            hipEventBlockingSync | hipEventDisableTiming,
                            hipEventInterprocess | hipEventDisableTiming,
                            hipEventDisableSystemFence,
                            hipEventReleaseToDevice,
                            hipEventReleaseToSystem};
  for (const unsigned flags : kinds) {
    const Event event(flags);
    HIP_OK(hipEventRecord(event, nullptr));
    HIP_OK(hipEventSynchronize(event));
    HIP_OK(hipEventQuery(event));
  }
  hipEvent_t event = nullptr;
  HIP_REFUSES(hipErrorInvalidValue, hipEventCreate(nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipEventCreateWithFlags(nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipEventCreateWithFlags(&event, 8));
  HIP_REFUSES(hipErrorInvalidValue, hipEventCreateWithFlags(&event, hipEventInterprocess));
  HIP_REFUSES(hipErrorInvalidValue,
              hipEventCreateWithFlags(&event, hipEventReleaseToDevice | hipEventReleaseToSystem));
}

TEST(HipEvent, RefusesWhatIsNone) {
  const Stream stream;
  const Event event;
  float time = 0;
  for (const hipEvent_t bad : {hipEvent_t{nullptr}, destroyed_event()}) {
    HIP_REFUSES(hipErrorInvalidHandle, hipEventDestroy(bad));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventRecord(bad, stream));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventRecord_spt(bad, stream));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventRecordWithFlags(bad, stream, 0));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventQuery(bad));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventSynchronize(bad));
    HIP_REFUSES(hipErrorInvalidHandle, hipStreamWaitEvent(stream, bad, 0));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventElapsedTime(&time, bad, event));
    HIP_REFUSES(hipErrorInvalidHandle, hipEventElapsedTime(&time, event, bad));
  }
  const hipStream_t gone = destroyed_stream();
  HIP_REFUSES(hipErrorContextIsDestroyed, hipEventRecord(event, gone));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipEventRecordWithFlags(event, gone, 0));
  HIP_REFUSES(hipErrorContextIsDestroyed, hipStreamWaitEvent(gone, event, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipStreamWaitEvent(stream, event, 2));
  HIP_REFUSES(hipErrorInvalidValue, hipEventRecordWithFlags(event, stream, 2));
  HIP_REFUSES(hipErrorInvalidValue, hipEventElapsedTime(nullptr, event, event));
  HIP_OK(hipEventQuery(event)) << "never recorded: nothing is to be waited for";
  HIP_OK(hipEventSynchronize(event));
}

TEST(HipEvent, TimesAreThereOnceBothAreReached) {
  const Stream stream;
  const Event start, stop;
  float time = -1;
  Gate gate;
  HIP_OK(hipEventRecordWithFlags(start, stream, hipEventRecordDefault));
  // `stop` isn't recorded yet.
  HIP_REFUSES(hipErrorInvalidHandle, hipEventElapsedTime(&time, start, stop));
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(hipEventRecordWithFlags(stop, stream, hipEventRecordDefault));
  HIP_REFUSES(hipErrorNotReady, hipEventElapsedTime(&time, start, stop));
  EXPECT_EQ(-1, time);
  gate.open = true;
  HIP_OK(hipEventSynchronize(stop));
  HIP_OK(hipEventElapsedTime(&time, start, stop));
  EXPECT_GE(time, 0);
  float back = 1;
  HIP_OK(hipEventElapsedTime(&back, stop, start));
  EXPECT_EQ(-time, back);
  HIP_OK(hipEventElapsedTime(&back, start, start));
  EXPECT_EQ(0, back);
}

TEST(HipEvent, MarksWhereItWasRecordedLast) {
  const Stream stream;
  const Event event;
  Gate gate;
  HIP_OK(hipEventRecord(event, stream));
  HIP_OK(hipEventSynchronize(event));
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(hipEventRecord(event, stream));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(event));
  gate.open = true;
  HIP_OK(hipEventSynchronize(event));
  HIP_OK(hipEventQuery(event));
}

/// For hipEventRecord_spt, the null stream is the thread's own stream.
TEST(HipEvent, RecordedInTheThreadsOwnStream) {
  const Event event, other;
  const Stream held;
  Gate gate, held_gate;
  HIP_OK(hipLaunchHostFunc(hipStreamPerThread, &Gate::wait, &gate));
  HIP_OK(hipEventRecord_spt(event, nullptr));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(event));
  std::thread([&] {
    EXPECT_EQ(hipSuccess, hipEventRecord_spt(other, nullptr));
    EXPECT_EQ(hipSuccess, hipEventSynchronize(other));
  }).join();
  gate.open = true;
  HIP_OK(hipEventSynchronize(event));
  HIP_OK(hipLaunchHostFunc(held, &Gate::wait, &held_gate));
  HIP_OK(hipEventRecord_spt(event, held));  // any other stream is used as given
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(event));
  held_gate.open = true;
  HIP_OK(hipEventSynchronize(event));
}

/// Waits remain valid after the event is destroyed.
TEST(HipEvent, WaitsOutliveTheirEvent) {
  const Kernels kernels;
  const Buffer<int> data(32);
  const Stream first, second;
  Gate gate;
  hipEvent_t event = nullptr;
  HIP_OK(hipEventCreate(&event));
  HIP_OK(hipLaunchHostFunc(first, &Gate::wait, &gate));
  HIP_OK(launch(kernels["set_to"], 1, 32, 0, first, data.data, 1));
  HIP_OK(hipEventRecord(event, first));
  HIP_OK(hipStreamWaitEvent(second, event,
                            hipEventWaitExternal));  // the same as the default outside of captures
  HIP_OK(hipEventDestroy(event));
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, second, data.data, 32));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(second));
  EXPECT_EQ(std::vector<int>(32, 2), data.get());
}

// The following tests run with two devices.

TEST(HipDevices, EventsAreOfTheirDeviceButAnyStreamCanWait) {
  HIP_OK(hipSetDevice(1));
  const Stream second;
  hipDevice_t device = 0;
  HIP_OK(hipStreamGetDevice(second, &device));
  EXPECT_EQ(1, device);
  EXPECT_EQ(1, hipGetStreamDeviceId(second));
  HIP_OK(hipSetDevice(0));
  const Stream first;
  const Event event;
  HIP_REFUSES(hipErrorInvalidHandle, hipEventRecord(event, second));
  HIP_REFUSES(hipErrorInvalidHandle, hipEventRecordWithFlags(event, second, 0));
  Gate gate;
  HIP_OK(hipLaunchHostFunc(first, &Gate::wait, &gate));
  HIP_OK(hipEventRecord(event, first));
  HIP_OK(hipStreamWaitEvent(second, event, 0));
  HIP_REFUSES(hipErrorNotReady, hipStreamQuery(second));
  gate.open = true;
  HIP_OK(hipStreamSynchronize(second));
}

}  // namespace
