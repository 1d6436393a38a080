// Global, flat, scratch, buffer and constant memory, and atomics on them.
#include "corpus.h"

KERNEL memory_widths(ARGUMENTS) {
  ENTER;
  const u8* bytes = reinterpret_cast<const u8*>(inputs);
  const u16* shorts = reinterpret_cast<const u16*>(inputs);
  const u32 k = in.small[0];
  out.put(static_cast<u32>(bytes[k]));
  out.put(static_cast<i32>(reinterpret_cast<const i8*>(bytes)[k + 1]));
  out.put(static_cast<u32>(shorts[k]));
  out.put(static_cast<i32>(reinterpret_cast<const i16*>(shorts)[k + 3]));
  out.put(reinterpret_cast<const u64*>(inputs)[k & 127]);
  const uint4 q = reinterpret_cast<const uint4*>(inputs)[k & 63];
  out.put(q.x + q.y + q.z + q.w);
  const u32* words = reinterpret_cast<const u32*>(inputs);
  out.put(words[k] + words[k + 1] + words[k + 2]);
  out.put(static_cast<u32>(bytes[k]) << 16 | bytes[k + 2]);
  out.put(static_cast<half>(in.h[0] + reinterpret_cast<const half*>(in.h)[k & 7]));
  u8* to = reinterpret_cast<u8*>(out.to);
  to[0] = static_cast<u8>(in.i[0]);
  to[1] = static_cast<u8>(in.i[0] >> 16);
  *reinterpret_cast<u16*>(to + 2) = static_cast<u16>(in.i[1] >> 16);
  *reinterpret_cast<u64*>(to + 16) = static_cast<u64>(in.l[0]);
  *reinterpret_cast<uint4*>(to + 24) = uint4{in.i[0], in.i[1], in.i[2], in.i[3]};
}

KERNEL memory_scratch(ARGUMENTS) {
  ENTER;
  u32 table[24];
  u8 bytes[24];
  u64 longs[6];
  half halves[8];
  for (u32 i = 0; i < 24; ++i) {
    table[i] = in.i[i & 7] * (i + 1);
    bytes[i] = static_cast<u8>(in.i[i & 7] >> (i & 15));
  }
  for (u32 i = 0; i < 6; ++i) longs[i] = static_cast<u64>(in.l[i & 3]) + i;
  for (u32 i = 0; i < 8; ++i) halves[i] = in.h[7 - i];
  u32 k = in.small[0];
  u32 sum = 0;
  for (int i = 0; i < 10; ++i) {
    sum = sum * 3 + table[k % 24] + bytes[(k + 5) % 24];
    table[(k + 7) % 24] ^= sum;
    bytes[k % 24] = static_cast<u8>(sum);
    k = k * 7 + 3;
  }
  out.put(sum);
  out.put(longs[k % 6]);
  out.put(halves[k & 7]);
}

DEVICE NOINLINE u32 through_pointer(u32* p, u32 n) {
  u32 sum = 0;
  for (u32 i = 0; i < n; ++i) {
    sum += p[i];
    p[i] = sum;
  }
  return sum;
}

/// Calls one function with pointers to LDS, scratch and global memory.
KERNEL memory_flat(ARGUMENTS) {
  ENTER;
  LDS u32 shared[128 * 4];
  u32 local[4];
  u32* mine = shared + item() * 4;
  for (u32 i = 0; i < 4; ++i) {
    local[i] = in.i[i];
    mine[i] = in.i[i + 4];
    outputs[index()].w[20 + i] = in.small[i];
  }
  u32* which = in.small[0] % 3 == 0 ? local : in.small[0] % 3 == 1 ? mine : &outputs[index()].w[20];
  out.put(through_pointer(which, 4));
  out.put(local[3]);
  out.put(mine[2]);
  out.put(outputs[index()].w[23]);
}

CONSTANT_TABLE u32 kTable[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2,
                                 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4, 1, 9, 7, 1, 6, 9, 3,
                                 9, 9, 3, 7, 5, 1, 0, 5, 8, 2, 0, 9, 7, 4, 9, 4, 4, 5, 9, 2};

KERNEL memory_constant(ARGUMENTS) {
  ENTER;
  u32 sum = kTable[in.small[0] & 63];
  for (u32 i = 0; i < n % 16 + 3; ++i) sum = sum * 10 + kTable[i];
  out.put(sum);
  // Scalar loads of all widths, with the same address in all work-items.
  const u32* words = reinterpret_cast<const u32*>(inputs);
  u32 all = 0;
  for (u32 i = 0; i < 31; ++i) all = all * 7 + words[i];
  out.put(all);
  out.put(words[group() * 3 + 1]);
  out.put(inputs[group()].l[1]);
}

GLOBAL_VARIABLE u32 g_counts[4];

KERNEL memory_atomics(ARGUMENTS) {
  ENTER;
  u32* w = outputs[0].w + 24;  // zero at first; all work-items add to it
  __atomic_fetch_add(&w[0], in.small[0], __ATOMIC_RELAXED);
  __atomic_fetch_or(&w[1], 1u << (in.small[1] & 31), __ATOMIC_RELAXED);
  __atomic_fetch_max(&w[2], in.i[0], __ATOMIC_RELAXED);
  __atomic_fetch_xor(&w[3], in.i[1], __ATOMIC_RELAXED);
  __atomic_fetch_add(reinterpret_cast<u64*>(&w[4]), static_cast<u64>(in.l[0]), __ATOMIC_RELAXED);
  u32* mine = &outputs[index()].w[8];
  *mine = in.i[2];
  out.put(__atomic_fetch_and(mine, in.i[3], __ATOMIC_RELAXED));
  out.put(__atomic_exchange_n(mine, in.i[4], __ATOMIC_RELAXED));
  u32 expected = in.i[4];
  out.put(__atomic_compare_exchange_n(mine, &expected, 99u, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  out.put(__atomic_fetch_sub(mine, 3u, __ATOMIC_RELAXED));
  out.put(static_cast<u32>(__atomic_fetch_min(reinterpret_cast<i32*>(mine), -5, __ATOMIC_RELAXED)));
  __atomic_fetch_add(&g_counts[in.small[0] & 3], 1, __ATOMIC_RELAXED);
  i64* wide = reinterpret_cast<i64*>(&outputs[index()].w[10]);
  *wide = in.l[1];
  out.put(__atomic_fetch_max(wide, in.l[2], __ATOMIC_RELAXED));
}

#ifdef __AMDGCN__
DEVICE __amdgpu_buffer_rsrc_t resource(const void* p, u32 bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(p), 0, static_cast<i32>(bytes), 0x31004000);
}
#endif

KERNEL memory_buffer(ARGUMENTS) {
  ENTER;
  const u32 k = in.small[0] * 4, bytes = 600;
  // gfx9 counts the scalar offset in the bounds check, later chips don't: it decides nothing here.
  const u32 apart = k < bytes && k + 32 > bytes ? 0 : k;
#ifdef __AMDGCN__
  const auto from = resource(inputs, bytes);
  out.put(__builtin_amdgcn_raw_buffer_load_b32(from, k, 0, 0));
  const auto two = __builtin_amdgcn_raw_buffer_load_b64(from, apart & ~7, 8, 0);
  out.put(two[0] ^ two[1]);
  const auto four = __builtin_amdgcn_raw_buffer_load_b128(from, (k & 255) & ~15, 16, 0);
  out.put(four[0] + four[1] + four[2] + four[3]);
  out.put(static_cast<u32>(__builtin_amdgcn_raw_buffer_load_b16(from, apart, 2, 0)));
  out.put(static_cast<u32>(__builtin_amdgcn_raw_buffer_load_b8(from, apart, 1, 0)));
  const auto to = resource(outputs[index()].w, 64);
  __builtin_amdgcn_raw_buffer_store_b32(in.i[0], to, 40, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b32(in.i[0], to, 64, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b16(static_cast<u16>(in.i[1]), to, 44, 0, 0);
#else
  const auto* words = reinterpret_cast<const u32*>(inputs);
  // The scalar offset is excluded from the bounds check, and each dword is checked separately.
  const auto word = [&](u32 at, u32 scalar = 0) {
    return at + 4 <= bytes ? words[(at + scalar) / 4] : 0;
  };
  out.put(word(k));
  out.put(word(apart & ~7u, 8) ^ word((apart & ~7u) + 4, 8));
  const u32 q = k & 255 & ~15u;
  out.put(word(q, 16) + word(q + 4, 16) + word(q + 8, 16) + word(q + 12, 16));
  out.put(word(apart) >> 16);
  out.put(word(apart) >> 8 & 255);
  outputs[index()].w[10] = in.i[0];
  reinterpret_cast<u16*>(outputs[index()].w)[22] = static_cast<u16>(in.i[1]);
#endif
}

typedef u32 uint32v __attribute__((ext_vector_type(32)));

KERNEL memory_register_index(ARGUMENTS) {
  ENTER;
  uint32v v;
  for (u32 i = 0; i < 32; ++i) v[i] = in.i[i & 7] * (i + 1);
  const u32 same = (group() * 5 + 3) & 31;  // the same register in all lanes
  out.put(v[same]);
  v[(same + 7) & 31] = in.i[1];
  v[in.small[0] & 31] += 1;  // differs by lane: becomes a loop over the distinct registers
  out.put(v[in.small[1] & 31]);
  u32 sum = 0;
  for (u32 i = 0; i < 32; ++i) sum = sum * 3 + v[i];
  out.put(sum);
}
