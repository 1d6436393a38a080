#pragma once

// The names of loads and stores: first those of gfx10 and earlier, then those of gfx11 and later.
// The macros expand `row(prefix + name, Format)` for each.

#define EMU_LOADS(prefix, row)                                                                     \
  row(prefix "load_ubyte", Small<uint8_t, 0>), row(prefix "load_u8", Small<uint8_t, 0>),           \
      row(prefix "load_sbyte", Small<int8_t, 0>), row(prefix "load_i8", Small<int8_t, 0>),         \
      row(prefix "load_ushort", Small<uint16_t, 0>), row(prefix "load_u16", Small<uint16_t, 0>),   \
      row(prefix "load_sshort", Small<int16_t, 0>), row(prefix "load_i16", Small<int16_t, 0>),     \
      row(prefix "load_ubyte_d16", Small<uint8_t, 1>),                                             \
      row(prefix "load_d16_u8", Small<uint8_t, 1>),                                                \
      row(prefix "load_sbyte_d16", Small<int8_t, 1>), row(prefix "load_d16_i8", Small<int8_t, 1>), \
      row(prefix "load_short_d16", Small<uint16_t, 1>),                                            \
      row(prefix "load_d16_b16", Small<uint16_t, 1>),                                              \
      row(prefix "load_ubyte_d16_hi", Small<uint8_t, 2>),                                          \
      row(prefix "load_d16_hi_u8", Small<uint8_t, 2>),                                             \
      row(prefix "load_sbyte_d16_hi", Small<int8_t, 2>),                                           \
      row(prefix "load_d16_hi_i8", Small<int8_t, 2>),                                              \
      row(prefix "load_short_d16_hi", Small<uint16_t, 2>),                                         \
      row(prefix "load_d16_hi_b16", Small<uint16_t, 2>), row(prefix "load_dword", Dwords<1>),      \
      row(prefix "load_b32", Dwords<1>), row(prefix "load_dwordx2", Dwords<2>),                    \
      row(prefix "load_b64", Dwords<2>), row(prefix "load_dwordx3", Dwords<3>),                    \
      row(prefix "load_b96", Dwords<3>), row(prefix "load_dwordx4", Dwords<4>),                    \
      row(prefix "load_b128", Dwords<4>)

#define EMU_STORES(prefix, row)                                                                   \
  row(prefix "store_byte", Small<uint8_t, 0>), row(prefix "store_b8", Small<uint8_t, 0>),         \
      row(prefix "store_short", Small<uint16_t, 0>), row(prefix "store_b16", Small<uint16_t, 0>), \
      row(prefix "store_byte_d16_hi", Small<uint8_t, 2>),                                         \
      row(prefix "store_d16_hi_b8", Small<uint8_t, 2>),                                           \
      row(prefix "store_short_d16_hi", Small<uint16_t, 2>),                                       \
      row(prefix "store_d16_hi_b16", Small<uint16_t, 2>), row(prefix "store_dword", Dwords<1>),   \
      row(prefix "store_b32", Dwords<1>), row(prefix "store_dwordx2", Dwords<2>),                 \
      row(prefix "store_b64", Dwords<2>), row(prefix "store_dwordx3", Dwords<3>),                 \
      row(prefix "store_b96", Dwords<3>), row(prefix "store_dwordx4", Dwords<4>),                 \
      row(prefix "store_b128", Dwords<4>)
