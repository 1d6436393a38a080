// Packets and queues that lie give a line on standard error and an error to the queue, and other
// queues go on.

#include <random>

#include "emu/tests/model_support.h"

namespace emu::model::test {
namespace {

/// What a refused packet must have left behind.
struct Refusal {
  QueueError error;
  const char* line;  // a part of the line
};

class ModelLies : public testing::Test {
 protected:
  ModelLies() : program(gpu, basic_kernels()), data(gpu.allocate(1024)) {}
  ~ModelLies() override { gpu.free(data); }

  /// A right packet, to be spoilt.
  Dispatch right(uint64_t completion = 0) {
    calls.push_back(std::make_unique<Call>(gpu, program.kernel("set_to"), 4, 64));
    return calls.back()->with(data.address).with(42).packet(completion);
  }

  void works() {
    TestQueue queue(gpu);
    TestSignal done(gpu, 1);
    queue.submit(right(done.handle()));
    EXPECT_TRUE(done.becomes(0));
    EXPECT_EQ(data.at<int>()[255], 42);
    data.at<int>()[255] = 0;
  }

  /// `packet` has no completion signal yet, unless it keeps its own.
  template <class Packet>
  void refused(Packet packet, const Refusal& wanted, bool own_completion = false) {
    TestQueue queue(gpu);
    TestSignal done(gpu, 1);
    if (!own_completion) packet.completion = done.handle();
    const std::string said = said_by([&] {
      queue.submit(packet);
      EXPECT_TRUE(comes_true([&] { return queue.error().value() != 0; })) << wanted.line;
    });
    EXPECT_EQ(queue.error().value(), static_cast<int64_t>(wanted.error)) << said;
    EXPECT_NE(said.find(wanted.line), std::string::npos) << said;
    EXPECT_NE(said.find("packet 0: "), std::string::npos) << said;
    EXPECT_EQ(done.value(), 1);
    EXPECT_EQ(queue.processed(), 0u);
    // The queue processes nothing more.
    TestSignal later(gpu, 1);
    queue.submit(right(later.handle()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(later.value(), 1);
    works();
  }

  Gpu& gpu = Gpu::number(0);
  Program program;
  Gpu::Memory data;
  std::vector<std::unique_ptr<Call>> calls;
};

TEST_F(ModelLies, UnknownPackets) {
  for (const int type : {6, 7, 200}) {
    Barrier packet;
    packet.header = static_cast<uint16_t>(type);
    refused(packet, {QueueError::packet_format, "unknown packet type"});
  }
  Barrier agent;
  agent.header = static_cast<uint16_t>(PacketType::agent_dispatch);
  refused(agent, {QueueError::packet_format, "agent dispatch"});
  BarrierValue vendor;
  vendor.format = 9;
  refused(vendor, {QueueError::vendor_format, "unknown format 9"});
}

TEST_F(ModelLies, KernelObjects) {
  Dispatch packet = right();
  const uint64_t kernel = packet.kernel;
  const auto with = [&](uint64_t object) {
    packet.kernel = object;
    return packet;
  };
  refused(with(0), {QueueError::code, "no kernel object at 0x0"});
  refused(with(kernel + 8), {QueueError::code, "no kernel object"});
  refused(with(uint64_t{1} << 62), {QueueError::code, "no kernel object"});
  refused(with(reinterpret_cast<uint64_t>(gpu.model) / 64 * 64), {QueueError::code, ""});
  refused(with(data.address), {QueueError::code, "kernel object"});  // zeros
  const Gpu::Memory forged = gpu.allocate(4096);
  std::memcpy(forged.host, reinterpret_cast<const void*>(kernel), 64);
  for (const int64_t offset :
       {int64_t{0}, int64_t{2}, int64_t{4032}, int64_t{1} << 40, int64_t{-4096}}) {
    *forged.at<int64_t>(16) = offset;
    refused(with(forged.address), {QueueError::code, "kernel object"});
  }
  gpu.free(forged);
}

TEST_F(ModelLies, Sizes) {
  Dispatch packet = right();
  packet.setup = 0;
  refused(packet, {QueueError::dimensions, "without dimensions"});
  for (int axis = 0; axis < 3; ++axis) {
    packet = right();
    packet.block[axis] = 0;
    refused(packet, {QueueError::dimensions, "in blocks of 0"});
    packet = right();
    packet.grid[axis] = 0;
    refused(packet, {QueueError::dimensions, "a grid of 0"});
  }
  packet = right();
  packet.block[2] = packet.grid[2] = 2;  // beyond the one dimension
  refused(packet, {QueueError::dimensions, "axis 2"});
  packet = right();
  packet.block[0] = 1025;
  refused(packet, {QueueError::group_size, "1025 work-items"});
  packet.setup = 3;
  packet.block[0] = packet.block[1] = packet.block[2] = 65535;
  refused(packet, {QueueError::group_size, "work-items"});
  packet = right();
  packet.setup = 3;
  packet.block[0] = 1;
  packet.grid[0] = packet.grid[1] = 0x80000000;  // 2^64 workgroups
  packet.grid[2] = 4;
  refused(packet, {QueueError::dimensions, "more than 2^64 - 1 workgroups"});
  packet = right();
  packet.group_bytes = 65537;
  refused(packet, {QueueError::group_memory, "65537 bytes of LDS"});
  packet = right();
  packet.private_bytes = ~0u;
  refused(packet, {QueueError::group_memory, "scratch"});
}

TEST_F(ModelLies, Arguments) {
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{4096}, ~uint64_t{0} - 7, uint64_t{1} << 60}) {
    Dispatch packet = right();
    packet.kernarg = address;
    refused(packet, {QueueError::memory, "the arguments at"});
  }
}

TEST_F(ModelLies, Registers) {
  if (architecture() == "gfx90a") GTEST_SKIP() << "it has as many as a descriptor can ask for";
  const Program greedy(gpu, basic_kernels());
  const uint64_t kernel = greedy.kernel("set_to");
  *reinterpret_cast<uint32_t*>(kernel + 48) |= 63;
  Call call(gpu, kernel, 1, 64);
  refused(call.with(data.address).with(1).packet(),
          {QueueError::registers, "512 vector registers; gfx1100 has 256"});
}

TEST_F(ModelLies, CompletionSignals) {
  for (const uint64_t handle : {uint64_t{8}, data.address + 1, data.address, ~uint64_t{7}}) {
    Dispatch packet = right();
    packet.completion = handle;
    refused(packet, {QueueError::packet_format, "completion signal"}, true);
  }
}

TEST_F(ModelLies, BarrierSignals) {
  for (const PacketType type : {PacketType::barrier_and, PacketType::barrier_or}) {
    Barrier packet;
    packet.header = static_cast<uint16_t>(type);
    packet.signals[3] = 0xdead00;
    refused(packet, {QueueError::packet_format, "barrier's signal 0xdead00"});
    packet.signals[3] = data.address;  // zeros
    refused(packet, {QueueError::packet_format, "isn't a signal"});
  }
  BarrierValue value;
  value.format = static_cast<uint8_t>(VendorFormat::barrier_value);
  value.signal = data.address;
  refused(value, {QueueError::packet_format, "isn't a signal"});
  TestSignal signal(gpu, 1);
  value.signal = signal.handle();
  value.condition = 4;
  refused(value, {QueueError::vendor_format, "unknown condition 4"});
}

TEST_F(ModelLies, SignalsThatVanish) {
  TestQueue queue(gpu);
  auto signal = std::make_unique<TestSignal>(gpu, 1);
  Barrier packet;
  packet.header = static_cast<uint16_t>(PacketType::barrier_and);
  packet.signals[0] = signal->handle();
  const std::string said = said_by([&] {
    queue.submit(packet);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    signal.reset();  // the memory is freed
    EXPECT_TRUE(comes_true([&] { return queue.error().value() != 0; }));
  });
  EXPECT_EQ(queue.error().value(), static_cast<int64_t>(QueueError::memory));
  EXPECT_NE(said.find("can't be read"), std::string::npos) << said;
  works();
}

TEST_F(ModelLies, Commands) {
  Pm4 packet;
  packet.format = static_cast<uint8_t>(VendorFormat::pm4);
  refused(packet, {QueueError::vendor_format, "can't be read"});  // no INDIRECT_BUFFER
  const uint32_t jump = 3u << 30 | 2u << 16 | 0x3f << 8;
  packet.jump[0] = jump;
  packet.jump[1] = 0x1000;
  packet.jump[3] = 8;
  refused(packet, {QueueError::vendor_format, "can't be read"});
  packet.jump[3] = 4097;
  refused(packet, {QueueError::vendor_format, "4097 words of commands"});
  const auto commands = [&](const std::vector<uint32_t>& words) {
    std::memcpy(data.host, words.data(), words.size() * 4);
    packet.jump[1] = static_cast<uint32_t>(data.address);
    packet.jump[2] = static_cast<uint32_t>(data.address >> 32);
    packet.jump[3] = static_cast<uint32_t>(words.size());
    return packet;
  };
  refused(commands({3u << 30 | 3u << 16 | 0x37 << 8, 0, 0, 0, 0}),
          {QueueError::vendor_format, "command 0x37"});
  refused(commands({0x12345678}), {QueueError::vendor_format, "word 0x12345678"});
  refused(commands({3u << 30 | 6u << 16 | 0x58 << 8, 0}),
          {QueueError::vendor_format, "beyond the end"});
}

TEST_F(ModelLies, KernelsThatFail) {
  Call traps(gpu, program.kernel("traps"), 1, 64);
  refused(traps.with(data.address).packet(), {QueueError::exception, "traps"});
  Call wild(gpu, program.kernel("out_of_bounds"), 1, 1);
  refused(wild.with(data.address).with(int64_t{1} << 34).packet(),
          {QueueError::memory, "in no allocation of a GPU"});
  // Code that is no instruction.
  const Program broken(gpu, basic_kernels());
  const uint64_t kernel = broken.kernel("set_to");
  *reinterpret_cast<uint32_t*>(kernel + *reinterpret_cast<const uint64_t*>(kernel + 16)) = ~0u;
  Call call(gpu, kernel, 1, 64);
  refused(call.with(data.address).with(1).packet(), {QueueError::instruction, "set_to"});
}

/// Returns where the dynamic section of a loaded program is, relative to its start.
uint64_t dynamic_section(const Program& program) {
  const auto* header = program.memory().at<Elf64_Ehdr>();
  for (int i = 0; i < header->e_phnum; ++i) {
    const auto* segment = program.memory().at<Elf64_Phdr>(header->e_phoff) + i;
    if (segment->p_type == PT_DYNAMIC) return segment->p_vaddr;
  }
  ADD_FAILURE() << "no dynamic section";
  return 0;
}

/// The ring can't be written any more when the packet is complete.
TEST_F(ModelLies, RingsThatCannotBeWritten) {
  TestQueue queue(gpu);
  TestSignal signal(gpu, 1);
  Barrier packet;
  packet.header = static_cast<uint16_t>(PacketType::barrier_and);
  packet.signals[0] = signal.handle();
  const std::string said = said_by([&] {
    queue.submit(packet);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Gpu::Memory& ring = queue.ring();
    EXPECT_EQ(mprotect(reinterpret_cast<void*>(ring.address), ring.bytes, PROT_READ), 0);
    signal.signal().value = 0;
    EXPECT_TRUE(comes_true([&] { return queue.error().value() != 0; }));
  });
  EXPECT_EQ(queue.error().value(), static_cast<int64_t>(QueueError::memory)) << said;
  EXPECT_NE(said.find("can't be written"), std::string::npos) << said;
  works();
}

/// Images with the program's own code, and a header or a table that lies.
TEST_F(ModelLies, Images) {
  const uint64_t kernel = program.kernel("set_to") - program.memory().address;
  const auto lying = [&](const std::function<void(const Gpu::Memory&)>& spoil, const char* line) {
    Program image(gpu, basic_kernels());
    spoil(image.memory());
    Call call(gpu, image.memory().address + kernel, 1, 64);
    refused(call.with(data.address).with(1).packet(), {QueueError::code, line});
  };
  const auto segment = [](const Gpu::Memory& memory, const std::function<bool(Elf64_Phdr&)>& is) {
    const auto* header = memory.at<Elf64_Ehdr>();
    for (int i = 0; i < header->e_phnum; ++i) {
      auto* found = memory.at<Elf64_Phdr>(header->e_phoff) + i;
      if (is(*found)) return found;
    }
    throw std::runtime_error("no such segment");
  };
  const auto data_segment = [](Elf64_Phdr& s) {
    return s.p_type == PT_LOAD && (s.p_flags & PF_X) == 0;
  };
  const auto code_segment = [](Elf64_Phdr& s) {
    return s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0;
  };
  lying([&](const Gpu::Memory& m) { segment(m, data_segment)->p_flags |= PF_X; },
        "two executable segments");
  lying([&](const Gpu::Memory& m) { segment(m, code_segment)->p_memsz = uint64_t{1} << 33; },
        "beyond 4 GiB");
  lying([&](const Gpu::Memory& m) { segment(m, code_segment)->p_memsz = 1 << 30; }, "past the end");
  const auto table = [&](const Gpu::Memory& m, int64_t tag) {
    auto* entry = m.at<Elf64_Dyn>(dynamic_section(program));
    while (entry->d_tag != tag) ++entry;
    return entry;
  };
  lying([&](const Gpu::Memory& m) { table(m, DT_STRSZ)->d_un.d_val = uint64_t{1} << 40; },
        "names are too long");
  lying([&](const Gpu::Memory& m) { *m.at<uint32_t>(table(m, DT_HASH)->d_un.d_ptr + 4) = ~0u; },
        "4294967295 symbols");
}

TEST_F(ModelLies, Queues) {
  const Functions* functions = get_hsakmt_model_functions();
  const Gpu::Memory memory = gpu.allocate(8192);
  QueueInfo good;
  good.ring = memory.address;
  good.ring_bytes = 1024;
  good.write_pointer = memory.address + 4096;
  good.read_pointer = memory.address + 4104;
  good.type = kAqlQueue;
  const auto refuses = [&](const std::function<void(QueueInfo&)>& spoil, const char* line) {
    QueueInfo info = good;
    spoil(info);
    const std::string said =
        said_by([&] { EXPECT_EQ(functions->register_queue(gpu.model, &info), nullptr); });
    EXPECT_NE(said.find(line), std::string::npos) << said;
  };
  refuses([](QueueInfo& i) { i.type = 1; }, "HSA_ENABLE_SDMA=0");
  refuses([](QueueInfo& i) { i.ring = 0; }, "invalid queue");
  refuses([](QueueInfo& i) { i.ring += 8; }, "invalid queue");
  for (const uint32_t bytes : {0u, 63u, 192u, 1000u}) {
    refuses([&](QueueInfo& i) { i.ring_bytes = bytes; }, "invalid queue");
  }
  refuses([](QueueInfo& i) { i.read_pointer = 0; }, "invalid queue");
  refuses([](QueueInfo& i) { i.write_pointer += 1; }, "invalid queue");
  const std::string said =
      said_by([&] { functions->destroy_queue(gpu.model, reinterpret_cast<Queue*>(memory.host)); });
  EXPECT_NE(said.find("doesn't exist"), std::string::npos) << said;
  gpu.free(memory);
}

TEST_F(ModelLies, RingsThatCannotBeRead) {
  QueueInfo info;
  info.ring = 0x10000;
  info.ring_bytes = 1024;
  info.read_pointer = 0x20000 + kReadPointerOffset;
  info.write_pointer = 0x20000 + kWritePointerOffset;
  info.type = kAqlQueue;
  const std::string said = said_by([&] {
    Queue* const queue = get_hsakmt_model_functions()->register_queue(gpu.model, &info);
    ASSERT_NE(queue, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    get_hsakmt_model_functions()->destroy_queue(gpu.model, queue);
  });
  EXPECT_NE(said.find("the read pointer can't be read"), std::string::npos) << said;
  EXPECT_NE(said.find("no signal for its errors"), std::string::npos) << said;
  works();
}

/// Headers and tables with changed bytes: the kernel runs, or its packet is refused. Its code stays
/// as it is, since changed code could write anywhere.
TEST_F(ModelLies, MutatedTables) {
  std::mt19937 random(20);
  const uint64_t kernel = program.kernel("set_to") - program.memory().address;
  const uint64_t dynamic = dynamic_section(program);
  int ran = 0, refused = 0;
  testing::internal::CaptureStderr();
  for (int round = 0; round < 300; ++round) {
    Program mutated(gpu, basic_kernels());
    for (int i = 0; i < 1 + round % 7; ++i) {
      const uint64_t at = round % 2 == 0 ? random() % kernel : dynamic + random() % 128;
      *mutated.memory().at<uint8_t>(at) = static_cast<uint8_t>(random());
    }
    TestQueue queue(gpu);
    TestSignal done(gpu, 1);
    Call call(gpu, mutated.memory().address + kernel, 1, 64);
    queue.submit(call.with(data.address).with(1).packet(done.handle()));
    EXPECT_TRUE(comes_true([&] { return done.value() == 0 || queue.error().value() != 0; }));
    ++(done.value() == 0 ? ran : refused);
  }
  testing::internal::GetCapturedStderr();
  EXPECT_GT(ran, 20);
  EXPECT_GT(refused, 20);
  works();
}

/// With WICK_EMU_TIMEOUT, whatever never ends becomes an error.
TEST_F(ModelLies, TimeoutOfBarriers) {
  TestSignal never(gpu, 1);
  for (const PacketType type : {PacketType::barrier_and, PacketType::barrier_or}) {
    Barrier packet;
    packet.header = static_cast<uint16_t>(type);
    packet.signals[0] = never.handle();
    refused(packet, {QueueError::exception, "the time of WICK_EMU_TIMEOUT"});
  }
}

TEST_F(ModelLies, TimeoutOfKernels) {
  const Gpu::Memory flag = gpu.allocate(64);
  Call call(gpu, program.kernel("never_ends"), 1, 1);
  refused(call.with(flag.address).packet(),
          {QueueError::exception, "the time of WICK_EMU_TIMEOUT"});
  gpu.free(flag);
}

}  // namespace
}  // namespace emu::model::test
