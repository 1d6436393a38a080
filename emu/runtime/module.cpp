#include "emu/runtime/module.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <new>

#include "emu/exec/fault.h"
#include "emu/object/limits.h"
#include "emu/object/preload.h"
#include "emu/runtime/descriptor.h"
#include "emu/runtime/device.h"
#include "emu/runtime/memory.h"

namespace emu {
namespace {

constexpr size_t kCached = 64;

/// Keeps lowered code, indexed by its content, for modules that are loaded again.
class CodeCache {
 public:
  template <class Make>
  std::shared_ptr<Code> get(uint64_t key, const std::vector<uint8_t>& text, const Make& make) {
    std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->key != key || entry->text != text) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->code;
    }
    entries_.push_front({key, text, make()});
    if (entries_.size() > kCached) entries_.pop_back();
    return entries_.front().code;
  }

 private:
  struct Entry {
    uint64_t key;
    std::vector<uint8_t> text;
    std::shared_ptr<Code> code;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
};

CodeCache& code_cache() {
  // Never destroyed: programs may exit without unloading their modules.
  static auto* cache = new CodeCache;
  return *cache;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

void check_descriptor(const Kernel& kernel) {
  const Descriptor& d = kernel.descriptor;
  if (d.scratch_bytes > kMostScratch || d.lds_bytes > 1 << 20 || d.kernarg_bytes > 1 << 20) {
    throw ObjectError(ObjectError::Kind::kernel,
                      "kernel " + shown(kernel.info.name) + ": its descriptor asks for too much");
  }
  // Kernels in assembly may leave the size of their arguments to the metadata.
  const uint32_t kernarg_bytes = std::max(d.kernarg_bytes, kernel.info.kernarg_bytes);
  if (!Preload(d.preload).fits(d.user_sgprs(), kernarg_bytes)) {
    throw ObjectError(ObjectError::Kind::kernel, "kernel " + shown(kernel.info.name) +
                                                     ": it has no room for preloaded arguments");
  }
}

}  // namespace

Module::Module(Device& device, Memory& memory, std::vector<uint8_t> image, CodeKind kind)
    : device(device), memory_(memory), object_(read_object(std::move(image))), kind_(kind) {
  if (fit(object_.target, device.target) == 0) {
    throw ObjectError(ObjectError::Kind::no_binary, "code for " + object_.target.name() +
                                                        " can't run on " + device.target.name());
  }
  for (const std::string& entry : object_.print_formats) {
    PrintFormat format;
    if (!read_print_format(entry, format)) {
      throw ObjectError(ObjectError::Kind::kernel, "a format of printf that can't be read");
    }
    print_formats_.push_back(std::move(format));
  }
  lines_ = Lines::of(std::move(object_.file));
  for (KernelInfo& info : object_.kernels) {
    auto kernel = std::make_unique<Kernel>();
    kernel->module = this;
    kernel->info = std::move(info);
    kernel->descriptor = read_descriptor(kernel->info.descriptor_bytes);
    check_descriptor(*kernel);
    kernels_.push_back(std::move(kernel));
  }
  object_.kernels.clear();
  lay_out();
  try {
    relocate();
  } catch (...) {
    memory_.free(base_);
    throw;
  }
}

/// Replaces whole pages by zero pages, so that variables of gigabytes use only the memory that is
/// accessed.
static void zero(uintptr_t from, size_t bytes) {
  size_t whole = bytes / 4096 * 4096;
  if (madvise(reinterpret_cast<void*>(from), whole, MADV_DONTNEED) != 0) whole = 0;
  std::memset(reinterpret_cast<void*>(from + whole), 0, bytes - whole);
}

Module::~Module() { memory_.free(base_); }

void Module::lay_out() {
  Allocation wanted;
  wanted.bytes = object_.memory_bytes;
  wanted.kind = MemoryKind::internal;
  wanted.device = device.ordinal;
  wanted.label = "a module's code and variables";
  base_ = memory_.allocate(wanted, 4096);
  if (base_ == 0) throw std::bad_alloc();
  zero(base_, object_.memory_bytes);
  for (const ObjectSegment& segment : object_.segments) {
    std::memcpy(reinterpret_cast<void*>(base_ + segment.address), segment.bytes.data(),
                segment.bytes.size());
    memory_.shadow().written(base_ + segment.address, segment.memory_bytes);
  }
}

void Module::relocate() {
  for (const ObjectRelocation& relocation : object_.relocations) {
    const uint64_t place = base_ + relocation.address;
    const uint64_t value = relocation.value + (relocation.of_object ? base_ : 0);
    const auto put = [&](auto word) {
      std::memcpy(reinterpret_cast<void*>(place), &word, sizeof word);
    };
    switch (relocation.type) {
      case 1:
      case 6:
        put(static_cast<uint32_t>(value));
        break;  // ABS32_LO, ABS32
      case 2:
        put(static_cast<uint32_t>(value >> 32));
        break;  // ABS32_HI
      case 3:
      case 13:
        put(value);
        break;  // ABS64, RELATIVE64
      case 4:
      case 10:
        put(static_cast<uint32_t>(value - place));
        break;  // REL32, REL32_LO
      case 5:
        put(value - place);
        break;  // REL64
      case 11:
        put(static_cast<uint32_t>((value - place) >> 32));
        break;  // REL32_HI
      default:
        bad_image("relocation " + std::to_string(relocation.type) + " isn't known");
    }
  }
}

Kernel* Module::kernel(const std::string& name) {
  for (const std::unique_ptr<Kernel>& kernel : kernels_) {
    if (kernel->info.name == name) return kernel.get();
  }
  return nullptr;
}

Module::Global Module::variable(const std::string& name) const {
  for (const Variable& variable : object_.variables) {
    if (variable.name == name) return {base_ + variable.address, variable.size};
  }
  return {};
}

std::string Module::line(uint64_t address) {
  std::lock_guard lock(lines_mutex_);
  if (lines_ == nullptr) return "";
  std::string line;
  FaultGuard guard;
  if (survives(guard, [&] { line = lines_->at(address); })) return line;
  // A hostile object's tables made the reader fault. Its state is unknown, so it can't even be
  // destroyed.
  (void)lines_.release();
  return "";
}

std::shared_ptr<Code> Module::code(bool wave64) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Code>& code = codes_[wave64 ? 1 : 0];
  if (code != nullptr) return code;
  uint64_t key = mix(object_.text_address, (wave64 ? 2 : 0) + (kind_.checked ? 1 : 0));
  for (const char c : std::string_view(device.architecture.name)) key = mix(key, c);
  for (const FunctionSymbol& function : object_.functions) {
    key = mix(mix(key, function.address), function.size);
    for (const uint64_t entry : function.entries) key = mix(key, entry);
  }
  code = code_cache().get(key, object_.text, [&] {
    const Traits traits = traits_of(device.architecture, wave64);
    std::vector<Symbol> functions;
    for (const FunctionSymbol& f : object_.functions)
      functions.push_back({f.name, f.address, f.size, f.entries});
    auto made = std::make_shared<Code>(device.architecture.name, traits,
                                       select_rows(kind_.checked, traits.generation), object_.text,
                                       object_.text_address, std::move(functions));
    made->profiled = kind_.profiled;
    return made;
  });
  return code;
}

int resident_groups(const Kernel& kernel, int items, size_t dynamic_lds) {
  const Architecture& a = kernel.module->device.architecture;
  const bool wave32 = kernel.descriptor.wave32();
  const int lanes = wave32 ? 32 : 64;
  const int waves = (items + lanes - 1) / lanes;
  // On gfx9 the allocated size counts, since accumulation registers have names far above those of
  // the others.
  int vgprs = a.generation < 10 ? (static_cast<int>(kernel.descriptor.rsrc1 & 63) + 1) * 8
                                : std::max(1, kernel.descriptor.vgprs(a.generation));
  // A wave of 64 lanes takes twice the space in register files that are organized for 32 lanes.
  if (a.wave == 32 && !wave32) vgprs *= 2;
  const int by_registers =
      a.vgprs / ((vgprs + a.vgpr_granule - 1) / a.vgpr_granule * a.vgpr_granule);
  const int waves_held = std::min(a.waves_per_simd, by_registers) * a.simds;
  int groups = waves_held / std::max(waves, 1);
  if (dynamic_lds > a.lds_bytes) return 0;
  const size_t lds = kernel.descriptor.lds_bytes + dynamic_lds;
  if (lds > a.lds_bytes) return 0;
  if (lds > 0) {
    const size_t taken = (lds + 1023) / 1024 * 1024;
    groups = std::min(groups, static_cast<int>(a.processor_lds / taken));
  }
  return std::min(groups, 32);
}

}  // namespace emu
