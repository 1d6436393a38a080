#pragma once

// Reads the argument sizes of kernels from compiled images: AMD code objects, cubins and PTX.

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "emu/object/elf.h"
#include "emu/object/msgpack.h"

namespace wick::gpu {

/// The number of a kernel's arguments and their total size.
struct KernelArguments {
  size_t count = 0, bytes = 0;
};
using KernelsOfImage = std::map<std::string, KernelArguments>;

/// Adds the argument that a map of metadata describes, unless it's hidden.
inline void add_argument(KernelArguments& kernel, const emu::msgpack::Value& argument) {
  std::string_view kind;
  uint64_t offset = 0, size = 0;
  argument.for_each_entry([&](std::string_view key, const emu::msgpack::Value& value) {
    if (key == ".value_kind") kind = value.string;
    if (key == ".offset") offset = value.number().value_or(0);
    if (key == ".size") size = value.number().value_or(0);
  });
  if (kind.starts_with("hidden_")) return;
  ++kernel.count;
  kernel.bytes = offset + size;
}

/// Adds the kernels that a note of metadata describes.
inline void add_kernels(KernelsOfImage& kernels, const emu::Bytes& note) {
  const auto add_kernel = [&](const emu::msgpack::Value& map) {
    KernelArguments kernel;
    std::string name;
    map.for_each_entry([&](std::string_view key, const emu::msgpack::Value& value) {
      if (key == ".name") name = value.string;
      if (key != ".args") return;
      value.for_each_element(
          [&](const emu::msgpack::Value& argument) { add_argument(kernel, argument); });
    });
    kernels[name] = kernel;
  };
  emu::msgpack::parse(note).for_each_entry(
      [&](std::string_view key, const emu::msgpack::Value& value) {
        if (key == "amdhsa.kernels") value.for_each_element(add_kernel);
      });
}

/// Reads the metadata of an AMD code object.
inline KernelsOfImage kernels_of_code_object(std::string_view image) {
  const emu::Bytes bytes(reinterpret_cast<const uint8_t*>(image.data()), image.size());
  constexpr uint32_t kMetadata = 32;
  const emu::elf::File file(bytes);
  KernelsOfImage kernels;
  for (const emu::Bytes& note : file.notes("AMDGPU", kMetadata)) add_kernels(kernels, note);
  return kernels;
}

/// Reads the sections .nv.info.KERNEL of a cubin, which are lists of {format, attribute, length or
/// value}.
inline KernelsOfImage kernels_of_cubin(std::string_view image) {
  const auto at = [&]<class T>(size_t offset, T) {
    if (offset + sizeof(T) > image.size()) throw std::runtime_error("the cubin is truncated");
    T value;
    std::memcpy(&value, image.data() + offset, sizeof value);
    return value;
  };
  constexpr uint8_t kParameter =
      0x17;  // EIATTR_KPARAM_INFO: the size is in bits 18 and up of its third word
  constexpr uint8_t kSized = 4;  // EIFMT_SVAL
  constexpr std::string_view kPrefix = ".nv.info.";
  const auto sections = at(0x28, uint64_t{});
  const auto entry = at(0x3a, uint16_t{}), count = at(0x3c, uint16_t{}),
             names = at(0x3e, uint16_t{});
  const auto names_at = at(sections + uint64_t{names} * entry + 24, uint64_t{});
  const auto name_of = [&](uint64_t section) {
    return std::string_view(image.data() + names_at + at(section, uint32_t{}));
  };
  // Only kernels have a bank of arguments; device functions that weren't inlined have none.
  constexpr std::string_view kArguments = ".nv.constant0.";
  std::set<std::string_view> with_arguments;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view name = name_of(sections + i * entry);
    if (name.starts_with(kArguments)) with_arguments.insert(name.substr(kArguments.size()));
  }
  KernelsOfImage kernels;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t section = sections + i * entry;
    const std::string_view name = name_of(section);
    if (!name.starts_with(kPrefix) || !with_arguments.contains(name.substr(kPrefix.size())))
      continue;
    KernelArguments& kernel = kernels[std::string(name.substr(kPrefix.size()))];
    uint64_t from = at(section + 24, uint64_t{});
    const uint64_t end = from + at(section + 32, uint64_t{});
    while (from + 4 <= end) {
      const auto format = at(from, uint8_t{}), attribute = at(from + 1, uint8_t{});
      const auto value = at(from + 2, uint16_t{});
      if (attribute == kParameter) {
        ++kernel.count;
        kernel.bytes += at(from + 12, uint32_t{}) >> 18;
      }
      from += 4 + (format == kSized ? value : 0u);
    }
  }
  return kernels;
}

/// Reads PTX text: ".entry NAME(.param .align 8 .b8 NAME_param_0[232])".
inline KernelsOfImage kernels_of_ptx(std::string_view text) {
  constexpr std::string_view kEntry = ".entry ", kParameter = ".param ";
  KernelsOfImage kernels;
  for (size_t at = text.find(kEntry); at != std::string_view::npos; at = text.find(kEntry, at)) {
    at += kEntry.size();
    const size_t open = text.find('(', at), close = text.find(')', open);
    KernelArguments& kernel = kernels[std::string(text.substr(at, open - at))];
    const std::string_view list = text.substr(open, close - open);
    for (size_t p = list.find(kParameter); p != std::string_view::npos;
         p = list.find(kParameter, p + 1)) {
      ++kernel.count;
      const size_t bracket = list.find('[', p);
      if (bracket == std::string_view::npos) throw std::runtime_error("an argument is no struct");
      kernel.bytes += std::stoul(std::string(list.substr(bracket + 1)));
    }
    at = close;
  }
  return kernels;
}

/// Reads an image for an architecture: "gfx1100", "sm_90a", "ptx".
inline KernelsOfImage kernels_of_image(std::string_view architecture, std::string_view image) {
  if (architecture.starts_with("gfx")) return kernels_of_code_object(image);
  return architecture == "ptx" ? kernels_of_ptx(image) : kernels_of_cubin(image);
}

}  // namespace wick::gpu
