#include "emu/object/bundle.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/Compression.h>
#include <llvm/Support/Error.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "emu/object/limits.h"
#include "emu/object/object.h"

namespace emu {
namespace {

constexpr uint64_t kMagicBytes = sizeof kBundleMagic - 1;

bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

struct Packed {
  // `bytes` is the size of the whole packed bundle, or 0 if the header doesn't have it.
  uint64_t header = 0, bytes = 0, unpacked = 0;
  uint16_t method = 0;
};

Packed read_packed(Bytes bytes) {
  const auto version = read<uint16_t>(bytes, 4, "packed bundle");
  Packed packed;
  packed.method = read<uint16_t>(bytes, 6, "packed bundle");
  if (version == 1) {
    packed.header = 20;
    packed.unpacked = read<uint32_t>(bytes, 8, "packed bundle");
  } else if (version == 2) {
    packed.header = 24;
    packed.bytes = read<uint32_t>(bytes, 8, "packed bundle");
    packed.unpacked = read<uint32_t>(bytes, 12, "packed bundle");
  } else if (version == 3) {
    packed.header = 32;
    packed.bytes = read<uint64_t>(bytes, 8, "packed bundle");
    packed.unpacked = read<uint64_t>(bytes, 16, "packed bundle");
  } else {
    bad_image("a packed bundle of an unknown version");
  }
  return packed;
}

llvm::SmallVector<uint8_t, 0> unpack(Bytes bytes) {
  const Packed packed = read_packed(bytes);
  if (packed.unpacked > kMostFile) bad_image("a packed bundle of more than 1 GiB");
  const uint64_t end = packed.bytes == 0 ? bytes.size() : packed.bytes;
  if (end < packed.header) bad_image("a packed bundle that is all header");
  const Bytes data = part(bytes, packed.header, end - packed.header, "packed bundle");
  if (packed.unpacked / kMostUnpacking > data.size()) {
    bad_image("a packed bundle of more than " + std::to_string(kMostUnpacking) + " times its size");
  }
  const llvm::ArrayRef<uint8_t> input(data.data(), data.size());
  llvm::SmallVector<uint8_t, 0> output;
  llvm::Error error = llvm::Error::success();
  namespace compression = llvm::compression;
  if (packed.method == 0 && compression::zlib::isAvailable()) {
    error = compression::zlib::decompress(input, output, packed.unpacked);
  } else if (packed.method == 1 && compression::zstd::isAvailable()) {
    error = compression::zstd::decompress(input, output, packed.unpacked);
  } else {
    bad_image("a bundle packed in an unknown way");
  }
  if (error) {
    const std::string what = llvm::toString(std::move(error));
    bad_image("a packed bundle that can't be unpacked: " + what);
  }
  return output;
}

/// Reads memory that may be unmapped; returns false if it is.
bool try_read(const uint8_t* from, uint64_t size, uint8_t* to) {
  while (size > 0) {
    iovec local{to, size}, remote{const_cast<uint8_t*>(from), size};
    const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (count <= 0) {
      // The system call isn't permitted: trust the caller.
      if (count < 0 && (errno == EPERM || errno == ENOSYS)) {
        std::memcpy(to, from, size);
        return true;
      }
      return false;
    }
    from += count;
    to += count;
    size -= static_cast<uint64_t>(count);
  }
  return true;
}

class Reader {
 public:
  explicit Reader(const void* image) : image_(static_cast<const uint8_t*>(image)) {}

  std::vector<uint8_t> bytes(uint64_t offset, uint64_t size) const {
    if (size > kMostFile || offset > kMostFile) bad_image("an image of more than 1 GiB");
    // The headers of a small image may claim a gigabyte. The result grows only while the memory
    // behind the image can be read.
    std::vector<uint8_t> result;
    while (result.size() < size) {
      const uint64_t done = result.size();
      const uint64_t more = std::min<uint64_t>(size - done, std::max(done, kFirstRead));
      result.resize(done + more);
      if (!try_read(image_ + offset + done, more, result.data() + done)) {
        bad_image("an image cut short");
      }
    }
    return result;
  }
  template <class T>
  T number(uint64_t offset) const {
    return read<T>(bytes(offset, sizeof(T)), 0, "an image");
  }

 private:
  static constexpr uint64_t kFirstRead = 1 << 16;

  const uint8_t* image_;
};

uint64_t bundle_size(const Reader& image) {
  const auto count = image.number<uint64_t>(kMagicBytes);
  if (count > kMostEntries) bad_image("a bundle of more than 256 entries");
  uint64_t at = kMagicBytes + 8, end = at;
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = image.number<uint64_t>(at), size = image.number<uint64_t>(at + 8);
    const auto name = image.number<uint64_t>(at + 16);
    if (offset > kMostFile || size > kMostFile || name > 4096) bad_image("a bundle's entry");
    at += 24 + name;
    end = std::max({end, at, offset + size});
  }
  return end;
}

uint64_t elf_size(const Reader& image) {
  const auto segments = image.number<uint64_t>(32), sections = image.number<uint64_t>(40);
  const auto segment_bytes = image.number<uint16_t>(54), segment_count = image.number<uint16_t>(56);
  const auto section_bytes = image.number<uint16_t>(58), section_count = image.number<uint16_t>(60);
  if (segment_count != 0 && segment_bytes != 56) bad_image("program headers of an unknown size");
  if (section_count != 0 && section_bytes != 64) bad_image("section headers of an unknown size");
  uint64_t end = 64;
  const auto extend = [&](uint64_t offset, uint64_t size) {
    if (offset > kMostFile || size > kMostFile) bad_image("a part beyond the image");
    end = std::max(end, offset + size);
  };
  const auto table = [&](uint64_t offset, uint64_t size) {
    if (size == 0) return std::vector<uint8_t>{};
    extend(offset, size);
    return image.bytes(offset, size);
  };
  const std::vector<uint8_t> programs = table(segments, uint64_t{segment_bytes} * segment_count);
  for (uint64_t at = 0; at < programs.size(); at += segment_bytes) {
    extend(read<uint64_t>(programs, at + 8, "program header"),
           read<uint64_t>(programs, at + 32, "program header"));
  }
  const std::vector<uint8_t> headers = table(sections, uint64_t{section_bytes} * section_count);
  for (uint64_t at = 0; at < headers.size(); at += section_bytes) {
    // NOBITS: the section occupies no space in the file.
    if (read<uint32_t>(headers, at + 4, "section header") == 8) continue;
    extend(read<uint64_t>(headers, at + 24, "section header"),
           read<uint64_t>(headers, at + 32, "section header"));
  }
  return end;
}

}  // namespace

std::vector<BundleEntry> read_bundle(Bytes bytes) {
  const auto count = read<uint64_t>(bytes, kMagicBytes, "bundle");
  if (count > kMostEntries) bad_image("a bundle of more than 256 entries");
  std::vector<BundleEntry> entries;
  uint64_t at = kMagicBytes + 8;
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = read<uint64_t>(bytes, at, "bundle"),
               size = read<uint64_t>(bytes, at + 8, "bundle");
    const auto name_bytes = read<uint64_t>(bytes, at + 16, "bundle");
    const Bytes name = part(bytes, at + 24, name_bytes, "a bundle's entry");
    at += 24 + name_bytes;
    const std::string text(name.begin(), name.end());
    BundleEntry entry;
    entry.kind = text.substr(0, text.find('-'));
    const size_t dashes = text.find("--");
    if (dashes != text.npos) entry.target = text.substr(dashes + 2);
    entry.bytes = part(bytes, offset, size, "a bundle's entry");
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<uint8_t> select_image(Bytes bytes, const Target& device) {
  llvm::SmallVector<uint8_t, 0> unpacked;
  if (starts_with(bytes, kPackedMagic)) {
    unpacked = unpack(bytes);
    bytes = {unpacked.data(), unpacked.size()};
  }
  if (!starts_with(bytes, kBundleMagic)) {
    if (!starts_with(bytes,
                     "\x7f"
                     "ELF"))
      bad_image("neither a code object nor a bundle");
    return {bytes.begin(), bytes.end()};
  }
  int best = 0;
  Bytes chosen;
  for (const BundleEntry& entry : read_bundle(bytes)) {
    if (entry.kind != "hip" && entry.kind != "hipv4") continue;
    const std::optional<Target> target = parse_target(entry.target);
    const int score = target ? fit(*target, device) : 0;
    if (score <= best || entry.bytes.empty()) continue;
    best = score;
    chosen = entry.bytes;
  }
  if (best == 0) {
    throw ObjectError(ObjectError::Kind::no_binary, "the bundle has no code for " + device.name());
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<uint8_t> copy_image(const void* image) {
  const Reader reader(image);
  const std::vector<uint8_t> magic = reader.bytes(0, 4);
  if (std::memcmp(magic.data(),
                  "\x7f"
                  "ELF",
                  4) == 0)
    return reader.bytes(0, elf_size(reader));
  if (std::memcmp(magic.data(), kPackedMagic, 4) == 0) {
    const std::vector<uint8_t> header = reader.bytes(0, 32);
    const Packed packed = read_packed(header);
    if (packed.bytes == 0) bad_image("a packed bundle that doesn't tell its size");
    return reader.bytes(0, packed.bytes);
  }
  const std::vector<uint8_t> start = reader.bytes(0, kMagicBytes);
  if (!starts_with(start, kBundleMagic)) bad_image("neither a code object nor a bundle");
  return reader.bytes(0, bundle_size(reader));
}

}  // namespace emu
