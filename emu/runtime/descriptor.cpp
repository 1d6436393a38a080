#include "emu/runtime/descriptor.h"

namespace emu {

Descriptor read_descriptor(Bytes bytes) {
  Descriptor d;
  d.lds_bytes = read<uint32_t>(bytes, 0, "descriptor");
  d.scratch_bytes = read<uint32_t>(bytes, 4, "descriptor");
  d.kernarg_bytes = read<uint32_t>(bytes, 8, "descriptor");
  d.entry_offset = read<int64_t>(bytes, 16, "descriptor");
  d.rsrc3 = read<uint32_t>(bytes, 44, "descriptor");
  d.rsrc1 = read<uint32_t>(bytes, 48, "descriptor");
  d.rsrc2 = read<uint32_t>(bytes, 52, "descriptor");
  d.properties = read<uint16_t>(bytes, 56, "descriptor");
  d.preload = read<uint16_t>(bytes, 58, "descriptor");
  return d;
}

}  // namespace emu
