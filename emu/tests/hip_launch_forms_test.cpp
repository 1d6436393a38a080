// All forms of launches: functions of a program, launches with events, cooperative launches, and
// launches on several devices.

#include <memory>

#include "emu/tests/hip_stream_support.h"

namespace {

/// The arguments of the kernel set_to.
struct SetTo {
  SetTo(int* data, int value) : data(data), value(value) {}
  int* data;
  int value;
  void* list[2] = {&data, &value};
};

TEST(HipLaunch, FunctionsOfTheProgram) {
  Program program;
  const void* set_to = program.kernel("set_to");
  const Buffer<int> data(64);
  SetTo five(data.data, 5);
  HIP_OK(hipLaunchKernel(set_to, {2}, {32}, five.list, 0, nullptr));
  EXPECT_EQ(std::vector<int>(64, 5), data.get());
  const void* unknown = program.kernel("no_such_kernel");
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipLaunchKernel(nullptr, {2}, {32}, five.list, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipLaunchKernel(&five, {2}, {32}, five.list, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipLaunchKernel(unknown, {2}, {32}, five.list, 0, nullptr));
  HIP_REFUSES(hipErrorContextIsDestroyed,
              hipLaunchKernel(set_to, {2}, {32}, five.list, 0, destroyed_stream()));
  HIP_REFUSES(hipErrorInvalidConfiguration,
              hipLaunchKernel(set_to, {0}, {32}, five.list, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipLaunchKernel(set_to, {1}, {32}, nullptr, 0, nullptr));
}

TEST(HipLaunch, TheThreadsOwnStreamInPlaceOfTheNullStream) {
  Program program;
  const void* set_to = program.kernel("set_to");
  const Buffer<int> data(32);
  SetTo first(data.data, 1), second(data.data, 2);
  Gate gate;
  HIP_OK(hipLaunchHostFunc(hipStreamPerThread, &Gate::wait, &gate));
  HIP_OK(hipLaunchKernel_spt(set_to, {1}, {32}, first.list, 0, nullptr));
  HIP_REFUSES(hipErrorNotReady, hipStreamQuery(hipStreamPerThread));
  EXPECT_EQ(0, data.data[0]);
  gate.open = true;
  HIP_OK(hipStreamSynchronize(hipStreamPerThread));
  EXPECT_EQ(std::vector<int>(32, 1), data.get());
  const Stream stream;
  HIP_OK(hipLaunchKernel_spt(set_to, {1}, {32}, second.list, 0, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(std::vector<int>(32, 2), data.get());
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipLaunchKernel_spt(nullptr, {1}, {32}, first.list, 0, nullptr));
}

/// Copies in the thread's own stream follow its work and don't wait for non-blocking streams.
TEST(HipLaunch, CopiesInTheThreadsOwnStream) {
  Program program;
  const void* slow_set = program.kernel("slow_set");
  const Buffer<int> data(32);
  const Stream held;
  Gate gate;
  int value = 9, rounds = 20000;
  void* list[] = {const_cast<int**>(&data.data), &value, &rounds};
  HIP_OK(hipLaunchHostFunc(held, &Gate::wait, &gate));
  HIP_OK(hipLaunchKernel_spt(slow_set, {1}, {32}, list, 0, nullptr));
  std::vector<int> out(32);
  HIP_OK(hipMemcpy_spt(out.data(), data.data, 128, hipMemcpyDeviceToHost));
  EXPECT_EQ(std::vector<int>(32, 9), out);
  gate.open = true;
  HIP_OK(hipStreamSynchronize(held));
  constexpr auto kKind = hipMemcpyDeviceToHost;
  HIP_OK(hipMemcpy_spt(out.data(), data.data, 0, kKind));
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy_spt(nullptr, data.data, 4, kKind));
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy_spt(out.data(), nullptr, 4, kKind));
  HIP_REFUSES(hipErrorInvalidValue, hipMemcpy_spt(out.data(), data.data, 129, kKind));
  HIP_REFUSES(hipErrorInvalidMemcpyDirection,
              hipMemcpy_spt(out.data(), data.data, 4, static_cast<hipMemcpyKind>(9)));
}

/// The calls that compilers generate for <<<>>>: the caller pushes the configuration and the
/// launching function pops the last one.
TEST(HipLaunch, ConfigurationsOfCalls) {
  const Stream stream;
  dim3 grid{99, 99, 99}, block{99, 99, 99};
  size_t lds = 99;
  hipStream_t told = nullptr;
  const auto pop = [&] { return __hipPopCallConfiguration(&grid, &block, &lds, &told); };
  HIP_REFUSES(hipErrorMissingConfiguration, pop());
  HIP_OK(__hipPushCallConfiguration({1, 2, 3}, {4, 5, 6}, 7, stream));
  HIP_OK(__hipPushCallConfiguration({8}, {9}, 0, nullptr));
  std::thread([&] { EXPECT_EQ(hipErrorMissingConfiguration, pop()); }).join();
  HIP_OK(pop());
  EXPECT_EQ(8u, grid.x);
  EXPECT_EQ(1u, grid.y);
  EXPECT_EQ(9u, block.x);
  EXPECT_EQ(0u, lds);
  EXPECT_EQ(nullptr, told);
  HIP_OK(pop());
  EXPECT_EQ(3u, grid.z);
  EXPECT_EQ(6u, block.z);
  EXPECT_EQ(7u, lds);
  EXPECT_EQ(stream.handle, told);
  HIP_REFUSES(hipErrorMissingConfiguration, pop());
}

/// Every launch function records the events around the kernel, and rejects invalid events before
/// launching.
template <class Launch>
void expect_events_around(const Launch& launched, int* data) {
  const Stream stream;
  const Event start, stop, reached;
  Gate gate;
  HIP_OK(hipLaunchHostFunc(stream, &Gate::wait, &gate));
  HIP_OK(launched(stream, start, stop, 0));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(start));
  HIP_REFUSES(hipErrorNotReady, hipEventQuery(stop));
  gate.open = true;
  HIP_OK(hipEventSynchronize(stop));
  EXPECT_EQ(1, data[0]);
  float time = -1;
  HIP_OK(hipEventElapsedTime(&time, start, stop));
  EXPECT_GE(time, 0);
  HIP_OK(launched(stream, nullptr, nullptr, hipExtAnyOrderLaunch));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(2, data[0]);
  const hipEvent_t gone = destroyed_event();
  HIP_REFUSES(hipErrorInvalidHandle, launched(stream, gone, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidHandle, launched(stream, nullptr, gone, 0));
  HIP_REFUSES(hipErrorContextIsDestroyed, launched(destroyed_stream(), nullptr, nullptr, 0));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(2, data[0]) << "what is refused isn't launched";
}

TEST(HipLaunch, EventsAroundAFunctionOfTheProgram) {
  Program program;
  const void* add_one = program.kernel("add_one");
  const Buffer<int> data(32);
  int count = 32;
  void* list[] = {const_cast<int**>(&data.data), &count};
  const auto launched = [&](hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
    return hipExtLaunchKernel(add_one, {1}, {32}, list, 0, stream, start, stop, flags);
  };
  expect_events_around(launched, data.data);
  HIP_REFUSES(hipErrorInvalidValue, launched(nullptr, nullptr, nullptr, 2));
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipExtLaunchKernel(nullptr, {1}, {32}, list, 0, nullptr, nullptr, nullptr, 0));
}

TEST(HipLaunch, EventsAroundAFunctionOfAModule) {
  const Kernels kernels;
  const hipFunction_t add_one = kernels["add_one"];
  const Buffer<int> data(32), old(32);
  int count = 32;
  void* list[] = {const_cast<int**>(&data.data), &count};
  const auto launched = [&](hipStream_t stream, hipEvent_t start, hipEvent_t stop, unsigned flags) {
    return hipExtModuleLaunchKernel(add_one, 32, 1, 1, 32, 1, 1, 0, stream, list, nullptr, start,
                                    stop, flags);
  };
  expect_events_around(launched, data.data);
  HIP_REFUSES(hipErrorInvalidValue, launched(nullptr, nullptr, nullptr, 2));
  HIP_REFUSES(hipErrorInvalidImage,
              hipExtModuleLaunchKernel(nullptr, 32, 1, 1, 32, 1, 1, 0, nullptr, list, nullptr,
                                       nullptr, nullptr, 0));
  void* old_list[] = {const_cast<int**>(&old.data), &count};
  const auto by_old_name = [&](hipStream_t stream, hipEvent_t start, hipEvent_t stop, unsigned) {
    return hipHccModuleLaunchKernel(add_one, 32, 1, 1, 32, 1, 1, 0, stream, old_list, nullptr,
                                    start, stop);
  };
  expect_events_around(by_old_name, old.data);
}

// --- cooperative launches

unsigned most_groups(hipFunction_t function, int block) {
  int groups = 0, processors = 0;
  EXPECT_EQ(hipSuccess,
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, function, block, 0));
  EXPECT_EQ(hipSuccess,
            hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, 0));
  return static_cast<unsigned>(groups * processors);
}

TEST(HipLaunch, CooperativeFunctionsOfTheProgram) {
  Program program;
  const Kernels kernels;
  const void* chain = program.kernel("chain");
  const Buffer<int> flags(128);
  int count = 128;
  void* list[] = {const_cast<int**>(&flags.data), &count};
  HIP_OK(hipLaunchCooperativeKernel(chain, {128}, {32}, list, 0, nullptr));
  EXPECT_EQ(std::vector<int>(128, 1), flags.get());
  const unsigned most = most_groups(kernels["chain"], 32);
  HIP_REFUSES(hipErrorCooperativeLaunchTooLarge,
              hipLaunchCooperativeKernel(chain, {most + 1}, {32}, list, 0, nullptr));
  HIP_REFUSES(hipErrorCooperativeLaunchTooLarge,
              hipLaunchCooperativeKernel(chain, {1, most, 2}, {32}, list, 0, nullptr));
  // A grid of 2^64 workgroups must not overflow to zero.
  HIP_REFUSES(
      hipErrorCooperativeLaunchTooLarge,
      hipLaunchCooperativeKernel(chain, {1u << 21, 1u << 21, 1u << 22}, {1}, list, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidDeviceFunction,
              hipLaunchCooperativeKernel(nullptr, {1}, {32}, list, 0, nullptr));
  HIP_REFUSES(hipErrorContextIsDestroyed,
              hipLaunchCooperativeKernel(chain, {1}, {32}, list, 0, destroyed_stream()));
  HIP_REFUSES(hipErrorInvalidImage,
              hipModuleLaunchCooperativeKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, list));
  HIP_REFUSES(
      hipErrorInvalidConfiguration,
      hipModuleLaunchCooperativeKernel(kernels["chain"], 1, 0, 1, 32, 1, 1, 0, nullptr, list));
}

using LaunchAll = hipError_t (*)(hipLaunchParams*, int, unsigned);
constexpr LaunchAll kLaunchAll[] = {&hipLaunchCooperativeKernelMultiDevice,
                                    &hipExtLaunchMultiKernelMultiDevice};

TEST(HipLaunch, ListsOfLaunches) {
  Program program;
  const Stream stream;
  const Buffer<int> data(32);
  SetTo five(data.data, 5);
  void* set_to = const_cast<void*>(program.kernel("set_to"));
  const hipLaunchParams good{set_to, {1}, {32}, five.list, 0, stream};
  int devices = 0;
  HIP_OK(hipGetDeviceCount(&devices));
  for (const LaunchAll launch_all : kLaunchAll) {
    std::vector<hipLaunchParams> list(static_cast<size_t>(devices) + 1, good);
    HIP_OK(hipMemset(data.data, 0, 128));
    HIP_OK(hipDeviceSynchronize());
    HIP_REFUSES(hipErrorInvalidValue, launch_all(nullptr, 1, 0));
    HIP_REFUSES(hipErrorInvalidValue, launch_all(list.data(), 0, 0));
    HIP_REFUSES(hipErrorInvalidValue, launch_all(list.data(), -1, 0));
    HIP_REFUSES(hipErrorInvalidValue, launch_all(list.data(), devices + 1, 0));
    HIP_REFUSES(hipErrorInvalidValue, launch_all(list.data(), 1, 4));
    list[0].stream = nullptr;  // each launch must name a stream
    HIP_REFUSES(hipErrorInvalidHandle, launch_all(list.data(), 1, 0));
    list[0] = good;
    list[0].func = &five;
    HIP_REFUSES(hipErrorInvalidDeviceFunction, launch_all(list.data(), 1, 0));
    list[0].func = nullptr;
    HIP_REFUSES(hipErrorInvalidDeviceFunction, launch_all(list.data(), 1, 0));
    EXPECT_EQ(std::vector<int>(32, 0), data.get());
    list[0] = good;
    HIP_OK(launch_all(
        list.data(), 1,
        hipCooperativeLaunchMultiDeviceNoPreSync | hipCooperativeLaunchMultiDeviceNoPostSync));
    HIP_OK(hipStreamSynchronize(stream));
    EXPECT_EQ(std::vector<int>(32, 5), data.get());
  }
  hipLaunchParams large = good;
  large.gridDim = {1u << 20};
  HIP_REFUSES(hipErrorCooperativeLaunchTooLarge,
              hipLaunchCooperativeKernelMultiDevice(&large, 1, 0));
}

// The following tests run with two devices. Since the program's code isn't the same on both, they
// use kernels of modules.

TEST(HipDevices, OneLaunchOnEach) {
  const char* const files[] = {"basic.gfx1100.hsaco", "basic.gfx90a.hsaco"};
  std::vector<std::unique_ptr<Kernels>> kernels;
  std::vector<std::unique_ptr<Buffer<int>>> data;
  std::vector<std::unique_ptr<SetTo>> arguments;
  hipStream_t streams[2] = {};
  hipEvent_t event = nullptr;
  std::vector<hipLaunchParams> list;
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    const auto at = static_cast<size_t>(device);
    kernels.push_back(std::make_unique<Kernels>(files[device]));
    data.push_back(std::make_unique<Buffer<int>>(64));
    arguments.push_back(std::make_unique<SetTo>(data[at]->data, 20 + device));
    HIP_OK(hipStreamCreate(&streams[at]));
    list.push_back({(*kernels[at])["set_to"], {1}, {64}, arguments[at]->list, 0, streams[at]});
  }
  HIP_OK(hipEventCreate(&event));  // it belongs to device 1
  HIP_OK(hipSetDevice(0));
  for (const LaunchAll launch_all : kLaunchAll) {
    std::vector<hipLaunchParams> twice{list[0], list[0]}, wrong = list;
    HIP_REFUSES(hipErrorInvalidDevice, launch_all(twice.data(), 2, 0));
    wrong[1].func = list[0].func;
    HIP_REFUSES(hipErrorInvalidDevice, launch_all(wrong.data(), 2, 0));
    HIP_OK(hipStreamSynchronize(streams[0]));
    EXPECT_EQ(std::vector<int>(64, 0), data[0]->get()) << "all are launched, or none";
    HIP_OK(launch_all(list.data(), 2, 0));
    for (size_t at = 0; at < 2; ++at) {
      HIP_OK(hipStreamSynchronize(streams[at]));
      EXPECT_EQ(std::vector<int>(64, 20 + static_cast<int>(at)), data[at]->get());
      HIP_OK(hipMemset(data[at]->data, 0, 256));
    }
    HIP_OK(hipDeviceSynchronize());
  }
  HIP_REFUSES(hipErrorInvalidHandle,
              hipExtModuleLaunchKernel((*kernels[0])["set_to"], 64, 1, 1, 64, 1, 1, 0, streams[0],
                                       arguments[0]->list, nullptr, nullptr, event, 0));
  HIP_OK(hipEventDestroy(event));
  for (const hipStream_t stream : streams) HIP_OK(hipStreamDestroy(stream));
}

}  // namespace
