// Tests the table of NVIDIA's driver with a stand-in, which WICK_CUDA_LIBRARY names and which
// checks arguments.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/backend/gpu_launch.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

const KernelFamily<GemvArgs> kGemv("gemv", "gemv_q4_0");

class GpuCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("WICK_CUDA_LIBRARY") == nullptr) GTEST_SKIP() << "WICK_CUDA_LIBRARY isn't set";
    ASSERT_NE(Driver::of(DeviceKind::cuda), nullptr) << Driver::missing(DeviceKind::cuda);
    std::string chosen;
    if (!has_images("sm_90", chosen)) GTEST_SKIP() << "no kernels for sm_90: no nvcc at build time";
  }
};

TEST_F(GpuCuda, KnowsItsDevice) {
  const Driver& driver = *Driver::of(DeviceKind::cuda);
  EXPECT_EQ(driver.device_count(), 1);
  EXPECT_EQ(driver.version(), "13.0");
  const GpuInfo info = driver.info(0);
  EXPECT_EQ(info.architecture, "sm_90");
  EXPECT_EQ(info.multiprocessors, 132);
  EXPECT_EQ(info.wave, 32);
  EXPECT_THROW(Gpu(Device{DeviceKind::cuda, 1}), Error);
}

TEST_F(GpuCuda, MemoryComesAndGoes) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  std::vector<int> in(1000, 7), out(1000);
  void* data = gpu.pool.take(4000);
  gpu.check(gpu.driver.api.copy_to_device(data, in.data(), 4000, gpu.stream()), "copying");
  gpu.check(gpu.driver.api.copy_to_host(out.data(), data, 4000, gpu.stream()), "copying");
  gpu.synchronize();
  EXPECT_EQ(in, out);
  gpu.check(gpu.driver.api.set_bytes(data, 0, 4000, gpu.stream()), "filling");
  EXPECT_THROW(
      gpu.check(gpu.driver.api.copy_to_host(out.data(), data, 100'000, gpu.stream()), "copying"),
      Error);
  gpu.pool.give(data);
  EXPECT_THROW(gpu.pool.take(size_t{1} << 30), Error);
}

TEST_F(GpuCuda, KernelsAreFoundAndLaunched) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  void* data = gpu.pool.take(4096);
  launch_unary(gpu, Op::silu, data, 1024);
  Grid pdl;
  pdl.pdl = true;
  pdl.shared_bytes = 100 << 10;  // more than a kernel gets by default
  kGemv().launch(gpu, pdl, {{{}, data, data, nullptr, 1, 16, 1}, 1});
  EXPECT_EQ(gpu.modules_loaded(), 2);
  EXPECT_THROW(gpu.function("map_f32", "no_such_kernel"), Error);
  const Kernel<UnaryArgs> silu = kUnaryF32(Op::silu);
  const UnaryArgs args{data, data, {}, 0};
  Grid wrong;
  wrong.threads = 2048;
  EXPECT_THROW(silu.launch(gpu, wrong, args), Error);
  wrong = Grid{};
  wrong.blocks[1] = 70'000;
  EXPECT_THROW(silu.launch(gpu, wrong, args), Error);
  wrong = Grid{};
  wrong.shared_bytes = 300 << 10;
  EXPECT_THROW(silu.launch(gpu, wrong, args), Error);
  gpu.pool.give(data);
}

/// An event that the destructor destroys.
class Event {
 public:
  Event(Gpu& gpu, unsigned flags) : gpu_(gpu) {
    gpu.check(gpu.driver.api.event_create(&handle, flags), "making an event");
  }
  ~Event() { gpu_.driver.api.event_destroy(handle); }
  void record() { gpu_.check(gpu_.driver.api.event_record(handle, gpu_.stream()), "recording"); }
  void* handle = nullptr;

 private:
  Gpu& gpu_;
};

TEST_F(GpuCuda, EventsTellTheTimeOnceItIsKnown) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  const Api& api = gpu.driver.api;
  Event start(gpu, 0), stop(gpu, 0), untimed(gpu, 2);
  float ms = 0;
  EXPECT_NE(api.event_elapsed(&ms, start.handle, stop.handle), 0);  // nothing has been recorded
  void* data = gpu.pool.take(4096);
  start.record();
  launch_unary(gpu, Op::silu, data, 1024);
  stop.record();
  untimed.record();
  EXPECT_NE(api.event_elapsed(&ms, start.handle, stop.handle), 0);  // not recorded yet
  gpu.check(api.event_synchronize(stop.handle), "waiting");
  gpu.check(api.event_elapsed(&ms, start.handle, stop.handle), "reading a time");
  EXPECT_GT(ms, 0);
  EXPECT_NE(api.event_elapsed(&ms, start.handle, untimed.handle), 0);
  gpu.pool.give(data);
  EXPECT_NE(api.event_create(&data, 8), 0);
}

TEST_F(GpuCuda, WorkIsDoneWhenItIsWaitedFor) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  auto* data = static_cast<unsigned char*>(gpu.pool.take(4096));
  gpu.check(gpu.driver.api.set_bytes(data, 7, 4096, gpu.stream()), "filling");
  EXPECT_NE(data[0], 7);  // the stand-in's memory is host memory
  gpu.synchronize();
  EXPECT_EQ(data[0], 7);
  EXPECT_NE(gpu.driver.api.set_bytes(data, 7, 4096, nullptr), 0) << "the default stream";
  EXPECT_NE(gpu.driver.api.copy_on_device(data + 8, data, 16, gpu.stream()), 0) << "overlap";
  gpu.pool.give(data);
}

TEST_F(GpuCuda, AStreamWaitsForAnothersEvent) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  const Api& api = gpu.driver.api;
  auto* data = static_cast<unsigned char*>(gpu.pool.take(4096));
  void *other = nullptr, *host = nullptr;
  gpu.check(api.stream_create(&other, 1), "making a stream");
  gpu.check(api.host_alloc(&host, 4096, 0), "allocating");
  {
    Event filled(gpu, 2);
    gpu.check(api.set_bytes(data, 9, 4096, gpu.stream()), "filling");
    filled.record();
    gpu.check(api.stream_wait_event(other, filled.handle, 0), "waiting");
    gpu.check(api.copy_to_host(host, data, 4096, other), "copying");
    EXPECT_NE(*static_cast<unsigned char*>(host), 9) << "to pinned memory nobody waits";
    gpu.check(api.stream_synchronize(other), "waiting");
    EXPECT_EQ(*static_cast<unsigned char*>(host), 9);
  }
  EXPECT_NE(api.stream_wait_event(other, other, 0), 0) << "no event";
  gpu.synchronize();
  gpu.check(api.host_free(host), "freeing");
  gpu.check(api.stream_destroy(other), "destroying");
  gpu.pool.give(data);
}

TEST_F(GpuCuda, AGraphDoesItsWorkWhenItIsLaunched) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  const Api& api = gpu.driver.api;
  auto* data = static_cast<unsigned char*>(gpu.pool.take(4096));
  gpu.function("map_f32", "silu_f32");
  gpu.check(api.set_bytes(data, 1, 4096, gpu.stream()), "filling");
  gpu.synchronize();

  void *graph = nullptr, *exec = nullptr;
  gpu.check(api.capture_begin(gpu.stream(), 1), "capturing");
  EXPECT_NE(api.capture_begin(gpu.stream(), 1), 0) << "twice";
  gpu.check(api.set_bytes(data, 2, 4096, gpu.stream()), "filling");
  launch_unary(gpu, Op::silu, data, 1024);
  gpu.check(api.capture_end(gpu.stream(), &graph), "capturing");
  gpu.synchronize();
  EXPECT_EQ(data[0], 1) << "captured work isn't done";
  gpu.check(api.graph_instantiate(&exec, graph, 0), "making a graph");
  gpu.check(api.graph_destroy(graph), "freeing a graph");
  EXPECT_NE(api.graph_instantiate(&graph, graph, 0), 0) << "a graph that is gone";
  gpu.check(api.graph_launch(exec, gpu.stream()), "launching a graph");
  gpu.synchronize();
  EXPECT_EQ(data[0], 2);
  gpu.check(api.graph_exec_destroy(exec), "freeing a graph");
  EXPECT_NE(api.graph_launch(exec, gpu.stream()), 0);
  gpu.pool.give(data);
}

TEST_F(GpuCuda, ACaptureIsLostByWhatItForbids) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  const Api& api = gpu.driver.api;
  void* graph = nullptr;
  EXPECT_NE(api.capture_end(gpu.stream(), &graph), 0) << "none has begun";
  const auto loses = [&](auto forbidden) {
    gpu.check(api.capture_begin(gpu.stream(), 1), "capturing");
    EXPECT_THROW(forbidden(), Error);
    EXPECT_NE(api.capture_end(gpu.stream(), &graph), 0);
    EXPECT_EQ(graph, nullptr);
  };
  loses([&] { gpu.synchronize(); });
  loses([&] { gpu.pool.take(size_t{10} << 20); });
  loses([&] { gpu.function("norm", "rms_norm_f32"); });
  EXPECT_NO_THROW(gpu.synchronize());
}

}  // namespace
}  // namespace wick::gpu
