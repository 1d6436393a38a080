// Packets that are right: kernels, barriers, memory that only the GPU maps, code that changes, two
// GPUs.

#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "emu/tests/model_support.h"

namespace emu::model::test {
namespace {

// Before the library lowers the priority of the thread that creates the GPUs.
const int nice_at_start = getpriority(PRIO_PROCESS, 0);

std::vector<int> numbers(const Gpu::Memory& memory, size_t count) {
  return {memory.at<int>(), memory.at<int>() + count};
}

/// Runs set_to(data, value) for 256 work-items.
void set_to(Gpu& gpu, const Program& program, uint64_t data, int value) {
  TestQueue queue(gpu);
  TestSignal done(gpu, 1);
  Call call(gpu, program.kernel("set_to"), 4, 64);
  queue.submit(call.with(data).with(value).packet(done.handle()));
  EXPECT_TRUE(done.becomes(0));
  EXPECT_EQ(queue.error().value(), 0);
}

TEST(ModelTopology, GpusHaveTheArchitecturesOfTheFolder) {
  EXPECT_NE(Gpu::number(0).model, nullptr);
  EXPECT_NE(Gpu::number(1).model, nullptr);
  const std::string said = said_by([] {
    EXPECT_EQ(get_hsakmt_model_functions()->create(), nullptr);  // there is no third one
  });
  EXPECT_NE(said.find("no GPU 2"), std::string::npos) << said;
}

TEST(ModelTopology, UnknownArchitecturesAreNamed) {
  Gpu::number(0);
  const std::string before = std::getenv("HSA_MODEL_TOPOLOGY");
  write_topology({110000, 110000, 90999});
  const std::string said =
      said_by([] { EXPECT_EQ(get_hsakmt_model_functions()->create(), nullptr); });
  EXPECT_NE(said.find("gfx9963 isn't implemented"), std::string::npos) << said;
}

TEST(ModelDispatch, RunsAKernel) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(1024);
  TestQueue queue(gpu);
  TestSignal done(gpu, 3);
  Call call(gpu, program.kernel("set_to"), 4, 64);
  queue.submit(call.with(data.address).with(42).packet(done.handle()));
  EXPECT_TRUE(done.becomes(2));
  EXPECT_EQ(numbers(data, 256), std::vector<int>(256, 42));
  EXPECT_EQ(queue.processed(), 1u);
  EXPECT_EQ(queue.header(0), static_cast<uint16_t>(PacketType::invalid));
  EXPECT_GT(done.signal().start, 0u);
  EXPECT_GE(done.signal().end, done.signal().start);
  gpu.free(data);
}

TEST(ModelDispatch, RingsWrapAround) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(256);
  TestQueue queue(gpu, 4);
  Call call(gpu, program.kernel("add_one"), 1, 64);
  call.with(data.address).with(64);
  for (uint64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(queue.processes(i < 3 ? 0 : i - 3));  // no more than four are in the ring
    queue.submit(call.packet());
  }
  EXPECT_TRUE(queue.processes(50));
  EXPECT_EQ(numbers(data, 64), std::vector<int>(64, 50));
  gpu.free(data);
}

TEST(ModelDispatch, BlocksNeedNotDivideTheGrid) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(1024);
  TestQueue queue(gpu);
  TestSignal done(gpu, 1);
  Call call(gpu, program.kernel("set_to"), 2, 64);
  Dispatch packet = call.with(data.address).with(7).packet(done.handle());
  packet.grid[0] = 100;
  queue.submit(packet);
  EXPECT_TRUE(done.becomes(0));
  std::vector<int> wanted(128, 0);
  std::fill_n(wanted.begin(), 100, 7);
  EXPECT_EQ(numbers(data, 128), wanted);
  gpu.free(data);
}

TEST(ModelDispatch, UsesLdsOfThePacket) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(256);
  for (int i = 0; i < 64; ++i) data.at<int>()[i] = i;
  TestQueue queue(gpu);
  TestSignal done(gpu, 1);
  Call call(gpu, program.kernel("reverse"), 1, 64);
  Dispatch packet = call.with(data.address).packet(done.handle());
  packet.group_bytes = 256;
  queue.submit(packet);
  EXPECT_TRUE(done.becomes(0));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(data.at<int>()[i], 63 - i);
  gpu.free(data);
}

TEST(ModelMemory, OnlyTheGpuMapsIt) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels(), false);
  const Gpu::Memory data = gpu.allocate(1024, false);
  set_to(gpu, program, data.address, 5);
  EXPECT_EQ(numbers(data, 256), std::vector<int>(256, 5));
  gpu.free(data);
}

TEST(ModelMemory, AnAddressIsUsedAgain) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  Gpu::Memory data = gpu.allocate(1024, false);
  for (int value = 1; value < 4; ++value) {
    set_to(gpu, program, data.address, value);
    EXPECT_EQ(numbers(data, 256), std::vector<int>(256, value));
    gpu.free(data);
    data = gpu.allocate_at(data.address, 1024, value == 2);
  }
  gpu.free(data);
}

TEST(ModelMemory, OneGpuAccessesAnothersMemory) {
  Gpu& first = Gpu::number(0);
  Gpu& second = Gpu::number(1);
  const Program program(first, basic_kernels());
  const Gpu::Memory data = second.allocate(1024, false);
  set_to(first, program, data.address, 9);
  EXPECT_EQ(numbers(data, 256), std::vector<int>(256, 9));
  second.free(data);
}

/// A vendor packet with commands. `buffer` keeps them.
Pm4 commands(const Gpu::Memory& buffer, const std::vector<uint32_t>& words) {
  std::memcpy(buffer.host, words.data(), words.size() * 4);
  Pm4 packet;
  packet.format = static_cast<uint8_t>(VendorFormat::pm4);
  packet.jump[0] = 3u << 30 | 2u << 16 | 0x3f << 8;
  packet.jump[1] = static_cast<uint32_t>(buffer.address);
  packet.jump[2] = static_cast<uint32_t>(buffer.address >> 32);
  packet.jump[3] = static_cast<uint32_t>(words.size()) | 1 << 23;
  return packet;
}

/// Replaces the first instruction of a kernel by s_endpgm.
void end_at_once(uint64_t kernel) {
  *reinterpret_cast<uint32_t*>(kernel + *reinterpret_cast<const uint64_t*>(kernel + 16)) =
      architecture() == "gfx90a" ? 0xbf810000 : 0xbfb00000;
}

TEST(ModelCode, ChangesWhereCachesAreInvalidated) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(1024), buffer = gpu.allocate(256);
  set_to(gpu, program, data.address, 1);
  end_at_once(program.kernel("set_to"));
  TestQueue queue(gpu);
  TestSignal done(gpu, 1);
  Pm4 packet = commands(buffer, {3u << 30 | 6u << 16 | 0x58 << 8, 0, 0, 0, 0, 0, 0, 0});
  packet.completion = done.handle();
  queue.submit(packet);
  EXPECT_TRUE(done.becomes(0));
  set_to(gpu, program, data.address, 2);
  EXPECT_EQ(numbers(data, 256), std::vector<int>(256, 1));
  gpu.free(data);
  gpu.free(buffer);
}

TEST(ModelCode, AnotherObjectAtTheSameAddress) {
  Gpu& gpu = Gpu::number(0);
  const Gpu::Memory data = gpu.allocate(1024);
  const Gpu::Memory place = gpu.allocate(1 << 20);
  {
    const Program program(gpu, basic_kernels(), place);
    set_to(gpu, program, data.address, 1);
  }  // frees the place
  // The kernel at this address writes nothing.
  const Program other(gpu, basic_kernels(), gpu.allocate_at(place.address, 1 << 20, true));
  end_at_once(other.kernel("set_to"));
  set_to(gpu, other, data.address, 2);
  EXPECT_EQ(numbers(data, 256), std::vector<int>(256, 1));
  gpu.free(data);
}

TEST(ModelBarrier, WaitsForAllSignals) {
  Gpu& gpu = Gpu::number(0);
  TestQueue queue(gpu);
  TestSignal first(gpu, 1), second(gpu, 1), done(gpu, 1);
  Barrier barrier;
  barrier.header = static_cast<uint16_t>(PacketType::barrier_and);
  barrier.signals[0] = first.handle();
  barrier.signals[4] = second.handle();
  barrier.completion = done.handle();
  queue.submit(barrier);
  first.signal().value = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(done.value(), 1);
  second.signal().value = 0;
  EXPECT_TRUE(done.becomes(0));
}

TEST(ModelBarrier, WaitsForOneSignal) {
  Gpu& gpu = Gpu::number(0);
  TestQueue queue(gpu);
  TestSignal first(gpu, 1), second(gpu, 1), done(gpu, 1);
  Barrier barrier;
  barrier.header = static_cast<uint16_t>(PacketType::barrier_or);
  barrier.signals[1] = first.handle();
  barrier.signals[2] = second.handle();
  barrier.completion = done.handle();
  queue.submit(barrier);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(done.value(), 1);
  second.signal().value = 0;
  EXPECT_TRUE(done.becomes(0));
}

TEST(ModelBarrier, WithoutSignalsWaitsForNothing) {
  Gpu& gpu = Gpu::number(0);
  for (const PacketType type : {PacketType::barrier_and, PacketType::barrier_or}) {
    TestQueue queue(gpu);
    Barrier barrier;
    barrier.header = static_cast<uint16_t>(type);
    queue.submit(barrier);
    EXPECT_TRUE(queue.processes(1));
  }
}

TEST(ModelBarrier, WaitsForAValue) {
  Gpu& gpu = Gpu::number(0);
  struct Case {
    Condition condition;
    int64_t before, after;
  };
  // Each compares the lower byte with 5.
  for (const Case& c :
       {Case{Condition::equal, 0x106, 0x105}, Case{Condition::not_equal, 0x105, 0x104},
        Case{Condition::less, 0x105, 0x104}, Case{Condition::not_less, 0x104, 0x105}}) {
    TestQueue queue(gpu);
    TestSignal signal(gpu, c.before), done(gpu, 1);
    BarrierValue barrier;
    barrier.format = static_cast<uint8_t>(VendorFormat::barrier_value);
    barrier.signal = signal.handle();
    barrier.value = 5;
    barrier.mask = 0xff;
    barrier.condition = static_cast<uint32_t>(c.condition);
    barrier.completion = done.handle();
    queue.submit(barrier);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(done.value(), 1);
    signal.signal().value = c.after;
    EXPECT_TRUE(done.becomes(0));
  }
}

TEST(ModelEvents, CompletionRaisesTheSignalsEvent) {
  Gpu& gpu = Gpu::number(1);
  static std::atomic<unsigned> raised{0};
  get_hsakmt_model_functions()->set_set_event(
      gpu.model,
      [](void* data, unsigned event) { *static_cast<std::atomic<unsigned>*>(data) = event; },
      &raised);
  TestQueue queue(gpu);
  TestSignal done(gpu, 1), mailbox(gpu, 0);
  done.signal().mailbox = mailbox.handle() + 8;
  done.signal().event = 77;
  Barrier barrier;
  barrier.header = static_cast<uint16_t>(PacketType::barrier_and);
  barrier.completion = done.handle();
  queue.submit(barrier);
  EXPECT_TRUE(comes_true([] { return raised == 77u; }));
  EXPECT_EQ(mailbox.value(), 77);
  get_hsakmt_model_functions()->set_set_event(gpu.model, nullptr, nullptr);
}

TEST(ModelQueue, OneWaitsForAnother) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory data = gpu.allocate(256);
  TestQueue first(gpu), second(gpu);
  TestSignal between(gpu, 1), done(gpu, 1);
  Barrier barrier;
  barrier.header = static_cast<uint16_t>(PacketType::barrier_and);
  barrier.signals[0] = between.handle();
  first.submit(barrier);
  Call one(gpu, program.kernel("add_one"), 1, 64), set(gpu, program.kernel("set_to"), 1, 64);
  first.submit(one.with(data.address).with(64).packet(done.handle()));
  second.submit(set.with(data.address).with(10).packet(between.handle()));
  EXPECT_TRUE(done.becomes(0));
  EXPECT_EQ(numbers(data, 64), std::vector<int>(64, 11));
  gpu.free(data);
}

/// Numbers and nice values of the process's threads.
std::map<std::string, int> nice_values() {
  std::map<std::string, int> values;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string number = task.path().filename();
    errno = 0;
    const int value = getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(number)));
    if (errno == 0) values[number] = value;  // otherwise it has ended
  }
  return values;
}

/// The test's main thread stands for the program's, which creates the GPUs.
TEST(ModelQueue, HasAHigherPriorityThanThreadsThatPoll) {
  Gpu& gpu = Gpu::number(0);
  std::thread polls(
      [] { EXPECT_EQ(getpriority(PRIO_PROCESS, 0), std::min(nice_at_start + 5, 19)); });
  polls.join();
  const std::map<std::string, int> before = nice_values();
  TestQueue queue(gpu);
  int started = 0;
  for (const auto& [number, value] : nice_values()) {
    if (before.contains(number)) continue;
    EXPECT_EQ(value, nice_at_start) << number;
    ++started;
  }
  EXPECT_EQ(started, 1);
}

TEST(ModelQueue, EndsWithAKernelThatDoesNot) {
  Gpu& gpu = Gpu::number(0);
  const Program program(gpu, basic_kernels());
  const Gpu::Memory flag = gpu.allocate(64);
  TestQueue queue(gpu);
  TestSignal done(gpu, 1);
  Call call(gpu, program.kernel("never_ends"), 1, 1);
  queue.submit(call.with(flag.address).packet(done.handle()));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  queue.end();
  EXPECT_EQ(done.value(), 1);
  gpu.free(flag);
}

}  // namespace
}  // namespace emu::model::test
