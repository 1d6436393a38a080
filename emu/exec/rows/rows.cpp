#include "emu/exec/rows/rows.h"

#include "emu/arch/gfx12/rows.h"
#include "emu/arch/gfx9/rows.h"

namespace emu::EMU_VARIANT {

std::span<const Table> tables() {
  static const Table kTables[] = {
      {9, gfx9_rows()},           {9, gfx9_mfma_rows()},     {9, gfx9_smfmac_rows()},
      {9, gfx9_float8_rows()},    {9, gfx9_to_lds_rows()},   {9, gfx950_rows()},
      {11, gfx11_rows()},         {12, gfx12_rows()},        {12, gfx12_wmma_rows()},
      {12, gfx12_swmmac_rows()},  {0, scalar_float_rows()},  {12, gfx12_float8_rows()},
      {0, float_rows()},          {0, half_rows()},          {0, packed_rows()},
      {0, double_rows()},         {0, integer_rows()},       {0, bit_rows()},
      {0, convert_rows()},        {0, compare_rows()},       {0, divide_rows()},
      {0, transcendental_rows()}, {0, lane_rows()},          {0, dot_rows()},
      {0, scalar_rows()},         {0, scalar_bit_rows()},    {0, control_rows()},
      {0, global_rows()},         {0, flat_rows()},          {0, smem_rows()},
      {0, atomic_rows()},         {0, lds_rows()},           {0, permute_rows()},
      {0, buffer_rows()},         {0, buffer_format_rows()}, {10, image_rows()},
      {11, image_rows()},         {12, image_rows()},
  };
  return kTables;
}

}  // namespace emu::EMU_VARIANT
