#include "emu/tests/decode_formats.h"

#include "emu/isa/decode.h"

namespace emu::test {
namespace {

void add_flat(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  constexpr const char* kNames[] = {"FLAT", "SCRATCH", "GLOBAL"};
  if (generation >= 12) {
    for (uint32_t i = 0; i < 3; ++i) {
      formats.push_back({.name = kNames[i],
                         .bits = 0xec000000 | i << 24,
                         .mask = 0xff000000,
                         .opcode = {14, 8},
                         .dwords = 3,
                         .base = {0, 7},
                         .usual = {{{0, 7}, {124, 124, 8, 106}}}});
    }
    return;
  }
  std::vector<Usual> usual = {{{25, 1}, {0}}, {{0, 13}, {0, 8, 0x7f8}}};
  if (generation == 11) usual.push_back({{48, 7}, {124, 124, 8, 106}});
  if (generation == 10) usual.push_back({{48, 7}, {125, 125, 127, 8}});
  if (generation == 9) usual.push_back({{48, 7}, {0, 127, 127, 8}});
  if (generation != 9) usual.push_back({{55, 1}, {0}});
  std::vector<Bits> selectors;
  if (generation != 11) {
    usual.push_back({{13, 1}, {0}});
    selectors.push_back({13, 1});
  }
  if (generation == 9) selectors.push_back({25, 1});
  const uint8_t segment = generation == 11 ? 16 : 14;
  for (uint32_t i = 0; i < 3; ++i) {
    // AMD's manuals say that flat instructions ignore the offset's highest bit.
    const int64_t limit = i != 0 ? 0 : generation == 10 ? 0x800 : 0x1000;
    formats.push_back({.name = kNames[i],
                       .bits = 0xdc000000 | i << segment,
                       .mask = 0xfc000000 | 3u << segment,
                       .opcode = {18, 7},
                       .base = {48, 7},
                       .usual = usual,
                       .selectors = selectors,
                       .offset_limit = limit});
  }
}

void add_buffers(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  if (generation >= 12) {
    formats.push_back({.name = "VBUFFER",
                       .bits = 0xc4000000,
                       .mask = 0xfc000000,
                       .opcode = {14, 8},
                       .dwords = 3,
                       .descriptors = {{41, 9}},
                       .usual = {{{41, 9}, {8, 48, 64}}, {{0, 7}, {124, 5}}, {{22, 1}, {0}}},
                       .selectors = {{22, 1}}});
    return;
  }
  Format untyped{.name = "MUBUF",
                 .bits = 0xe0000000,
                 .mask = 0xfc000000,
                 .opcode = {18, 7},
                 .descriptors = {{48, 5}},
                 .scalar = {56, 8},
                 .usual = {{{48, 5}, {1, 5, 9}}, {{56, 8}, {5, 128, 193, 124}}}};
  Format typed = untyped;
  typed.name = "MTBUF";
  typed.bits = 0xe8000000;
  typed.opcode = {15, 4};
  // LLVM lacks typed instructions that return a status.
  if (generation != 9)
    typed.selectors.push_back({static_cast<uint8_t>(generation == 10 ? 55 : 53), 1});
  if (generation == 11) {
    untyped.opcode = {18, 8};
    untyped.usual.push_back({{15, 3}, {0}});
  } else {
    untyped.usual.push_back({{16, 1}, {0}});
    untyped.selectors = {{15, 1}, {16, 1}};
  }
  if (generation == 10) {
    untyped.opcode_high = {25, 1};
    typed.opcode = {16, 3};
    typed.opcode_high = {53, 1};
  }
  formats.push_back(untyped);
  formats.push_back(typed);
}

void add_images(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  if (generation >= 12) {
    Format image{.name = "VIMAGE",
                 .bits = 0xd0000000,
                 .mask = 0xfc000000,
                 .opcode = {14, 8},
                 .dwords = 3,
                 .descriptors = {{41, 9}},
                 .vectors = {{32, 8}, {64, 8}, {72, 8}, {80, 8}, {88, 8}},
                 .usual = {{{41, 9}, {8, 48, 64}},
                           {{22, 4}, {1, 15}},
                           {{3, 4}, {0}},
                           {{7, 7}, {0}},
                           {{40, 1}, {0}},
                           {{56, 8}, {0}},
                           {{72, 8}, {0, 5, 9}},
                           {{80, 8}, {0, 5, 9}},
                           {{88, 8}, {0, 5, 9}}},
                 .selectors = {{0, 3}, {22, 4}, {55, 1}}};
    Format sample = image;
    sample.name = "VSAMPLE";
    sample.bits = 0xe4000000;
    sample.descriptors.push_back({55, 9});
    sample.selectors = {{0, 3}, {22, 4}, {3, 1}};
    std::erase_if(sample.usual, [](const Usual& usual) { return usual.bits.at == 56; });
    sample.usual.push_back({{55, 9}, {8, 80, 0}});
    formats.push_back(image);
    formats.push_back(sample);
    return;
  }
  Format image{.name = "MIMG",
               .bits = 0xf0000000,
               .mask = 0xfc000000,
               .opcode = {18, 8},
               .descriptors = {{48, 5}, {58, 5}},
               .vectors = {{32, 8}, {40, 8}, {88, 8}},
               .usual = {{{48, 5}, {1, 6, 12}}, {{58, 5}, {0, 1, 20}}, {{8, 4}, {1, 15}}},
               .selectors = {{0, 1}, {2, 3}, {8, 4}, {53, 1}}};
  if (generation == 10) {
    image.opcode = {18, 7};
    image.opcode_high = {0, 1};
    image.selectors = {{1, 2}, {3, 3}, {8, 4}, {16, 1}};
    image.descriptors = {{48, 5}, {53, 5}};
    image.vectors = {{32, 8}, {40, 8}};
    image.usual = {{{48, 5}, {1, 6, 12}}, {{53, 5}, {0, 1, 20}}, {{8, 4}, {1, 15}}, {{1, 2}, {0}}};
  }
  formats.push_back(image);
}

}  // namespace

std::vector<Format> formats_of(const std::string& arch) {
  std::vector<Format> formats;
  add_flat(arch, formats);
  add_buffers(arch, formats);
  if (generation_of(arch) >= 10) add_images(arch, formats);
  return formats;
}

}  // namespace emu::test
