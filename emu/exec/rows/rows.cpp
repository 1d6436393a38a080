#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {

std::span<const Row> table(int index) {
  using Table = std::span<const Row> (*)();
  static constexpr Table kTables[] = {
      &float_rows,  &half_rows,    &packed_rows,  &double_rows,    &integer_rows,
      &bit_rows,    &convert_rows, &compare_rows, &divide_rows,    &transcendental_rows,
      &lane_rows,   &dot_rows,     &matrix_rows,  &scalar_rows,    &scalar_bit_rows,
      &control_rows, &global_rows, &flat_rows,    &smem_rows,      &atomic_rows,
      &lds_rows,    &buffer_rows,
  };
  constexpr int kCount = sizeof kTables / sizeof kTables[0];
  return index < kCount ? kTables[index]() : std::span<const Row>();
}

}  // namespace emu::EMU_VARIANT
