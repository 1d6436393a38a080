#include "emu/runtime/profile_log.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>

#include "emu/runtime/device.h"
#include "emu/runtime/options.h"

namespace emu {
namespace {

bool is_vector(size_t kind) {
  switch (static_cast<Class>(kind)) {
    case Class::valu:
    case Class::matrix:
    case Class::vmem:
    case Class::scratch:
    case Class::lds:
      return true;
    default:
      return false;
  }
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

}  // namespace

uint64_t ProfileLog::Entry::total() const {
  return std::accumulate(instructions.begin(), instructions.end(), uint64_t{0});
}
double ProfileLog::Entry::occupancy() const {
  return waves_limit == 0 ? 0 : static_cast<double>(waves_held) / waves_limit;
}
double ProfileLog::Entry::divergence() const {
  if (lanes_possible == 0) return 0;
  return 1 - static_cast<double>(lanes_on) / static_cast<double>(lanes_possible);
}

void ProfileLog::add(const Kernel& kernel, const Launch& launch, const MemoryCounts& memory) {
  const Architecture& architecture = kernel.module->device.architecture;
  Entry& entry = entries_[{kernel.info.name, architecture.name}];
  const uint32_t wave = launch.descriptor.wave32() ? 32 : 64;
  const uint32_t waves = (launch.items() + wave - 1) / wave;
  entry.wave = wave;
  entry.sgprs = kernel.info.sgprs;
  entry.vgprs = kernel.info.vgprs;
  entry.lds_bytes = launch.lds_bytes;
  entry.scratch_bytes = launch.descriptor.scratch_bytes;
  entry.items = launch.items();
  const int groups = resident_groups(kernel, static_cast<int>(launch.items()),
                                     launch.lds_bytes - launch.descriptor.lds_bytes);
  entry.waves_limit = architecture.waves_per_simd;
  entry.waves_held =
      std::min(architecture.waves_per_simd,
               (groups * static_cast<int>(waves) + architecture.simds - 1) / architecture.simds);
  ++entry.launches;
  entry.groups += launch.group_count();
  entry.waves += launch.group_count() * waves;
  launch.code->each_program([&](Program& program) {
    for (Block& block : program.blocks) {
      const uint64_t runs = block.runs.exchange(0), lanes = block.lanes.exchange(0);
      entry.matrix_cycles += block.matrix_cycles * runs;
      for (size_t kind = 0; kind < kClasses; ++kind) {
        const uint64_t count = block.instructions[kind];
        entry.instructions[kind] += count * runs;
        if (!is_vector(kind)) continue;
        entry.lanes_on += count * lanes;
        entry.lanes_possible += count * runs * wave;
      }
    }
  });
  entry.load_bytes += memory.load_bytes;
  entry.store_bytes += memory.store_bytes;
  entry.pieces64 += memory.pieces64;
  entry.pieces128 += memory.pieces128;
  entry.lines += memory.lines.count();
  entry.lds_accesses += memory.lds_accesses;
  entry.lds_conflicts += memory.lds_conflicts;
}

std::string ProfileLog::json() const {
  std::ostringstream out;
  out << "{\"kernels\": [";
  const char* comma = "\n";
  for (const auto& [key, e] : entries_) {
    const auto& [name, architecture] = key;
    out << comma << "  {\"name\": " << quoted(name)
        << ", \"architecture\": " << quoted(architecture) << ", \"wave\": " << e.wave
        << ", \"launches\": " << e.launches << ", \"groups\": " << e.groups
        << ", \"waves\": " << e.waves << ",\n   \"instructions\": {\"total\": " << e.total();
    for (size_t kind = 0; kind < kClasses; ++kind) {
      out << ", \"" << kClassNames[kind] << "\": " << e.instructions[kind];
    }
    out << "}, \"matrix_cycles\": " << e.matrix_cycles << ",\n   \"vgprs\": " << e.vgprs
        << ", \"sgprs\": " << e.sgprs << ", \"lds_bytes\": " << e.lds_bytes
        << ", \"scratch_bytes\": " << e.scratch_bytes << ", \"items\": " << e.items
        << ", \"waves_per_simd\": " << e.waves_held << ", \"occupancy\": " << e.occupancy()
        << ",\n   \"global\": {\"load_bytes\": " << e.load_bytes
        << ", \"store_bytes\": " << e.store_bytes << ", \"transactions_64\": " << e.pieces64
        << ", \"transactions_128\": " << e.pieces128 << ", \"touched_bytes\": " << 64 * e.lines
        << "},\n   \"lds\": {\"accesses\": " << e.lds_accesses
        << ", \"conflict_cycles\": " << e.lds_conflicts << "}, \"lanes_off\": " << e.divergence()
        << "}";
    comma = ",\n";
  }
  out << "\n]}\n";
  return out.str();
}

std::string ProfileLog::table() const {
  std::string out;
  char line[256];
  std::snprintf(line, sizeof line, "%-40s %8s %12s %5s %5s %7s %6s %12s %10s %8s\n", "kernel",
                "launches", "instructions", "vgprs", "occ.", "LDS", "scr.", "bytes", "128 B",
                "off");
  out += line;
  for (const auto& [key, e] : entries_) {
    std::snprintf(
        line, sizeof line, "%-40.40s %8llu %12llu %5u %4.0f%% %7u %6u %12llu %10llu %7.1f%%\n",
        key.first.c_str(), static_cast<unsigned long long>(e.launches),
        static_cast<unsigned long long>(e.total()), e.vgprs, 100 * e.occupancy(), e.lds_bytes,
        e.scratch_bytes, static_cast<unsigned long long>(e.load_bytes + e.store_bytes),
        static_cast<unsigned long long>(e.pieces128), 100 * e.divergence());
    out += line;
  }
  return out;
}

bool ProfileLog::write() const {
  if (table_) std::fputs(table().c_str(), stderr);
  const std::string text = json();
  std::FILE* file = std::fopen(file_.c_str(), "w");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) complain("WICK_EMU_PROFILE: " + file_ + " can't be written");
  return written;
}

}  // namespace emu
