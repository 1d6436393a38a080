#include "emu/isa/memory/buffer.h"

#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {
namespace {

// The registers that stand for the fields in instructions whose operands are looked up.
constexpr uint32_t kAddress = 16, kData = 32, kResource = 48, kScalar = 80;

/// Opcodes of gfx950 that LLVM 19 doesn't know.
struct Added {
  bool lds;
  uint32_t opcode;
  const char* text;
};
constexpr Added kGfx950[] = {
    {true, 0x16, "buffer_load_dwordx3 v16, s[48:51], s80 offen lds"},
    {true, 0x17, "buffer_load_dwordx4 v16, s[48:51], s80 offen lds"},
    {false, 0x52, "buffer_atomic_pk_add_bf16 v32, v16, s[48:51], s80 offen"},
};

}  // namespace

BufferDecoder::BufferDecoder(const Disassembler& disassembler, const Chip& chip)
    : chip_(chip), layouts_(layouts_of(chip)), dictionary_(disassembler) {}

std::vector<BufferDecoder::Layout> BufferDecoder::layouts_of(const Chip& chip) {
  Layout untyped{}, typed{};
  untyped.mask = typed.mask = 0xfc000000;
  if (chip.generation >= 12) {
    Layout& l = untyped;
    l.bits = 0xc4000000, l.dwords = 3;
    l.scalar = {0, 7}, l.opcode = {14, 8}, l.status = {22, 1};
    l.data = {32, 8}, l.resource = {41, 9}, l.format = {55, 7};
    l.has_offset = {62, 1}, l.has_index = {63, 1}, l.address = {64, 8}, l.offset = {72, 24};
    l.caches.scope = {50, 2}, l.caches.hint = {52, 3};
    return {l};
  }
  untyped.bits = 0xe0000000, typed.bits = 0xe8000000;
  for (Layout* l : {&untyped, &typed}) {
    l->dwords = 2;
    l->offset = {0, 12}, l->address = {32, 8}, l->data = {40, 8}, l->resource = {48, 5};
    l->scalar = {56, 8}, l->has_offset = {12, 1}, l->has_index = {13, 1};
    l->caches.glc = {14, 1}, l->caches.third = {15, 1}, l->caches.slc = {54, 1};
    if (chip.generation == 11) {
      l->caches.slc = {12, 1}, l->caches.third = {13, 1};
      l->has_offset = {54, 1}, l->has_index = {55, 1}, l->status = {53, 1};
    } else {
      (chip.generation == 10 ? l->status : l->accumulation) = {55, 1};
    }
  }
  untyped.opcode = {18, 7}, typed.opcode = {15, 4}, typed.format = {19, 7};
  if (chip.generation == 11) {
    untyped.opcode = {18, 8};
  } else {
    untyped.lds = {16, 1};
  }
  if (chip.generation == 10) {
    untyped.opcode_high = {25, 1}, typed.opcode = {16, 3}, typed.opcode_high = {53, 1};
  }
  if (chip.generation == 9) untyped.caches.slc = {17, 1}, typed.caches.third = {53, 1};
  return {untyped, typed};
}

const BufferDecoder::Opcode* BufferDecoder::find(const Layout& layout, uint32_t number, bool lds) {
  const auto format = static_cast<uint32_t>(&layout - layouts_.data());
  const uint32_t key = format << 16 | number << 1 | uint32_t{lds};
  return dictionary_.find(key, [&] { return ask(layout, number, lds); });
}

std::optional<BufferDecoder::Opcode> BufferDecoder::ask(const Layout& layout, uint32_t number,
                                                        bool lds) const {
  const auto field_of = [](const Inst&, const Operand& operand) {
    if (operand.kind == Kind::sgpr) {
      return operand.reg == kResource ? Field::resource : Field::scalar;
    }
    return operand.reg == kAddress ? Field::address : Field::data;
  };
  for (const Added& row : kGfx950) {
    if (chip_.gfx950 && &layout == &layouts_[0] && row.opcode == number && row.lds == lds) {
      return Dictionary<Field>::from_text(row.text, field_of);
    }
  }
  Probes probes;
  probes.words[0] = layout.bits;
  put_opcode(layout, probes.words, number);
  layout.lds.put(probes.words, lds);
  // gfx12's field has the number of the first register, the others a quarter of it.
  const uint32_t resource = chip_.generation >= 12 ? kResource : kResource / 4;
  probes.choices = {{layout.has_offset, {1, 0}},     {layout.resource, {resource, 0}},
                    {layout.scalar, {kScalar, 0}},   {layout.data, {kData, 0}},
                    {layout.address, {kAddress, 0}}, {return_field(layout.caches), {0, 1}}};
  return dictionary_.ask(probes, field_of);
}

/// The scalar offset is a register or a constant. gfx12's field names registers only.
Operand BufferDecoder::scalar_of(const Layout& layout, std::span<const uint32_t> words) const {
  const uint32_t bits = layout.scalar.of(words);
  check_source(bits, kScalarSource | kConstantSource, false);
  Operand one;
  Operand operand = source_operand(chip_.generation, bits, one, 0);
  if (operand.kind == Kind::special || operand.kind == Kind::scc) {
    throw std::runtime_error("reserved operand");
  }
  return operand;
}

void BufferDecoder::read_modifiers(const Layout& layout, std::span<const uint32_t> words,
                                   bool addressed, bool status, Inst& inst) const {
  const auto add = [&](const char* name, int64_t value) {
    if (value != 0) inst.modifiers.emplace_back(name, value);
  };
  add("format", inst.name.starts_with("tbuffer") ? layout.format.of(words) : 0);
  if (addressed) {
    add("idxen", layout.has_index.of(words));
    add("offen", layout.has_offset.of(words));
  }
  add("offset", chip_.generation >= 12 ? signed_value(layout.offset, words)
                                       : int64_t{layout.offset.of(words)});
  read_caching(chip_, layout.caches, words, inst);
  add("lds", layout.lds.of(words));
  add("tfe", status);
}

std::optional<Inst> BufferDecoder::decode(std::span<const uint32_t> words) {
  const Layout* const layout = find_layout(layouts_, words);
  if (layout == nullptr) return std::nullopt;
  need_words(words, layout->dwords);  // a bit of the opcode may be in the second one
  const Opcode* opcode = find(*layout, opcode_of(*layout, words), layout->lds.of(words) != 0);
  if (opcode == nullptr) return std::nullopt;
  Inst inst;
  inst.name = opcode->name;
  inst.size = static_cast<uint8_t>(4 * layout->dwords);
  const bool accumulation = layout->accumulation.of(words) != 0;
  const bool status =
      layout->status.of(words) != 0 && opcode->has(Field::data) && !is_atomic(inst.name);
  const unsigned addresses = layout->has_offset.of(words) + layout->has_index.of(words);
  for (const auto& part : opcode->parts) {
    Operand operand = part.operand;
    if (part.field == Field::data) {
      operand = vector_registers(layout->data.of(words), operand.dwords + (status ? 1u : 0u),
                                 accumulation);
    } else if (part.field == Field::address) {
      operand = addresses == 0 ? Operand() : vector_registers(layout->address.of(words), addresses);
    } else if (part.field == Field::resource) {
      const uint32_t number = layout->resource.of(words);
      const uint32_t first = chip_.generation >= 12 ? number : 4 * number;
      operand = scalar_registers(chip_.generation, first, operand);
    } else if (part.field == Field::scalar) {
      operand = scalar_of(*layout, words);
    }
    inst.operands.push_back(operand);
  }
  if (opcode->parts.empty()) {
    read_caching(chip_, layout->caches, words, inst);
  } else {
    read_modifiers(*layout, words, opcode->has(Field::address), status, inst);
  }
  return inst;
}

}  // namespace emu
