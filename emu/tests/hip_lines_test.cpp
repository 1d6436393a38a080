// Source lines in reports, and corrupt line tables.

#include <elf.h>

#include <cstring>
#include <random>

#include "emu/tests/hip_support.h"

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// Returns what is printed for a kernel that writes beyond the end of its memory.
std::string said_by(const char* kernel) {
  const Kernels kernels("inlined.gfx1100.hsaco");
  const Buffer<int> data(31);
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(kernels[kernel], 1, 32, 0, nullptr, data.data));
  EXPECT_EQ(hipErrorIllegalAddress, hipDeviceSynchronize());
  (void)hipGetLastError();
  return testing::internal::GetCapturedStderr();
}

TEST(HipChecks, LinesOfInlinedFunctions) {
  std::string text = said_by("by_header");
  EXPECT_TRUE(has(text, "inlined.hip:15, in ") && has(text, "inlined.h:4)")) << text;
  text = said_by("by_both");
  EXPECT_TRUE(has(text, "inlined.hip:11, in ") && has(text, "inlined.h:4)")) << text;
  text = said_by("by_itself");
  EXPECT_TRUE(has(text, "inlined.hip:7)")) << text;
}

struct Section {
  size_t offset, size;
};

Section find_section(const std::vector<char>& file, const std::string& name) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  const char* names = file.data() + sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (names + sections[i].sh_name == name) return {sections[i].sh_offset, sections[i].sh_size};
  }
  ADD_FAILURE() << "no section " << name;
  return {0, 1};
}

/// Runs planted kernels that cause a finding and an error, both of which look up a source line.
void run_planted(const std::vector<char>& image) {
  hipModule_t module = nullptr;
  ASSERT_EQ(hipSuccess, hipModuleLoadData(&module, image.data()));
  const Buffer<int> data(31);
  for (const auto& [kernel, ends] :
       {std::pair("misaligned", hipSuccess), std::pair("too_far", hipErrorIllegalAddress)}) {
    hipFunction_t function = nullptr;
    ASSERT_EQ(hipSuccess, hipModuleGetFunction(&function, module, kernel));
    testing::internal::CaptureStderr();
    EXPECT_EQ(hipSuccess, launch(function, 1, 32, 0, nullptr, data.data));
    EXPECT_EQ(ends, hipDeviceSynchronize());
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(has(text, std::string("kernel ") + kernel)) << text;
  }
  (void)hipGetLastError();
  EXPECT_EQ(hipSuccess, hipModuleUnload(module));
}

/// Corrupts every field of the table's header.
TEST(HipHostile, BrokenHeadersOfLineTables) {
  const std::vector<char> whole = kernel_file("planted.gfx1100.hsaco");
  const Section table = find_section(whole, ".debug_line");
  for (size_t byte = 0; byte < std::min<size_t>(table.size, 96); ++byte) {
    for (const unsigned value : {0u, 1u, 0x32u, 0x7fu, 0xffu}) {
      std::vector<char> image = whole;
      image[table.offset + byte] = static_cast<char>(value);
      run_planted(image);
    }
  }
}

TEST(HipHostile, MutatedDebugSections) {
  const std::vector<char> whole = kernel_file("planted.gfx1100.hsaco");
  std::mt19937 random(11);
  for (const char* name : {".debug_line", ".debug_info", ".debug_abbrev", ".debug_addr",
                           ".debug_str_offsets", ".debug_rnglists", ".debug_line_str"}) {
    const Section section = find_section(whole, name);
    for (int round = 0; round < 300; ++round) {
      std::vector<char> image = whole;
      for (int i = 0; i < 4; ++i) {
        image[section.offset + random() % section.size] =
            static_cast<char>(random() % 4 == 0 ? 0xff : random());
      }
      run_planted(image);
    }
  }
}

}  // namespace
