// Implements loads and stores of buffers whose descriptor says what the bytes of an element mean,
// as textures of linear memory are.

#include "emu/exec/buffer.h"
#include "emu/exec/image.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE PixelFormat format_of(int generation, uint32_t word) {
  if (generation < 10) return gfx9_buffer_format(word >> 15 & 15, word >> 12 & 7);
  return pixel_format(generation, word >> 12 & (generation >= 11 ? 63 : 127));
}

/// Loads or stores `kCount` components of one half's lanes. Returns false after a fault.
template <int kCount, bool kStore>
EMU_INLINE bool format_half(Wave* w, const Op* op, int half, PixelFormat format) {
  const Descriptor128 d = descriptor(w, op);
  const uint32_t selectors = (&at<uint32_t>(w, op->c))[3] & 0xfff;
  const BufferLanes lanes = buffer_lanes(w, op, half, d, format.size());
  char* base = reinterpret_cast<char*>(d.base) + at<uint32_t>(w, op->d);
  char* reg = half_of(w, kStore ? op->b : op->dst, half);
  for (LaneMask left = w->s[kExec + half]; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const bool within = (lanes.within >> lane & 1) != 0;
    char* element = base + lanes.offsets[lane];
    Texel texel{};
    if (kStore) {
      if (!within) continue;
      for (int i = 0; i < kCount; ++i) std::memcpy(&texel.word[i], reg + 128 * i + 4 * lane, 4);
      char bytes[16];
      write_texel(format, texel, bytes);
      if (!Global::writable(w, op, element, format.size(), lane, kChecked ? bytes : nullptr))
        return false;
      std::memcpy(element, bytes, format.size());
      continue;
    }
    if (within) {
      if (!Global::readable(w, op, element, format.size(), lane)) return false;
      texel = select_components(format, read_texel(format, element), selectors);
    }
    for (int i = 0; i < kCount; ++i) std::memcpy(reg + 128 * i + 4 * lane, &texel.word[i], 4);
  }
  return true;
}

template <int kCount, bool kStore>
Stop buffer_format(Wave* w, const Op* op) {
  read_scalar(w, op, op->c, 4);
  read_scalar(w, op, op->d, 1);
  const PixelFormat format =
      format_of(w->launch->code->traits.generation, (&at<uint32_t>(w, op->c))[3]);
  if (!format.known()) return fail(w, op, "a buffer of a format that isn't implemented");
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if ((op->imm2 & 3) != 0) read_vector(w, op, op->a, 1, half, enabled, true);
    if (kStore) read_vector(w, op, op->b, kCount, half, enabled);
    if (!format_half<kCount, kStore>(w, op, half, format)) return Stop::fault;
  }
  if (kStore) {
    store_issued(w, emu::kStore);
  } else {
    load_issued(w, op, op->dst, kCount, kVmem);
  }
  EMU_NEXT;
}

template <int kCount, bool kStore>
void lower_format(Lowering& l, const Inst& inst) {
  if (inst.has("lds") || inst.has("tfe")) throw NotImplemented("a typed load with lds or tfe");
  Op& op = l.emit(&buffer_format<kCount, kStore>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(0));
  place_buffer(l, inst, op);
}

constexpr Row kRows[] = {
    {"buffer_load_format_x", &lower_format<1, false>},
    {"buffer_load_format_xy", &lower_format<2, false>},
    {"buffer_load_format_xyz", &lower_format<3, false>},
    {"buffer_load_format_xyzw", &lower_format<4, false>},
    {"buffer_store_format_x", &lower_format<1, true>},
    {"buffer_store_format_xy", &lower_format<2, true>},
    {"buffer_store_format_xyz", &lower_format<3, true>},
    {"buffer_store_format_xyzw", &lower_format<4, true>},
};

}  // namespace

std::span<const Row> buffer_format_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
