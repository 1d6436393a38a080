#include "emu/isa/memory/image.h"

#include <bit>
#include <stdexcept>

namespace emu {
namespace {

// The registers that stand for the fields in instructions whose operands are looked up.
constexpr uint32_t kAddress = 16, kData = 32, kResource = 48, kSampler = 80;

/// The values of the field DIM.
struct Dim {
  const char* name;
  unsigned coordinates, derivatives;
};
constexpr Dim kDims[] = {{"SQ_RSRC_IMG_1D", 1, 2},       {"SQ_RSRC_IMG_2D", 2, 4},
                         {"SQ_RSRC_IMG_3D", 3, 6},       {"SQ_RSRC_IMG_CUBE", 3, 4},
                         {"SQ_RSRC_IMG_1D_ARRAY", 2, 2}, {"SQ_RSRC_IMG_2D_ARRAY", 3, 4},
                         {"SQ_RSRC_IMG_2D_MSAA", 3, 4},  {"SQ_RSRC_IMG_2D_MSAA_ARRAY", 4, 4}};

/// Returns whether a word is among those that underscores separate in a name.
bool has_word(std::string_view name, std::string_view wanted) {
  while (!name.empty()) {
    const size_t end = name.find('_');
    if (name.substr(0, end) == wanted) return true;
    name = end == name.npos ? std::string_view() : name.substr(end + 1);
  }
  return false;
}

bool is_ray(std::string_view name) { return name.starts_with("image_bvh"); }

/// Samples and gathers, whose addresses have parts that their names tell.
bool is_sample(std::string_view name) {
  return name.starts_with("image_sample") || name.starts_with("image_gather4");
}

/// Whether components may have 16 bits. Packed ones are the memory's bytes.
bool takes_halves(std::string_view name) {
  return !has_word(name, "pck") && !is_atomic(name) && !name.starts_with("image_get_");
}

/// Returns the number of registers of an address: offset, bias and reference have one each, then
/// follow derivatives, coordinates and a level or limit. Two parts of 16 bits share a register.
unsigned address_registers(std::string_view name, const Dim& dim, bool half) {
  const bool sample = is_sample(name);
  const auto asks = [&](const char* word) { return sample && has_word(name, word); };
  unsigned registers = unsigned{asks("o")} + unsigned{asks("b")} + unsigned{asks("c")};
  if (asks("d") || asks("cd")) {
    // Those of both directions are packed separately.
    const unsigned each = dim.derivatives / 2;
    registers += has_word(name, "g16") ? (each + 1) / 2 * 2 : dim.derivatives;
  }
  const bool level =
      asks("l") || asks("cl") || has_word(name, "mip") || name.starts_with("image_get_resinfo");
  const unsigned coordinates = name.starts_with("image_get_resinfo") ? 0 : dim.coordinates;
  const unsigned parts = coordinates + unsigned{level};
  return registers + (half ? (parts + 1) / 2 : parts);
}

}  // namespace

ImageDecoder::ImageDecoder(const Disassembler& disassembler, const Chip& chip)
    : chip_(chip), layouts_(layouts_of(chip)), dictionary_(disassembler) {}

std::vector<ImageDecoder::Layout> ImageDecoder::layouts_of(const Chip& chip) {
  Layout l{};
  l.mask = 0xfc000000;
  if (chip.generation >= 12) {
    l.bits = 0xd0000000, l.dwords = 3;
    l.dim = {0, 3}, l.small_descriptor = {4, 1}, l.half_data = {5, 1}, l.half_address = {6, 1};
    l.opcode = {14, 8}, l.components = {22, 4}, l.data = {32, 8}, l.resource = {41, 9};
    l.caches.scope = {50, 2}, l.caches.hint = {52, 3};
    l.addresses = {{64, 8}, {72, 8}, {80, 8}, {88, 8}};
    Layout sample = l;
    sample.bits = 0xe4000000, sample.status = {3, 1}, sample.unnormalized = {13, 1};
    sample.status_of_tiles = {40, 1}, sample.sampler = {55, 9};
    l.status = {55, 1};
    l.addresses.push_back({56, 8});
    return {l, sample};
  }
  if (chip.generation <= 9) return {};
  l.bits = 0xf0000000, l.dwords = 2;
  l.components = {8, 4}, l.data = {40, 8}, l.resource = {48, 5}, l.addresses = {{32, 8}};
  l.small_descriptor = {15, 1};
  if (chip.generation == 11) {
    l.more = {0, 1}, l.dim = {2, 3}, l.unnormalized = {7, 1}, l.opcode = {18, 8};
    l.caches.slc = {12, 1}, l.caches.third = {13, 1}, l.caches.glc = {14, 1};
    l.half_address = {16, 1}, l.half_data = {17, 1}, l.sampler = {58, 5};
    l.status = {53, 1}, l.status_of_tiles = {54, 1};
    return {l};
  }
  l.opcode_high = {0, 1}, l.more = {1, 2}, l.dim = {3, 3}, l.opcode = {18, 7};
  l.caches.third = {7, 1}, l.caches.glc = {13, 1}, l.caches.slc = {25, 1};
  l.unnormalized = {12, 1}, l.status = {16, 1}, l.status_of_tiles = {17, 1};
  l.sampler = {53, 5}, l.half_address = {62, 1}, l.half_data = {63, 1};
  return {l};
}

const ImageDecoder::Opcode* ImageDecoder::find(const Layout& layout, uint32_t number) {
  const auto format = static_cast<uint32_t>(&layout - layouts_.data());
  return dictionary_.find(format << 16 | number, [&] { return ask(layout, number); });
}

std::optional<ImageDecoder::Opcode> ImageDecoder::ask(const Layout& layout, uint32_t number) const {
  const auto field_of = [](const Inst&, const Operand& operand) {
    if (operand.kind == Kind::sgpr) {
      return operand.reg == kResource ? Field::resource : Field::sampler;
    }
    return operand.kind == Kind::vgpr && operand.reg == kData ? Field::data : Field::address;
  };
  Probes probes;
  probes.words[0] = layout.bits;
  put_opcode(layout, probes.words, number);
  layout.data.put(probes.words, kData);
  layout.addresses[0].put(probes.words, kAddress);
  // gfx12's fields have the number of the first register, the others a quarter of it.
  const uint32_t unit = chip_.generation >= 12 ? 1 : 4;
  layout.resource.put(probes.words, kResource / unit);
  // Intersections of rays need the second values of the fields that are given here.
  probes.choices = {{layout.components, {1, 15}}, {layout.small_descriptor, {0, 1}}};
  if (layout.sampler.width != 0) probes.choices.push_back({layout.sampler, {kSampler / unit, 0}});
  if (layout.unnormalized.width != 0) probes.choices.push_back({layout.unnormalized, {0, 1}});
  return dictionary_.ask(probes, field_of);
}

/// Gathers and, from gfx11 on, loads of samples fill four registers; other accesses fill one for
/// each component that the mask names. Two components of 16 bits share a register.
unsigned ImageDecoder::data_registers(const Layout& layout, const std::string& name,
                                      std::span<const uint32_t> words) const {
  const bool four = name.starts_with("image_gather4") ||
                    (name.starts_with("image_msaa_load") && chip_.generation >= 11);
  const int named = std::popcount(layout.components.of(words));
  const unsigned components = four ? 4 : static_cast<unsigned>(std::max(named, 1));
  const bool half = takes_halves(name) && layout.half_data.of(words) != 0;
  return (half ? (components + 1) / 2 : components) + layout.status.of(words);
}

std::vector<int> ImageDecoder::address_of(const Layout& layout, std::span<const uint32_t> words,
                                          unsigned count) const {
  std::vector<Bits> fields = layout.addresses;
  const unsigned more = 4 * layout.more.of(words);
  for (unsigned i = 0; i < more; ++i) fields.push_back({static_cast<uint8_t>(64 + 8 * i), 8});
  const auto last = static_cast<unsigned>(fields.size()) - 1;
  if (last > 0 && count > last + 1 && chip_.generation == 10) {
    throw std::runtime_error("reserved operand");
  }
  std::vector<int> registers;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned from = std::min(i, last);  // the last field names the first of those that remain
    registers.push_back(vector_registers(fields[from].of(words) + i - from, 1).reg);
  }
  return registers;
}

/// Adds the address: consecutive registers, or a list.
void ImageDecoder::add_address(const Layout& layout, std::span<const uint32_t> words,
                               unsigned count, Inst& inst) const {
  const std::vector<int> registers = address_of(layout, words, count);
  bool consecutive = layout.more.of(words) == 0;
  for (size_t i = 1; i < registers.size(); ++i) {
    consecutive &= registers[i] == registers[i - 1] + 1 && layout.addresses.size() == 1;
  }
  if (consecutive) {
    inst.operands.push_back(vector_registers(static_cast<uint32_t>(registers[0]), count));
    return;
  }
  Operand& operand = inst.operands.emplace_back();
  operand.kind = Kind::special;
  for (const int reg : registers) {
    operand.name += (operand.name.empty() ? "[v" : ", v") + std::to_string(reg);
  }
  operand.name += "]";
  inst.lists.emplace_back("address", registers);
}

Operand ImageDecoder::descriptor_of(Bits bits, std::span<const uint32_t> words,
                                    const Operand& shape) const {
  const uint32_t number = bits.of(words);
  return scalar_registers(chip_.generation, chip_.generation >= 12 ? number : 4 * number, shape);
}

void ImageDecoder::read_modifiers(const Layout& layout, std::span<const uint32_t> words,
                                  Inst& inst) const {
  inst.modifiers.emplace_back("dmask", layout.components.of(words));
  inst.words.emplace_back("dim", kDims[layout.dim.of(words)].name);
  const auto add = [&](Bits bits, const char* name) {
    if (bits.of(words) != 0) inst.modifiers.emplace_back(name, 1);
  };
  add(layout.unnormalized, "unorm");
  read_caching(chip_, layout.caches, words, inst);
  add(layout.small_descriptor, "r128");
  add(layout.half_address, "a16");
  add(layout.status, "tfe");
  add(layout.status_of_tiles, "lwe");
  if (takes_halves(inst.name)) add(layout.half_data, "d16");
}

std::optional<Inst> ImageDecoder::decode(std::span<const uint32_t> words) {
  const Layout* const layout = find_layout(layouts_, words);
  if (layout == nullptr) return std::nullopt;
  const Opcode* opcode = find(*layout, opcode_of(*layout, words));
  if (opcode == nullptr) return std::nullopt;
  const size_t dwords = layout->dwords + layout->more.of(words);
  need_words(words, dwords);
  Inst inst;
  inst.name = opcode->name;
  inst.size = static_cast<uint8_t>(4 * dwords);
  const Dim& dim = kDims[layout->dim.of(words)];
  const unsigned addresses = address_registers(inst.name, dim, layout->half_address.of(words) != 0);
  for (const auto& part : opcode->parts) {
    if (part.field == Field::data) {
      const unsigned count = is_ray(inst.name) ? 4 : data_registers(*layout, inst.name, words);
      inst.operands.push_back(vector_registers(layout->data.of(words), count));
    } else if (part.field == Field::address && !is_ray(inst.name)) {
      add_address(*layout, words, addresses, inst);
    } else if (part.field == Field::resource) {
      inst.operands.push_back(descriptor_of(layout->resource, words, part.operand));
    } else if (part.field == Field::sampler) {
      inst.operands.push_back(descriptor_of(layout->sampler, words, part.operand));
    }
  }
  if (!is_ray(inst.name)) read_modifiers(*layout, words, inst);
  return inst;
}

}  // namespace emu
