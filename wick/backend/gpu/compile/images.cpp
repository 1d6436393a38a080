#include "wick/backend/gpu/compile/images.h"

#include <zstd.h>

#include <charconv>
#include <memory>
#include <span>

#include "wick/base/error.h"

/// An archive in the binary. The build generates the table.
struct WickGpuArchive {
  const char* name;
  const unsigned char* data;
  const unsigned char* end;
  const char* base;  ///< the archive that this one is a delta of; null: none
};
extern "C" const WickGpuArchive wick_gpu_archives[];
extern "C" const unsigned wick_gpu_archive_count;

namespace wick::gpu {
namespace {

constexpr std::string_view kSources = "sources";

std::span<const WickGpuArchive> archives() { return {wick_gpu_archives, wick_gpu_archive_count}; }

const WickGpuArchive* find(std::string_view name) {
  for (const WickGpuArchive& archive : archives()) {
    if (archive.name == name) return &archive;
  }
  return nullptr;
}

std::string decompress(const WickGpuArchive& archive) {
  const WickGpuArchive* const on = archive.base == nullptr ? nullptr : find(archive.base);
  const std::string base = on == nullptr ? std::string() : decompress(*on);
  const auto bytes = static_cast<size_t>(archive.end - archive.data);
  const unsigned long long size = ZSTD_getFrameContentSize(archive.data, bytes);
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  std::string text;
  if (size < (1ull << 32) && context != nullptr) {
    text.resize(size);
    ZSTD_DCtx_refPrefix(context.get(), base.data(), base.size());
    const size_t made =
        ZSTD_decompressDCtx(context.get(), text.data(), text.size(), archive.data, bytes);
    if (ZSTD_isError(made) == 0 && made == size) return text;
  }
  throw Error(ErrorKind::runtime, "gpu", "the kernels in this binary are damaged", archive.name);
}

/// An archive is a line "NAME SIZE" for each file, an empty line, and the files one after another.
Files unpack(const WickGpuArchive& archive) {
  const std::string all = decompress(archive);
  Files files;
  std::string_view lines(all);
  size_t at = lines.find("\n\n") + 2;
  while (!lines.empty() && lines.front() != '\n') {
    const size_t end = lines.find('\n'), space = lines.rfind(' ', end);
    size_t size = 0;
    std::from_chars(lines.data() + space + 1, lines.data() + end, size);
    files.emplace(lines.substr(0, space), all.substr(at, size));
    at += size;
    lines.remove_prefix(end + 1);
  }
  return files;
}

/// AMD's generic target for an architecture; empty if there is none.
std::string generic_of(std::string_view gfx) {
  if (gfx.starts_with("gfx11")) return "gfx11-generic";
  if (gfx.starts_with("gfx12")) return "gfx12-generic";
  if (gfx.starts_with("gfx103")) return "gfx10-3-generic";
  if (gfx.starts_with("gfx101")) return "gfx10-1-generic";
  if (gfx == "gfx900" || gfx == "gfx902" || gfx == "gfx904" || gfx == "gfx906" || gfx == "gfx909") {
    return "gfx9-generic";
  }
  return "";
}

/// Machine code runs on devices of the same generation (the tens of the number) that aren't older.
const WickGpuArchive* closest_cuda(int device) {
  const WickGpuArchive* best = nullptr;
  for (const WickGpuArchive& archive : archives()) {
    const int number = cuda_number(archive.name);
    if (number == 0 || number / 10 != device / 10 || number > device) continue;
    if (std::string_view(archive.name).ends_with('a') && number != device) continue;
    if (best == nullptr || number > cuda_number(best->name)) best = &archive;
  }
  return best != nullptr ? best : find("ptx");
}

const WickGpuArchive* archive_for(std::string_view architecture) {
  if (const WickGpuArchive* own = find(architecture)) return own;
  if (const int number = cuda_number(architecture); number != 0) return closest_cuda(number);
  return find(generic_of(architecture));
}

}  // namespace

int cuda_number(std::string_view architecture) {
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  if (architecture.starts_with("sm_")) std::from_chars(architecture.data() + 3, end, number);
  return number;
}

std::vector<std::string> image_architectures() {
  std::vector<std::string> names;
  for (const WickGpuArchive& archive : archives()) {
    if (archive.name != kSources) names.emplace_back(archive.name);
  }
  return names;
}

bool has_images(std::string_view architecture, std::string& chosen) {
  const WickGpuArchive* archive = archive_for(architecture);
  if (archive != nullptr) chosen = archive->name;
  return archive != nullptr;
}

std::optional<Files> find_images(std::string_view architecture, std::string& chosen) {
  if (!has_images(architecture, chosen)) return std::nullopt;
  return unpack(*find(chosen));
}

const Files& kernel_sources() {
  static const auto* const sources = [] {
    const WickGpuArchive* archive = find(kSources);
    return archive == nullptr ? new Files : new Files(unpack(*archive));
  }();
  return *sources;
}

}  // namespace wick::gpu
