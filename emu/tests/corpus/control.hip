// Loops, divergence, switches, calls, recursion, workgroups that wait for each other, and clocks.
#include "corpus.h"

KERNEL control_loops(ARGUMENTS) {
  ENTER;
  u32 x = in.i[0], steps = 0;
  while (x != 1 && steps < 50) {  // the count differs between work-items
    x = x & 1 ? x * 3 + 1 : x / 2;
    ++steps;
  }
  out.put(steps);
  u32 sum = 0;
  for (u32 i = 0; i < (in.small[0] & 15); ++i) {
    if (i == (in.small[1] & 7)) continue;
    for (u32 j = 0; j < i; ++j) {
      if (((sum + j) & 31) == 17) break;
      sum += j * in.small[2];
    }
  }
  out.put(sum);
  i32 a = static_cast<i32>(in.small[0]) + 1, b = static_cast<i32>(in.small[1]) + 1;
  while (b != 0) {
    const i32 rest = a % b;
    a = b;
    b = rest;
  }
  out.put(a);
}

KERNEL control_divergence(ARGUMENTS) {
  ENTER;
  u32 x = in.i[0];
  if (in.small[0] & 1) {
    x += 17;
    if (in.small[1] & 2) x *= 5; else x ^= 0xff00ff;
  } else if (in.small[0] & 4) {
    x = x << 3 | x >> 29;
  } else {
    if (item() & 1) return;
    x -= in.i[1];
  }
  out.put(x);
  if (in.small[2] < 100 || (in.small[3] > 500 && x % 3 == 0)) out.put(x * 3);
}

KERNEL control_switch(ARGUMENTS) {
  ENTER;
  u32 x = in.i[0];
  for (u32 i = 0; i < 6; ++i) {
    switch ((in.small[i & 3] + i) % 11) {
      case 0: x += 3; break;
      case 1: x *= 7; break;
      case 2: x ^= x >> 5;  // falls through
      case 3: x -= in.i[1]; break;
      case 4: x = ~x; break;
      case 5: x = x << 7 | x >> 25; break;
      case 6: x += in.i[2] * 3; break;
      case 7: x = x / 3; break;
      case 9: x &= 0x7fffffff; break;
      default: x += 1;
    }
  }
  out.put(x);
  switch (n % 7 + group()) {  // the same case for all work-items
    case 0: out.put(in.i[1]); break;
    case 1: out.put(in.i[2] * 2); break;
    case 2: out.put(in.i[3] * 3); break;
    case 3: out.put(in.i[4] * 4); break;
    case 4: out.put(in.i[5] * 5); break;
    case 5: out.put(in.i[6] * 6); break;
    default: out.put(in.i[7]);
  }
}

DEVICE NOINLINE u32 mix(u32 a, u32 b) { return (a ^ b) * 2654435761u + (a >> 7); }
DEVICE NOINLINE float blend(float a, float b, float t) { return a + (b - a) * t; }
DEVICE NOINLINE u64 many(u32 a, u64 b, float c, double d, u32 e, u32 f, u32 g, u32 h) {
  return a + b * 3 + static_cast<u32>(c) + static_cast<u32>(d) + e * f + g * h;
}
DEVICE NOINLINE u32 factorial_like(u32 k, u32 x) {
  return k == 0 ? x : mix(x, k) + factorial_like(k - 1, x * 3 + 1);
}
DEVICE NOINLINE u32 fibonacci(u32 k) { return k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2); }

KERNEL control_calls(ARGUMENTS) {
  ENTER;
  out.put(mix(in.i[0], in.i[1]));
  out.put(blend(static_cast<float>(in.small[0]), static_cast<float>(in.small[1]), 0.25f));
  out.put(many(in.i[0], static_cast<u64>(in.l[0]), static_cast<float>(in.small[0]),
               static_cast<double>(in.small[1]), in.i[2], in.i[3], in.i[4], in.i[5]));
  if (in.small[2] & 1) out.put(mix(in.i[2], 7)); else out.put(mix(in.i[3], 9));
}

KERNEL control_recursion(ARGUMENTS) {
  ENTER;
  out.put(factorial_like(in.small[0] & 7, in.i[0]));
  out.put(fibonacci(in.small[1] & 7));
}

using Function = u32 (*)(u32, u32);
DEVICE NOINLINE u32 other(u32 a, u32 b) { return a * 5 - b; }
DEVICE NOINLINE u32 third(u32 a, u32 b) { return (a | 1) * (b | 1); }

KERNEL control_pointers(ARGUMENTS) {
  ENTER;
  const Function f = in.small[0] % 3 == 0 ? mix : in.small[0] % 3 == 1 ? other : third;
  out.put(f(in.i[0], in.i[1]));
}

GLOBAL_VARIABLE u32 g_flags[64];

/// Each workgroup waits for the previous one. All of them end if they start in order.
KERNEL control_flags(ARGUMENTS) {
  ENTER;
  const u32 g = group();
  if (item() == 0) {
    u32 before = 0;
    if (g > 0) {
      while ((before = __atomic_load_n(&g_flags[g - 1], __ATOMIC_ACQUIRE)) == 0) {
#ifdef __AMDGCN__
        __builtin_amdgcn_s_sleep(1);
#endif
      }
    }
    __atomic_store_n(&g_flags[g], before + g + 1, __ATOMIC_RELEASE);
  }
  barrier();
  out.put(__atomic_load_n(&g_flags[g], __ATOMIC_RELAXED));
}

KERNEL control_clocks(ARGUMENTS) {
  ENTER;
#ifdef __AMDGCN__
  // gfx11's cycle counter has 20 bits and wraps to zero.
  const u64 first = __builtin_readcyclecounter(), steady = __builtin_readsteadycounter();
  __builtin_amdgcn_s_sleep(2);
  const u64 second = __builtin_readcyclecounter();
  out.put((second >= first || (first | second) >> 20 == 0) &&
          static_cast<u64>(__builtin_readsteadycounter()) >= steady);
  __builtin_amdgcn_s_setprio(1);
  __builtin_amdgcn_s_dcache_inv();
#else
  out.put(true);
#endif
}
