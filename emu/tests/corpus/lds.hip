// LDS: access widths, two-address instructions, atomics, barriers in loops, dynamic size.
#include "corpus.h"

KERNEL lds_reduction(ARGUMENTS) {
  ENTER;
  LDS u32 values[256];
  const u32 t = item();
  values[t] = in.i[0] >> 4;
  barrier();
  for (u32 step = items() / 2; step > 0; step /= 2) {
    if (t < step) values[t] += values[t + step];
    barrier();
  }
  out.put(values[0]);
  barrier();
  values[t] = in.small[0];
  barrier();
  for (u32 step = 1; step < items(); step *= 2) {  // a prefix sum
    const u32 before = t >= step ? values[t - step] : 0;
    barrier();
    values[t] += before;
    barrier();
  }
  out.put(values[t]);
}

KERNEL lds_widths(ARGUMENTS) {
  ENTER;
  LDS uint4 quads[128];
  LDS u64 longs[128];
  LDS u16 shorts[128];
  LDS u8 bytes[128];
  LDS double doubles[128];
  LDS uint3 threes[128];
  const u32 t = item(), o = (t + 17) % items();
  quads[t] = uint4{in.i[0], in.i[1], in.i[2], in.i[3]};
  longs[t] = static_cast<u64>(in.l[0]);
  shorts[t] = static_cast<u16>(in.i[4]);
  bytes[t] = static_cast<u8>(in.i[5]);
  doubles[t] = in.d[0];
  threes[t] = uint3{in.i[4], in.i[5], in.i[6]};
  barrier();
  const uint4 q = quads[o];
  out.put(q.x ^ q.y);
  out.put(q.z + q.w);
  out.put(longs[o]);
  out.put(static_cast<u32>(shorts[o]));
  out.put(static_cast<i32>(static_cast<i16>(shorts[t ^ 1])));
  out.put(static_cast<u32>(bytes[o]));
  out.put(static_cast<i32>(static_cast<i8>(bytes[t ^ 3])));
  out.put(doubles[o]);
  const uint3 three = threes[o];
  out.put(three.x);
  out.put(three.y ^ three.z);
}

KERNEL lds_two_addresses(ARGUMENTS) {
  ENTER;
  LDS u32 a[2048];
  LDS u64 b[1024];
  const u32 t = item();
  a[t] = in.i[0];
  a[t + 128] = in.i[1];
  a[t + 1024] = in.i[2];
  b[t] = static_cast<u64>(in.l[0]);
  b[t + 128] = static_cast<u64>(in.l[1]);
  barrier();
  const u32 o = (t * 5 + 3) % items();
  out.put(a[o] + a[o + 128]);
  out.put(a[o] ^ a[o + 1024]);
  out.put(b[o] + b[o + 128]);
}

KERNEL lds_atomics(ARGUMENTS) {
  ENTER;
  LDS u32 counts[16];
  LDS i32 least, most;
  LDS u64 total;
  LDS u32 flags, parity, winner;
  const u32 t = item();
  if (t < 16) counts[t] = 0;
  if (t == 0) {
    least = 0x7fffffff;
    most = -0x7fffffff;
    total = 0;
    flags = parity = 0;
    winner = 77;
  }
  barrier();
  const i32 x = static_cast<i32>(in.i[0]);
  __atomic_fetch_add(&counts[in.small[0] & 15], 1, __ATOMIC_RELAXED);
  __atomic_fetch_min(&least, x, __ATOMIC_RELAXED);
  __atomic_fetch_max(&most, x, __ATOMIC_RELAXED);
  __atomic_fetch_add(&total, static_cast<u64>(in.l[0]), __ATOMIC_RELAXED);
  __atomic_fetch_or(&flags, in.i[1] & in.i[2], __ATOMIC_RELAXED);
  __atomic_fetch_xor(&parity, in.i[3], __ATOMIC_RELAXED);
  barrier();
  out.put(counts[t & 15]);
  out.put(least);
  out.put(most);
  out.put(total);
  out.put(flags);
  out.put(parity);
  u32 expected = 77;
  const bool won = __atomic_compare_exchange_n(&winner, &expected, 5u, false, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED);
  barrier();
  __atomic_fetch_sub(&counts[0], won ? 3u : 1u, __ATOMIC_RELAXED);
  barrier();
  out.put(winner);
  out.put(counts[0]);
  barrier();
  if (t == 0) __atomic_exchange_n(&winner, in.i[4], __ATOMIC_RELAXED);
  barrier();
  out.put(winner);
}

KERNEL lds_float_atomics(ARGUMENTS) {
  ENTER;
  LDS float sum;
  if (item() == 0) sum = 0;
  barrier();
  // The values are integers, so the order of additions doesn't matter.
#ifdef __AMDGCN__
  __builtin_amdgcn_ds_faddf((__attribute__((address_space(3))) float*)&sum,
                            static_cast<float>(in.small[0]), 0, 0, false);
#else
  sum += static_cast<float>(in.small[0]);
#endif
  barrier();
  out.put(sum);
}

KERNEL lds_dynamic(ARGUMENTS) {
  ENTER;
  DYNAMIC_LDS(u32, words);
  const u32 t = item();
  for (u32 i = 0; i < 4; ++i) words[t * 4 + i] = in.i[i];
  barrier();
  u32 sum = 0;
  for (u32 i = 0; i < 8; ++i) sum = sum * 31 + words[(t * 7 + i * 13) % (items() * 4)];
  out.put(sum);
}

KERNEL lds_transpose(ARGUMENTS) {
  ENTER;
  LDS float tile[16][17];
  const u32 t = item();
  float sum = 0;
  for (int round = 0; round < 3; ++round) {
    for (u32 i = t; i < 256; i += items()) tile[i / 16][i % 16] = static_cast<float>(i * (round + 1));
    barrier();
    for (u32 k = 0; k < 16; ++k) sum = __builtin_fmaf(tile[k][t % 16], tile[t / 16][k], sum);
    barrier();
  }
  out.put(sum);
}

/// Indices decrease as work-items increase, which gives negative address registers and offsets that
/// compensate them.
KERNEL lds_reversed(ARGUMENTS) {
  ENTER;
  LDS u32 words[64];
  LDS u64 wide[64];
  LDS u32 counts[64];
  const u32 t = item() % 64;
  if (item() < 64) {
    words[63 - t] = in.i[0];
    wide[63 - t] = in.i[1];
    counts[63 - t] = t;
  }
  barrier();
  out.put(words[63 - t] ^ words[60 - t / 2]);
  out.put(static_cast<u32>(wide[63 - t] + wide[62 - t / 4]));
  out.put(counts[63 - t / 2] + counts[40 - t / 2]);
}
