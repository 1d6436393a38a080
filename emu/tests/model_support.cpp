#include "emu/tests/model_support.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace emu::model::test {
namespace {

constexpr uint64_t kApertureBytes = uint64_t{1} << 38, kPage = 4096;

uint32_t version_of(const std::string& architecture) {
  return architecture == "gfx90a" ? 90010 : 110000;
}

/// The file behind the memory of all GPUs.
int backing() {
  static const int file = memfd_create("emu_model_test", 0);
  return file;
}

size_t grow(uint64_t bytes) {
  static size_t end = 0;
  const size_t offset = end;
  end += bytes;
  EXPECT_EQ(ftruncate(backing(), static_cast<off_t>(end)), 0);
  return offset;
}

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

}  // namespace

std::string architecture() {
  const char* wanted = std::getenv("EMU_MODEL_ARCH");
  return wanted == nullptr ? "gfx1100" : wanted;
}

std::string basic_kernels() { return "basic." + architecture() + ".hsaco"; }

bool comes_true(const std::function<bool()>& met) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!met()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

std::string said_by(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

void write_topology(const std::vector<uint32_t>& versions) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("emu_model_test." + std::to_string(getpid()));
  fs::remove_all(folder);
  for (size_t node = 0; node <= versions.size(); ++node) {
    const fs::path path = folder / "nodes" / std::to_string(node);
    fs::create_directories(path);
    std::ofstream out(path / "properties");
    out << "cpu_cores_count " << (node == 0 ? 2 : 0) << "\n";
    out << "gfx_target_version " << (node == 0 ? 0 : versions[node - 1]) << "\n";
  }
  setenv("HSA_MODEL_TOPOLOGY", folder.c_str(), 1);
  static const struct Remover {
    fs::path path;
    ~Remover() { fs::remove_all(path); }
  } remover{folder};
}

Gpu::Gpu(Model* model) : model(model) {
  void* const reserved =
      mmap(nullptr, kApertureBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(reserved, MAP_FAILED);
  aperture_ = static_cast<char*>(reserved);
  get_hsakmt_model_functions()->set_aperture(model, reserved, kApertureBytes);
}

Gpu& Gpu::number(int index) {
  static std::unique_ptr<Gpu> gpus[2];
  if (gpus[0] == nullptr) {
    write_topology({version_of(architecture()), version_of(architecture())});
    for (auto& gpu : gpus) gpu = std::make_unique<Gpu>(get_hsakmt_model_functions()->create());
  }
  return *gpus[index];
}

Gpu::Memory Gpu::allocate(uint64_t bytes, bool visible) {
  // GPUs have addresses of 38 bits here, as in the hook, so the lower part of the address space is
  // searched.
  static uint64_t next = uint64_t{1} << 36;
  const uint64_t address = next;
  next += (bytes + kPage - 1) / kPage * kPage + kPage;
  return allocate_at(address, bytes, visible);
}

Gpu::Memory Gpu::allocate_at(uint64_t address, uint64_t bytes, bool visible) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  Memory memory{address, bytes, nullptr, grow(bytes)};
  const auto offset = static_cast<off_t>(memory.offset);
  void* const reserved =
      mmap(pointer(address), bytes, visible ? PROT_READ | PROT_WRITE : PROT_NONE,
           visible ? MAP_SHARED | MAP_FIXED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
           visible ? backing() : -1, visible ? offset : 0);
  EXPECT_EQ(reserved, pointer(address));
  get_hsakmt_model_functions()->allocated(model, reserved, bytes, 0);
  void* const seen = mmap(aperture_ + address, bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, backing(), offset);
  EXPECT_EQ(seen, aperture_ + address);
  memory.host = visible ? pointer(address) : static_cast<char*>(seen);
  return memory;
}

void Gpu::free(const Memory& memory) {
  get_hsakmt_model_functions()->freed(model, pointer(memory.address), memory.bytes);
  const int none = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  mmap(aperture_ + memory.address, memory.bytes, PROT_NONE, none, -1, 0);
  mmap(pointer(memory.address), memory.bytes, PROT_NONE, none, -1, 0);
}

namespace {

std::vector<char> read_kernels(const std::string& name) {
  std::ifstream in(std::string(EMU_TEST_KERNELS) + "/" + name, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

template <class T>
const T* at(const std::vector<char>& file, uint64_t offset) {
  return reinterpret_cast<const T*>(file.data() + offset);
}

uint64_t memory_bytes(const std::vector<char>& file) {
  const auto* header = at<Elf64_Ehdr>(file, 0);
  uint64_t end = 0;
  for (int i = 0; i < header->e_phnum; ++i) {
    const auto* segment = at<Elf64_Phdr>(file, header->e_phoff) + i;
    if (segment->p_type == PT_LOAD) end = std::max(end, segment->p_vaddr + segment->p_memsz);
  }
  return end;
}

}  // namespace

Program::Program(Gpu& gpu, const std::string& file, bool visible)
    : gpu_(gpu), file_(read_kernels(file)), memory_(gpu.allocate(memory_bytes(file_), visible)) {
  load();
}

Program::Program(Gpu& gpu, const std::string& file, const Gpu::Memory& place)
    : gpu_(gpu), file_(read_kernels(file)), memory_(place) {
  load();
}

Program::~Program() { gpu_.free(memory_); }

void Program::load() {
  const auto* header = at<Elf64_Ehdr>(file_, 0);
  for (int i = 0; i < header->e_phnum; ++i) {
    const auto* segment = at<Elf64_Phdr>(file_, header->e_phoff) + i;
    if (segment->p_type != PT_LOAD) continue;
    std::memcpy(memory_.host + segment->p_vaddr, file_.data() + segment->p_offset,
                segment->p_filesz);
  }
}

uint64_t Program::kernel(const std::string& name) const {
  const auto* header = at<Elf64_Ehdr>(file_, 0);
  const auto* sections = at<Elf64_Shdr>(file_, header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_DYNSYM) continue;
    const char* names = file_.data() + sections[sections[s].sh_link].sh_offset;
    for (uint64_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
      const auto* symbol = at<Elf64_Sym>(file_, sections[s].sh_offset) + i;
      if (names + symbol->st_name == name + ".kd") return memory_.address + symbol->st_value;
    }
  }
  ADD_FAILURE() << "no kernel " << name;
  return 0;
}

TestSignal::TestSignal(Gpu& gpu, int64_t value) : gpu_(gpu), memory_(gpu.allocate(sizeof(Signal))) {
  auto* made = new (memory_.host) Signal;
  made->kind = kUserSignal;
  made->value = value;
}

TestSignal::~TestSignal() { gpu_.free(memory_); }

bool TestSignal::becomes(int64_t wanted) const {
  return comes_true([&] { return value() == wanted; });
}

TestQueue::TestQueue(Gpu& gpu, uint32_t packets)
    : gpu_(gpu),
      packets_(packets),
      memory_(gpu.allocate(4096)),
      ring_(gpu.allocate(uint64_t{packets} * kPacketBytes)),
      error_(gpu, 0) {
  *memory_.at<uint64_t>(kInactiveSignalOffset) = error_.handle();
  for (uint32_t i = 0; i < packets; ++i) *ring_.at<uint16_t>(uint64_t{i} * kPacketBytes) = 1;
  QueueInfo info;
  info.ring = ring_.address;
  info.ring_bytes = packets * kPacketBytes;
  info.write_pointer = memory_.address + kWritePointerOffset;
  info.read_pointer = memory_.address + kReadPointerOffset;
  info.type = kAqlQueue;
  queue_ = get_hsakmt_model_functions()->register_queue(gpu.model, &info);
}

TestQueue::~TestQueue() {
  end();
  gpu_.free(ring_);
  gpu_.free(memory_);
}

void TestQueue::end() {
  if (queue_ != nullptr) get_hsakmt_model_functions()->destroy_queue(gpu_.model, queue_);
  queue_ = nullptr;
}

void TestQueue::submit_bytes(const void* packet) {
  char* const slot = ring_.host + written_ % packets_ * kPacketBytes;
  uint16_t header;
  std::memcpy(&header, packet, sizeof header);
  std::memcpy(slot + 2, static_cast<const char*>(packet) + 2, kPacketBytes - 2);
  ++written_;
  reinterpret_cast<std::atomic<uint64_t>*>(memory_.host + kWritePointerOffset)->store(written_);
  reinterpret_cast<std::atomic<uint16_t>*>(slot)->store(header, std::memory_order_release);
}

uint64_t TestQueue::processed() const {
  return reinterpret_cast<std::atomic<uint64_t>*>(memory_.host + kReadPointerOffset)->load();
}

bool TestQueue::processes(uint64_t packets) const {
  return comes_true([&] { return processed() >= packets; });
}

uint16_t TestQueue::header(uint64_t index) const {
  return *ring_.at<uint16_t>(index % packets_ * kPacketBytes);
}

Call::Call(Gpu& gpu, uint64_t kernel, uint32_t groups, uint32_t items)
    : gpu_(gpu), memory_(gpu.allocate(4096)), groups_(groups), items_(items) {
  dispatch_.header = static_cast<uint16_t>(PacketType::dispatch);
  dispatch_.setup = 1;
  dispatch_.kernel = kernel;
  dispatch_.kernarg = memory_.address;
  dispatch_.block[0] = static_cast<uint16_t>(items);
  dispatch_.block[1] = dispatch_.block[2] = 1;
  dispatch_.grid[0] = groups * items;
  dispatch_.grid[1] = dispatch_.grid[2] = 1;
}

Call::~Call() { gpu_.free(memory_); }

Dispatch Call::packet(uint64_t completion) {
  // Hidden arguments: the numbers of blocks, then the sizes of a group, along three axes.
  char* const hidden = memory_.host + (bytes_ + 7) / 8 * 8;
  const uint32_t counts[3] = {groups_, 1, 1};
  const uint16_t sizes[3] = {static_cast<uint16_t>(items_), 1, 1};
  std::memcpy(hidden, counts, sizeof counts);
  std::memcpy(hidden + sizeof counts, sizes, sizeof sizes);
  dispatch_.completion = completion;
  return dispatch_;
}

}  // namespace emu::model::test
