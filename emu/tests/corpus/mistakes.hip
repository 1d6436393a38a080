// Mistakes that were found in other emulators and need a whole kernel to reproduce.
#include "corpus.h"

/// Waves pass the same barrier repeatedly and exchange a value each time.
KERNEL mistake_barrier_in_a_loop(ARGUMENTS) {
  ENTER;
  LDS u32 turn[128];
  u32 x = in.i[0];
  for (u32 round = 0; round < 9; ++round) {
    turn[item()] = x;
    barrier();
    x = x * 31 + turn[(item() + 33 + round) % items()];
    barrier();
  }
  out.put(x);
}

/// Every wave has its own scratch and keeps it while others run.
KERNEL mistake_scratch_shared_between_waves(ARGUMENTS) {
  ENTER;
  u32 mine[16];
  for (u32 i = 0; i < 16; ++i) mine[(i + in.small[0]) & 15] = in.i[i & 7] + i;
  barrier();
  u32 sum = 0;
  for (u32 i = 0; i < 16; ++i) sum = sum * 7 + mine[(i * in.small[1]) & 15];
  out.put(sum);
}

/// f32 and f64 denormals are preserved.
KERNEL mistake_denormals_flushed(ARGUMENTS) {
  ENTER;
  const float tiny = __builtin_bit_cast(float, in.small[0] + 1);
  out.put(tiny + tiny);
  out.put(tiny * 0.5f);
  out.put(__builtin_fmaf(tiny, 2.0f, tiny));
  out.put(tiny > 0.0f);
  out.put(__builtin_bit_cast(double, static_cast<u64>(in.small[1] + 1)) * 3.0);
  out.put(static_cast<half>(__builtin_bit_cast(half, static_cast<u16>(in.small[2] & 511)) * static_cast<half>(2.0f)));
}
