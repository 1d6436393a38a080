// Implements loads, stores and samples of images of one and two dimensions, with and without
// slices. Texels are read one at a time; exec/image.h says which ones, and what their bytes mean.

#include "emu/exec/image.h"

#include "emu/exec/address.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

/// What an instruction does with a coordinate.
enum class ImageUse : uint8_t { load, store, sample, gather };

/// An instruction's form, as Op::imm2 holds it.
struct ImageForm {
  uint32_t mask = 15;   // components of the data
  uint32_t first = 0;   // number of the first coordinate among the address registers
  uint32_t level = 0;   // one more than the number of the mip level; 0: there is none
  bool offset = false;  // the first address register holds offsets of texels
  bool d16 = false;     // two components share a register
  bool a16 = false;     // two coordinates share a register
  bool unnormalized = false;
  bool height = false, layered = false;

  uint32_t pack() const {
    return mask | first << 4 | level << 8 | uint32_t{offset} << 12 | uint32_t{d16} << 13 |
           uint32_t{unnormalized} << 14 | uint32_t{height} << 15 | uint32_t{layered} << 16 |
           uint32_t{a16} << 17;
  }
  EMU_INLINE ImageForm of(uint32_t bits) {
    ImageForm form;
    form.mask = bits & 15;
    form.first = bits >> 4 & 15;
    form.level = bits >> 8 & 15;
    form.offset = (bits >> 12 & 1) != 0;
    form.d16 = (bits >> 13 & 1) != 0;
    form.unnormalized = (bits >> 14 & 1) != 0;
    form.height = (bits >> 15 & 1) != 0;
    form.layered = (bits >> 16 & 1) != 0;
    form.a16 = (bits >> 17 & 1) != 0;
    return form;
  }
  uint32_t components() const { return static_cast<uint32_t>(__builtin_popcount(mask)); }
  uint32_t registers() const { return d16 ? (components() + 1) / 2 : components(); }
  uint32_t slice() const { return first + (height ? 2 : 1); }
};

constexpr size_t kMostAddresses = 8;  // registers; their numbers are in two constants of the wave

EMU_INLINE uint32_t address_register(Wave* w, const Op* op, uint32_t index) {
  const uint64_t packed = at<uint64_t>(w, index < 4 ? op->a : op->b);
  return vgpr_offset(static_cast<int>(packed >> 16 * (index % 4) & 0xffff));
}
/// The lane of one half whose address is read.
struct Lane {
  Wave* w;
  const Op* op;
  const ImageForm& form;
  int half, lane;

  [[gnu::always_inline]] uint32_t raw(uint32_t reg) const {
    const char* from = half_of(w, address_register(w, op, reg), half);
    return reinterpret_cast<const uint32_t*>(from)[lane];
  }
  /// Returns a part of the address as an integer. `index` counts parts, not registers.
  [[gnu::always_inline]] uint32_t word(uint32_t index) const {
    if (!form.a16 || index < form.first) return raw(index);
    const uint32_t part = index - form.first;
    return raw(form.first + part / 2) >> 16 * (part % 2) & 0xffff;
  }
  [[gnu::always_inline]] float real(uint32_t index) const {
    const uint32_t bits = word(index);
    if (!form.a16 || index < form.first) return __builtin_bit_cast(float, bits);
    return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(bits)));
  }
};

/// Writes a lane's result to its registers.
EMU_INLINE void put_texel(Wave* w, const Op* op, const ImageForm& form, const Image& image,
                          const Texel& texel, int half, int lane) {
  char* reg = half_of(w, op->dst, half) + 4 * lane;
  uint32_t count = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    if ((form.mask >> i & 1) == 0) continue;
    if (form.d16) {
      const uint16_t low = half_of_word(image.format, texel.word[i], HalfRounding::nearest);
      std::memcpy(reg + 128 * (count / 2) + 2 * (count % 2), &low, sizeof low);
    } else {
      std::memcpy(reg + 128 * count, &texel.word[i], 4);
    }
    ++count;
  }
}

/// Reads a lane's data. Components that the mask leaves out are 0; on gfx12, they are the first one
/// that is there.
EMU_INLINE Texel take_texel(Wave* w, const Op* op, const ImageForm& form, const Image& image,
                            int half, int lane) {
  const char* reg = half_of(w, op->dst, half) + 4 * lane;
  Texel texel{};
  uint32_t count = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    if ((form.mask >> i & 1) == 0) continue;
    if (form.d16) {
      uint16_t low;
      std::memcpy(&low, reg + 128 * (count / 2) + 2 * (count % 2), sizeof low);
      texel.word[i] = word_of_half(image.format, low);
    } else {
      std::memcpy(&texel.word[i], reg + 128 * count, 4);
    }
    ++count;
  }
  if (w->launch->code->traits.generation >= 12) {
    const uint32_t first = texel.word[__builtin_ctz(form.mask)];
    for (uint32_t i = 0; i < 4; ++i) {
      if ((form.mask >> i & 1) == 0) texel.word[i] = first;
    }
  }
  return texel;
}

/// What the lanes of one instruction share.
struct Shared {
  ImageForm form;
  Image image;
  Sampler sampler;
};

/// Reads the texels of a lane. Returns false after a fault.
EMU_INLINE bool fetch(Wave* w, const Op* op, const Shared& s, const Taps& taps, Texel* texels,
                      int lane) {
  for (int tap = 0; tap < taps.count; ++tap) {
    if (taps.address[tap] == 0) {
      texels[tap] = border_texel(s.image, s.sampler);
      continue;
    }
    const char* from = reinterpret_cast<const char*>(taps.address[tap]);
    if (!Global::readable(w, op, from, s.image.format.size(), lane)) return false;
    texels[tap] =
        select_components(s.image.format, read_texel(s.image.format, from), s.image.selectors);
  }
  return true;
}

EMU_INLINE bool load_lane(Wave* w, const Op* op, const Shared& s, int half, int lane) {
  const Lane address{w, op, s.form, half, lane};
  const uint32_t y = s.form.height ? address.word(s.form.first + 1) : 0;
  const uint32_t slice = s.form.layered ? address.word(s.form.slice()) : 0;
  const bool other_level = s.form.level != 0 && address.word(s.form.level - 1) != 0;
  Taps taps;
  taps.count = 1;
  const uint32_t x = address.word(s.form.first);
  taps.address[0] = other_level ? 0 : texel_address(s.image, x, y, slice);
  Texel texel{};
  if (taps.address[0] == 0) {
    texel = select_components(s.image.format, texel, s.image.selectors);
  } else if (!fetch(w, op, s, taps, &texel, lane)) {
    return false;
  }
  put_texel(w, op, s.form, s.image, texel, half, lane);
  return true;
}

EMU_INLINE bool store_lane(Wave* w, const Op* op, const Shared& s, int half, int lane) {
  const Lane address{w, op, s.form, half, lane};
  const uint32_t y = s.form.height ? address.word(s.form.first + 1) : 0;
  const uint32_t slice = s.form.layered ? address.word(s.form.slice()) : 0;
  if (s.form.level != 0 && address.word(s.form.level - 1) != 0) return true;
  const uint32_t x = address.word(s.form.first);
  const uint64_t at = texel_address(s.image, x, y, slice);
  if (at == 0) return true;  // beyond the image
  char* to = reinterpret_cast<char*>(at);
  char bytes[16];
  write_texel(s.image.format, take_texel(w, op, s.form, s.image, half, lane), bytes);
  if (!Global::writable(w, op, to, s.image.format.size(), lane, kChecked ? bytes : nullptr))
    return false;
  std::memcpy(to, bytes, s.image.format.size());
  return true;
}

template <bool kGather>
EMU_INLINE bool sample_lane(Wave* w, const Op* op, const Shared& s, int half, int lane) {
  const Lane address{w, op, s.form, half, lane};
  int offsets[2] = {0, 0};
  if (s.form.offset) {
    const auto packed = static_cast<int32_t>(address.raw(0));
    offsets[0] = packed << 26 >> 26;
    offsets[1] = packed << 18 >> 26;
  }
  const float position[2] = {address.real(s.form.first),
                             s.form.height ? address.real(s.form.first + 1) : 0};
  const uint32_t slice = s.form.layered ? slice_of(s.image, address.real(s.form.slice())) : 0;
  // Without mip levels, a level above 0 only means that the image is made smaller.
  const bool smaller = s.form.level != 0 && address.real(s.form.level - 1) > 0;
  const bool linear = smaller ? s.sampler.linear_small : s.sampler.linear;
  const Taps taps = kGather ? gather_taps(s.image, s.sampler, position, slice, offsets)
                            : sample_taps(s.image, s.sampler, position, slice, linear, offsets);
  Texel texels[4];
  if (!fetch(w, op, s, taps, texels, lane)) return false;
  if (!kGather) {
    put_texel(w, op, s.form, s.image, blend(s.image.format, taps, texels), half, lane);
    return true;
  }
  const auto component = static_cast<uint32_t>(__builtin_ctz(s.form.mask | 8));
  Texel result;
  for (int i = 0; i < 4; ++i) result.word[i] = texels[i].word[component];
  ImageForm all = s.form;
  all.mask = 15;
  put_texel(w, op, all, s.image, result, half, lane);
  return true;
}

template <ImageUse kUse>
EMU_INLINE bool access_lane(Wave* w, const Op* op, const Shared& s, int half, int lane) {
  if constexpr (kUse == ImageUse::load) return load_lane(w, op, s, half, lane);
  if constexpr (kUse == ImageUse::store) return store_lane(w, op, s, half, lane);
  if constexpr (kUse == ImageUse::sample) return sample_lane<false>(w, op, s, half, lane);
  return sample_lane<true>(w, op, s, half, lane);
}

/// Returns false if the descriptors can't be used; the launch has failed then.
EMU_INLINE bool read_descriptors(Wave* w, const Op* op, bool samples, Shared& s) {
  read_scalar(w, op, op->c, 8);
  if (samples) read_scalar(w, op, op->d, 4);
  const int generation = w->launch->code->traits.generation;
  const char* error = read_image(&at<uint32_t>(w, op->c), generation, s.image);
  if (error == nullptr &&
      (s.image.has_height() != s.form.height || (s.form.layered && !s.image.layered()))) {
    error = "an image of another type than the instruction's";
  }
  if (error == nullptr && samples) {
    error = read_sampler(&at<uint32_t>(w, op->d), s.sampler);
    s.sampler.unnormalized |= s.form.unnormalized;
  }
  if (error != nullptr) [[unlikely]] {
    fail(w, op, error);
    return false;
  }
  return true;
}

/// Records a load. gfx12 has a counter for samples.
EMU_INLINE void image_issued(Wave* w, const Op* op, bool samples, uint32_t registers) {
  const bool apart = samples && w->launch->code->traits.generation >= 12;
  load_issued(w, op, op->dst, registers, apart ? kSample : kVmem);
}

template <ImageUse kUse>
Stop image(Wave* w, const Op* op) {
  constexpr bool kSamples = kUse == ImageUse::sample || kUse == ImageUse::gather;
  Shared s;
  s.form = ImageForm::of(op->imm2);
  const uint32_t registers = kUse == ImageUse::gather ? (s.form.d16 ? 2 : 4) : s.form.registers();
  if (!read_descriptors(w, op, kSamples, s)) return Stop::fault;
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    for (int i = 0; i < op->imm; ++i) {
      read_vector(w, op, address_register(w, op, static_cast<uint32_t>(i)), 1, half, enabled, true);
    }
    if (kUse == ImageUse::store) read_vector(w, op, op->dst, registers, half, enabled);
    for (LaneMask left = enabled; left != 0; left &= left - 1) {
      if (!access_lane<kUse>(w, op, s, half, __builtin_ctz(left))) return Stop::fault;
    }
  }
  if (kUse == ImageUse::store) {
    store_issued(w, emu::kStore);
  } else {
    image_issued(w, op, kSamples, registers);
  }
  EMU_NEXT;
}

/// Width, height, slices and the number of mip levels.
Stop resource_info(Wave* w, const Op* op) {
  Shared s;
  s.form = ImageForm::of(op->imm2);
  read_scalar(w, op, op->c, 8);
  if (const char* error =
          read_image(&at<uint32_t>(w, op->c), w->launch->code->traits.generation, s.image)) {
    return fail(w, op, error);
  }
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    for (LaneMask left = w->s[kExec + half]; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const bool there = Lane{w, op, s.form, half, lane}.word(0) == 0;
      Texel info{};
      if (there) info = {{s.image.width, s.image.height, s.image.slices, 1}};
      info.word[3] = 1;
      PixelFormat whole = s.image.format;
      whole.numbers = Numbers::uint;
      s.image.format = whole;
      put_texel(w, op, s.form, s.image, info, half, lane);
    }
  }
  load_issued(w, op, op->dst, s.form.registers(), kVmem);
  EMU_NEXT;
}

// ---- Lowering.

/// Adds the registers of the address: consecutive ones, or a list.
void add_registers(Lowering& l, const Inst& inst, std::vector<uint32_t>& offsets) {
  const Operand& operand = inst.operands.at(1);
  std::vector<int> numbers = inst.list("address");
  if (operand.kind != Kind::vgpr && numbers.empty()) throw NotImplemented("the image's address");
  for (int i = 0; i < operand.dwords && operand.kind == Kind::vgpr; ++i) {
    numbers.push_back(operand.reg + i);
  }
  for (const int number : numbers) {
    Operand one;
    one.kind = Kind::vgpr;
    one.reg = static_cast<uint16_t>(number);
    offsets.push_back(l.source(one, Value::b32));
  }
}

/// Words that a sample's name may have, in the order of their address registers.
struct Suffixes {
  bool offset = false, bias = false, derivatives = false, level = false;
};

ImageForm form_of(const Inst& inst, const Suffixes& suffixes) {
  ImageForm form;
  form.mask = static_cast<uint32_t>(inst.modifier("dmask", 0)) & 15;
  if (form.mask == 0) form.mask = 1;
  const std::string_view dim = inst.word("dim");
  const bool line = dim == "SQ_RSRC_IMG_1D" || dim == "SQ_RSRC_IMG_1D_ARRAY";
  form.height = dim == "SQ_RSRC_IMG_2D" || dim == "SQ_RSRC_IMG_2D_ARRAY";
  form.layered = dim.ends_with("_ARRAY");
  if (!line && !form.height) throw NotImplemented("an image of dim:" + std::string(dim));
  // The register of a status (tfe) keeps its value: all pages are resident, and then nothing is
  // returned.
  for (const char* unknown : {"lwe", "r128"}) {
    if (inst.has(unknown)) throw NotImplemented(std::string("an image with ") + unknown);
  }
  form.d16 = inst.has("d16");
  form.a16 = inst.has("a16");
  form.unnormalized = inst.has("unorm");
  form.offset = suffixes.offset;
  // With g16, the derivatives of one direction share a register.
  const bool wide = form.height && !inst.name.ends_with("_g16");
  form.first = uint32_t{suffixes.offset} + uint32_t{suffixes.bias} +
               (suffixes.derivatives ? (wide ? 4 : 2) : 0);
  if (suffixes.level) form.level = form.slice() + (form.layered ? 1 : 0) + 1;
  return form;
}

void place(Lowering& l, const Inst& inst, Op& op, const ImageForm& form, size_t needed) {
  std::vector<uint32_t> offsets;
  add_registers(l, inst, offsets);
  if (offsets.size() < needed || offsets.size() > kMostAddresses) refuse_operands(inst);
  uint64_t packed[2] = {};
  for (size_t i = 0; i < offsets.size(); ++i) {
    packed[i / 4] |= uint64_t{(offsets[i] - kVgprBase) / 128} << 16 * (i % 4);
  }
  op.a = l.constant(packed[0]);
  op.b = l.constant(packed[1]);
  op.c = l.source(inst.operands.at(2), Value::b32);
  op.dst = l.destination(inst.operands.at(0));
  op.imm = static_cast<int32_t>(needed);
  op.imm2 = form.pack();
}

/// Returns the number of address registers.
size_t address_registers(const ImageForm& form) {
  const size_t parts = form.level != 0 ? form.level : form.slice() + (form.layered ? 1 : 0);
  return form.a16 ? form.first + (parts - form.first + 1) / 2 : parts;
}

template <ImageUse kUse, bool kOffset = false, bool kBias = false, bool kDerivatives = false,
          bool kLevel = false>
void lower_image(Lowering& l, const Inst& inst) {
  const ImageForm form = form_of(inst, {kOffset, kBias, kDerivatives, kLevel});
  Op& op = l.emit(&image<kUse>);
  place(l, inst, op, form, address_registers(form));
  if (kUse == ImageUse::sample || kUse == ImageUse::gather) {
    op.d = l.source(inst.operands.at(3), Value::b32);
  }
}

void lower_info(Lowering& l, const Inst& inst) {
  place(l, inst, l.emit(&resource_info), form_of(inst, {}), 1);
}

constexpr Row kRows[] = {
    {"image_load", &lower_image<ImageUse::load>},
    {"image_load_mip", &lower_image<ImageUse::load, false, false, false, true>},
    {"image_store", &lower_image<ImageUse::store>},
    {"image_store_mip", &lower_image<ImageUse::store, false, false, false, true>},
    {"image_get_resinfo", &lower_info},
    {"image_sample", &lower_image<ImageUse::sample>},
    {"image_sample_l", &lower_image<ImageUse::sample, false, false, false, true>},
    {"image_sample_lz", &lower_image<ImageUse::sample>},
    {"image_sample_b", &lower_image<ImageUse::sample, false, true>},
    {"image_sample_d", &lower_image<ImageUse::sample, false, false, true>},
    {"image_sample_o", &lower_image<ImageUse::sample, true>},
    {"image_sample_l_o", &lower_image<ImageUse::sample, true, false, false, true>},
    {"image_sample_lz_o", &lower_image<ImageUse::sample, true>},
    {"image_sample_b_o", &lower_image<ImageUse::sample, true, true>},
    {"image_sample_d_o", &lower_image<ImageUse::sample, true, false, true>},
    {"image_sample_d_g16", &lower_image<ImageUse::sample, false, false, true>},
    {"image_sample_d_o_g16", &lower_image<ImageUse::sample, true, false, true>},
    {"image_gather4", &lower_image<ImageUse::gather>},
    {"image_gather4_lz", &lower_image<ImageUse::gather>},
    {"image_gather4_l", &lower_image<ImageUse::gather, false, false, false, true>},
    {"image_gather4_o", &lower_image<ImageUse::gather, true>},
    {"image_gather4_lz_o", &lower_image<ImageUse::gather, true>},
};

}  // namespace

std::span<const Row> image_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
