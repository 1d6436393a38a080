// Implements loads and stores of buffers whose elements have a format: the descriptor's, as in
// textures of linear memory, or the instruction's (tbuffer).

#include "emu/exec/buffer.h"
#include "emu/exec/pixel.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

/// Bits of Op::imm2 besides those of buffer.h: whether the instruction has a format, and which one.
constexpr uint32_t kTyped = 1 << 7, kFormatShift = 8;

/// How components lie in registers: one in each, two in each, or one in the upper half.
enum class Data : uint8_t { words, halves, upper_half };

constexpr uint32_t registers_of(int count, Data data) {
  return static_cast<uint32_t>(data == Data::halves ? (count + 1) / 2 : count);
}

/// The bytes of a component from the lane's place in the first register on.
constexpr int place_of(int component, Data data) {
  if (data == Data::words) return 128 * component;
  return data == Data::upper_half ? 2 : 128 * (component / 2) + 2 * (component % 2);
}

EMU_INLINE PixelFormat format_of(Wave* w, const Op* op) {
  const int generation = w->launch->code->traits.generation;
  const bool typed = (op->imm2 & kTyped) != 0;
  const uint32_t own = op->imm2 >> kFormatShift, word = (&at<uint32_t>(w, op->c))[3];
  if (generation < 10) {
    return typed ? gfx9_buffer_format(own & 15, own >> 4)
                 : gfx9_buffer_format(word >> 15 & 15, word >> 12 & 7);
  }
  return pixel_format(generation, typed ? own : word >> 12 & (generation >= 11 ? 63 : 127));
}

/// Reads a lane's data. Components that there is no data for are 0; on gfx12, the first one.
template <int kCount, Data kData>
EMU_INLINE Texel take_components(Wave* w, PixelFormat format, const char* from) {
  Texel texel{};
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kData == Data::words) {
      std::memcpy(&texel.word[i], from + place_of(i, kData), 4);
    } else {
      uint16_t half;
      std::memcpy(&half, from + place_of(i, kData), sizeof half);
      texel.word[i] = word_of_half(format, half);
    }
  }
  if (w->launch->code->traits.generation >= 12) {
    for (int i = kCount; i < 4; ++i) texel.word[i] = texel.word[0];
  }
  return texel;
}

/// Writes a lane's result. Where loads don't clear it, the half that no component fills keeps its
/// value.
template <int kCount, Data kData>
EMU_INLINE void put_components(Wave* w, PixelFormat format, const Texel& texel, char* to) {
  if (kData != Data::words && w->launch->code->traits.loads_clear) {
    for (uint32_t i = 0; i < registers_of(kCount, kData); ++i) std::memset(to + 128 * i, 0, 4);
  }
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kData == Data::words) {
      std::memcpy(to + place_of(i, kData), &texel.word[i], 4);
    } else {
      // RDNA 3's document: floats of 32 bits are truncated, and others are rounded.
      const bool wide = format.bytes == 4;
      const uint16_t half = half_of_word(format, texel.word[i],
                                         wide ? HalfRounding::truncate : HalfRounding::nearest);
      std::memcpy(to + place_of(i, kData), &half, sizeof half);
    }
  }
}

/// Loads or stores `kCount` components of one half's lanes. Returns false after a fault.
template <int kCount, bool kStore, Data kData>
EMU_INLINE bool format_half(Wave* w, const Op* op, int half, PixelFormat format) {
  const Descriptor128 d = descriptor(w, op);
  const bool typed = (op->imm2 & kTyped) != 0;
  const uint32_t selectors = typed ? kIdentity : (&at<uint32_t>(w, op->c))[3] & 0xfff;
  const BufferLanes lanes = buffer_lanes(w, op, half, d, format.size());
  char* base = reinterpret_cast<char*>(d.base) + at<uint32_t>(w, op->d);
  char* reg = half_of(w, kStore ? op->b : op->dst, half);
  for (LaneMask left = w->s[kExec + half]; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const bool within = (lanes.within >> lane & 1) != 0;
    char* element = base + lanes.offsets[lane];
    if (kStore) {
      if (!within) continue;
      char bytes[16];
      write_texel(format, take_components<kCount, kData>(w, format, reg + 4 * lane), bytes);
      if (!Global::writable(w, op, element, format.size(), lane, kChecked ? bytes : nullptr))
        return false;
      std::memcpy(element, bytes, format.size());
      continue;
    }
    Texel texel{};  // of an element beyond the buffer
    if (within) {
      if (!Global::readable(w, op, element, format.size(), lane)) return false;
      texel = read_texel(format, element);
    }
    texel = select_components(format, texel, selectors);
    put_components<kCount, kData>(w, format, texel, reg + 4 * lane);
  }
  return true;
}

template <int kCount, bool kStore, Data kData>
Stop buffer_format(Wave* w, const Op* op) {
  constexpr uint32_t kRegisters = registers_of(kCount, kData);
  read_scalar(w, op, op->c, 4);
  read_scalar(w, op, op->d, 1);
  const PixelFormat format = format_of(w, op);
  if (!format.known()) return fail(w, op, "a buffer of a format that isn't implemented");
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if ((op->imm2 & 3) != 0) read_vector(w, op, op->a, 1, half, enabled, true);
    if (kStore) read_vector(w, op, op->b, kRegisters, half, enabled);
    if (!format_half<kCount, kStore, kData>(w, op, half, format)) return Stop::fault;
  }
  if (kStore) {
    store_issued(w, emu::kStore);
  } else {
    load_issued(w, op, op->dst, kRegisters, kVmem);
  }
  EMU_NEXT;
}

template <int kCount, bool kStore, Data kData>
void lower_format(Lowering& l, const Inst& inst) {
  if (inst.has("lds")) throw NotImplemented("a load with a format into LDS");
  Op& op = l.emit(&buffer_format<kCount, kStore, kData>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(0));
  place_buffer(l, inst, op);
  if (inst.name.starts_with("tbuffer")) {
    op.imm2 |= kTyped | static_cast<uint32_t>(inst.modifier("format")) << kFormatShift;
  }
}

#define EMU_FORMAT_ROWS(prefix, store, data)                                                 \
  {prefix "x", &lower_format<1, store, data>}, {prefix "xy", &lower_format<2, store, data>}, \
      {prefix "xyz", &lower_format<3, store, data>}, {                                       \
    prefix "xyzw", &lower_format<4, store, data>                                             \
  }

// Components of 16 bits have one name until gfx10 and another from gfx11 on.
constexpr Row kRows[] = {
    EMU_FORMAT_ROWS("buffer_load_format_", false, Data::words),
    EMU_FORMAT_ROWS("buffer_load_format_d16_", false, Data::halves),
    EMU_FORMAT_ROWS("buffer_load_d16_format_", false, Data::halves),
    EMU_FORMAT_ROWS("buffer_store_format_", true, Data::words),
    EMU_FORMAT_ROWS("buffer_store_format_d16_", true, Data::halves),
    EMU_FORMAT_ROWS("buffer_store_d16_format_", true, Data::halves),
    EMU_FORMAT_ROWS("tbuffer_load_format_", false, Data::words),
    EMU_FORMAT_ROWS("tbuffer_load_format_d16_", false, Data::halves),
    EMU_FORMAT_ROWS("tbuffer_load_d16_format_", false, Data::halves),
    EMU_FORMAT_ROWS("tbuffer_store_format_", true, Data::words),
    EMU_FORMAT_ROWS("tbuffer_store_format_d16_", true, Data::halves),
    EMU_FORMAT_ROWS("tbuffer_store_d16_format_", true, Data::halves),
    {"buffer_load_format_d16_hi_x", &lower_format<1, false, Data::upper_half>},
    {"buffer_load_d16_hi_format_x", &lower_format<1, false, Data::upper_half>},
    {"buffer_store_format_d16_hi_x", &lower_format<1, true, Data::upper_half>},
    {"buffer_store_d16_hi_format_x", &lower_format<1, true, Data::upper_half>},
};

}  // namespace

std::span<const Row> buffer_format_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
