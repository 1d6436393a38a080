// The vocabulary of HIP's device language in programs of hiprtc: indices, atomics, lanes, vectors,
// integers, printf, assert, malloc. Each result is compared with one that the host computes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "emu/tests/hip_rtc_support.h"

namespace {

int wave_size() {
  int lanes = 0;
  EXPECT_EQ(hipSuccess, hipDeviceGetAttribute(&lanes, hipDeviceAttributeWarpSize, 0));
  return lanes;
}

TEST(HipRtcLanguage, Indices) {
  const Compiled program(R"(
    extern "C" __global__ __launch_bounds__(64, 1) void indices(unsigned* out) {
      const dim3 all = gridDim;
      const uint3 me = threadIdx;
      const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      const unsigned item = me.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      unsigned* to = out + 4 * (block * 24 + item);
      to[0] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z;
      to[1] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z;
      to[2] = blockDim.x + 10 * blockDim.y + 100 * blockDim.z;
      to[3] = all.x + 10 * all.y + 100 * all.z;
    })");
  constexpr unsigned kBlocks = 2 * 3 * 2, kItems = 4 * 3 * 2;
  Buffer<unsigned> out(4 * kBlocks * kItems);
  void* list[] = {const_cast<unsigned**>(&out.data)};
  HIP_OK(hipModuleLaunchKernel(program["indices"], 2, 3, 2, 4, 3, 2, 0, nullptr, list, nullptr));
  HIP_OK(hipDeviceSynchronize());
  const std::vector<unsigned> got = out.get();
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned item = 0; item < kItems; ++item) {
      const unsigned* at = &got[4 * (block * kItems + item)];
      EXPECT_EQ(at[0], item % 4 + 10 * (item / 4 % 3) + 100 * (item / 12));
      EXPECT_EQ(at[1], block % 2 + 10 * (block / 2 % 3) + 100 * (block / 6));
      EXPECT_EQ(at[2], 234u);
      EXPECT_EQ(at[3], 232u);
    }
  }
}

/// The operations of `atomics` below on one type, in the order of their results.
template <class T>
std::vector<T> atomic_results(int items) {
  const auto value = [](int i) { return static_cast<T>(i * 7 % 31 + 1); };
  T sum = 5, rest = static_cast<T>(100000), least = static_cast<T>(1000), most = 0;
  for (int i = 0; i < items; ++i) {
    sum += value(i);
    rest -= value(i);
    least = std::min(least, value(i));
    most = std::max(most, value(i));
  }
  return {sum, rest, least, most, static_cast<T>(items), static_cast<T>(items)};
}

template <class T>
void check_atomics(const char* name) {
  const Compiled program(R"(
    template <class T> __global__ void atomics(T* to) {
      const int i = threadIdx.x + blockIdx.x * blockDim.x;
      const T value = static_cast<T>(i * 7 % 31 + 1);
      atomicAdd(to + 0, value);
      atomicSub_system(to + 1, value);
      atomicMin(to + 2, value);
      atomicMax(to + 3, value);
      T seen = to[4], before;  // a sum by compare-and-swap
      do {
        before = seen;
        seen = atomicCAS(to + 4, before, static_cast<T>(before + 1));
      } while (seen != before);
      if (atomicExch_block(to + 6 + i, static_cast<T>(1)) == static_cast<T>(0)) atomicAdd_block(to + 5, static_cast<T>(1));
    })",
                         {}, {name});
  constexpr int kItems = 128;
  Buffer<T> to(6 + kItems);
  to.set({5, static_cast<T>(100000), static_cast<T>(1000), 0, 0, 0});
  run(program.named(name), 2, kItems / 2, to.data);
  const std::vector<T> all = to.get();
  std::vector<T> expected = atomic_results<T>(kItems);
  EXPECT_EQ(std::vector<T>(all.begin(), all.begin() + 6), expected) << name;
}

TEST(HipRtcLanguage, Atomics) {
  check_atomics<int>("atomics<int>");
  check_atomics<unsigned>("atomics<unsigned>");
  check_atomics<long long>("atomics<long long>");
  check_atomics<unsigned long long>("atomics<unsigned long long>");
  check_atomics<float>("atomics<float>");
  check_atomics<double>("atomics<double>");
}

TEST(HipRtcLanguage, AtomicsOfBits) {
  const Compiled program(R"(
    extern "C" __global__ void bits(unsigned* to, unsigned long long* wide) {
      const unsigned i = threadIdx.x;
      atomicOr(to, 1u << i % 32);
      atomicAnd(to + 1, ~(1u << i % 31));
      atomicXor(to + 2, i * 0x9e3779b9u);
      to[16 + i] = atomicInc(to + 3, 9);
      atomicDec(to + 4, 20);
      atomicOr(wide, 1ull << i);
      atomicAnd(wide + 1, ~(1ull << i));
      atomicXor(wide + 2, i * 0x9e3779b97f4a7c15ull);
      unsigned short* shorts = reinterpret_cast<unsigned short*>(to + 5);
      if (i == 0) atomicCAS(shorts + 1, static_cast<unsigned short>(0), static_cast<unsigned short>(77));
    })");
  Buffer<unsigned> to(16 + 64);
  Buffer<unsigned long long> wide(3);
  to.set({0, ~0u, 0, 0, 0, 0});
  wide.set({0, ~0ull, 0});
  run(program["bits"], 1, 64, to.data, wide.data);
  unsigned mixed = 0;
  unsigned long long mixed_wide = 0;
  for (unsigned i = 0; i < 64; ++i) {
    mixed ^= i * 0x9e3779b9u;
    mixed_wide ^= i * 0x9e3779b97f4a7c15ull;
  }
  const std::vector<unsigned> got = to.get();
  EXPECT_EQ(got[0], ~0u);
  EXPECT_EQ(got[1], 1u << 31);
  EXPECT_EQ(got[2], mixed);
  EXPECT_EQ(got[3], 64u % 10);
  EXPECT_EQ(got[4], 20u);  // 0, then 20 down to 0, three times and once more
  EXPECT_EQ(got[5], 77u << 16);
  EXPECT_EQ(wide.get(), (std::vector<unsigned long long>{~0ull, 0, mixed_wide}));
  std::map<unsigned, int> times;
  for (int i = 0; i < 64; ++i) ++times[got[static_cast<size_t>(16 + i)]];
  EXPECT_EQ(times.size(), 10u);
}

/// The lane that each shuffle reads.
int shuffled(const std::string& name, int lane, int by, int width) {
  const int first = lane & ~(width - 1);
  if (name == "__shfl") return first + (by & (width - 1));
  if (name == "__shfl_up") return lane - by < first ? lane : lane - by;
  if (name == "__shfl_down") return lane + by >= first + width ? lane : lane + by;
  return (lane ^ by) >= first + width ? lane : lane ^ by;
}

template <class T>
void check_shuffles(const std::string& type) {
  const int lanes = wave_size();
  for (const std::string name : {"__shfl", "__shfl_up", "__shfl_down", "__shfl_xor"}) {
    const Compiled program(
        "extern \"C\" __global__ void move(" + type + "* to, int by, int width) {" + type +
        " x = to[threadIdx.x]; to[threadIdx.x] = " + name +
        "(x, by, width); to[threadIdx.x + 64] = " + name +
        "_sync(~0ull, x, by, width); to[threadIdx.x + 128] = " + name + "(x, by); }");
    for (const int width : {2, 8, lanes}) {
      for (const int by : {0, 1, 3, 5}) {
        Buffer<T> to(192);
        std::vector<T> values(192);
        for (size_t i = 0; i < 64; ++i)
          values[i] = static_cast<T>(1.25e9 * static_cast<double>(i + 1));
        to.set(values);
        run(program["move"], 1, static_cast<unsigned>(lanes), to.data, by, width);
        const std::vector<T> got = to.get();
        for (int lane = 0; lane < lanes; ++lane) {
          const auto at = static_cast<size_t>(lane);
          const T wanted = values[static_cast<size_t>(shuffled(name, lane, by, width))];
          EXPECT_EQ(got[at], wanted)
              << name << " " << type << " " << lane << " " << by << " " << width;
          EXPECT_EQ(got[at + 64], wanted);
          EXPECT_EQ(got[at + 128], values[static_cast<size_t>(shuffled(name, lane, by, lanes))]);
        }
      }
    }
  }
}

TEST(HipRtcLanguage, Shuffles) {
  check_shuffles<unsigned>("unsigned");
  check_shuffles<double>("double");
  check_shuffles<long long>("long long");
  check_shuffles<float>("float");
}

TEST(HipRtcLanguage, Votes) {
  const Compiled program(R"(
    extern "C" __global__ void votes(const int* x, unsigned long long* to) {
      const int i = threadIdx.x, value = x[i];
      if (i == 3) return;
      unsigned long long* mine = to + 16 * i;
      mine[0] = __ballot(value > 2);
      mine[1] = __any(value > 6);
      mine[2] = __all(value >= 0);
      mine[3] = __activemask();
      mine[4] = __match_any_sync(__activemask(), value);
      mine[5] = __reduce_add_sync(__activemask(), value);
      mine[6] = __reduce_max_sync(__activemask(), value);
      mine[7] = __ballot_sync(0xff0ull, value > 2);
      mine[8] = __lane_id();
      mine[9] = __popcll(__lanemask_lt());
      int same;
      mine[10] = __match_all_sync(0x30ull, value, &same) == 0 ? same : 9;
    })");
  const int lanes = wave_size();
  Buffer<int> x(64);
  Buffer<unsigned long long> to(16 * 64);
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<size_t>(i)] = i * 5 % 8;
  x.set(values);
  run(program["votes"], 1, static_cast<unsigned>(lanes), x.data, to.data);
  unsigned long long above = 0, active = 0;
  int sum = 0;
  for (int i = 0; i < lanes; ++i) {
    if (i == 3) continue;
    active |= 1ull << i;
    if (values[static_cast<size_t>(i)] > 2) above |= 1ull << i;
    sum += values[static_cast<size_t>(i)];
  }
  const std::vector<unsigned long long> got = to.get();
  for (int i = 0; i < lanes; ++i) {
    if (i == 3) continue;
    unsigned long long same = 0;
    for (int k = 0; k < lanes; ++k) {
      if (k != 3 && values[static_cast<size_t>(k)] == values[static_cast<size_t>(i)])
        same |= 1ull << k;
    }
    const unsigned long long wanted[] = {above,
                                         1,
                                         1,
                                         active,
                                         same,
                                         static_cast<unsigned long long>(sum),
                                         7,
                                         above & 0xff0,
                                         static_cast<unsigned long long>(i),
                                         static_cast<unsigned long long>(i),
                                         0};
    for (int k = 0; k < 11; ++k)
      EXPECT_EQ(got[static_cast<size_t>(16 * i + k)], wanted[k]) << i << " " << k;
  }
}

TEST(HipRtcLanguage, BarriersThatCount) {
  const Compiled program(R"(
    extern "C" __global__ void count(int* to) {
      extern __shared__ int room[];
      room[threadIdx.x] = threadIdx.x;
      __syncthreads();
      const int other = room[blockDim.x - 1 - threadIdx.x];
      const int odd = __syncthreads_count(other % 2), all = __syncthreads_and(other >= 0),
                none = __syncthreads_or(other > 1000);
      const long long start = clock64(), wall = wall_clock64();
      __threadfence(); __threadfence_block(); __threadfence_system(); __syncwarp();
      to[threadIdx.x] = odd + 1000 * all + 10000 * none + 100000 * (clock64() >= start && wall > 0);
    })");
  Buffer<int> to(101);
  HIP_OK(launch(program["count"], 1, 101, 101 * sizeof(int), nullptr, to.data));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(to.get(), std::vector<int>(101, 50 + 1000 + 100000));
}

TEST(HipRtcLanguage, VectorTypes) {
  const Compiled program(R"(
    static_assert(sizeof(float3) == 12 && alignof(float4) == 16 && sizeof(char4) == 4 && alignof(double2) == 16, "");
    extern "C" __global__ void vectors(float4* f, int4* i, double2* d, uchar4* c, unsigned* same) {
      float4 a = f[0], b = make_float4(1, 2, 3, 4);
      f[1] = a + b; f[2] = a * 2.0f - b; f[3] = 1.0f / b; a += b; a -= 1.0f; f[4] = -a;
      int4 k = i[0];
      i[1] = (k << 2) | (k & 1); i[2] = k % 3 ^ ~k; ++k; i[3] = k++; i[4] = k;
      d[1] = d[0] * d[0] + 0.5;
      c[1] = c[0] + make_uchar4(200, 100, 50, 25);
      const float3 t = make_float3(1, 2, 3), u(1, 2, 3);
      same[0] = t == u; same[1] = t != u; same[2] = (make_int2(1, 2) == make_int2(1, 3));
      const dim3 one(7); same[3] = one.x + one.y + one.z;
      long4 wide = make_long4(1, 2, 3, 4); same[4] = static_cast<unsigned>(wide.w + wide[2]);
    })");
  Buffer<float> f(20);
  Buffer<int> i(20);
  Buffer<double> d(4);
  Buffer<unsigned char> c(8);
  Buffer<unsigned> same(5);
  f.set({10, 20, 30, 40});
  i.set({5, -6, 7, 8});
  d.set({1.5, -2.5});
  c.set({100, 200, 250, 255});
  run(program["vectors"], 1, 1, f.data, i.data, d.data, c.data, same.data);
  const std::vector<float> gf = f.get();
  const std::vector<int> gi = i.get();
  const std::vector<double> gd = d.get();
  const std::vector<unsigned char> gc = c.get();
  for (int n = 0; n < 4; ++n) {
    const auto at = static_cast<size_t>(n);
    const float a = gf[at], b = static_cast<float>(n + 1);
    EXPECT_EQ(gf[at + 4], a + b);
    EXPECT_EQ(gf[at + 8], a * 2 - b);
    EXPECT_NEAR(gf[at + 12], 1 / b, 1e-7);
    EXPECT_EQ(gf[at + 16], -(a + b - 1));
    const int k = gi[at];
    EXPECT_EQ(gi[at + 4], (k << 2) | (k & 1));
    EXPECT_EQ(gi[at + 8], (k % 3) ^ ~k);
    EXPECT_EQ(gi[at + 12], k + 1);
    EXPECT_EQ(gi[at + 16], k + 2);
    constexpr int kAdded[] = {200, 100, 50, 25};
    EXPECT_EQ(gc[at + 4], static_cast<unsigned char>(gc[at] + kAdded[n]));
  }
  EXPECT_EQ(gd[2], 1.5 * 1.5 + 0.5);
  EXPECT_EQ(gd[3], 2.5 * 2.5 + 0.5);
  EXPECT_EQ(same.get(), (std::vector<unsigned>{1, 0, 0, 9, 7}));
}

TEST(HipRtcLanguage, Integers) {
  const Compiled program(R"(
    extern "C" __global__ void integers(const unsigned* x, unsigned* to) {
      const unsigned i = threadIdx.x, a = x[i], b = x[i + 64];
      const unsigned long long w = static_cast<unsigned long long>(a) << 32 | b;
      unsigned* mine = to + 32 * i;
      mine[0] = __popc(a); mine[1] = __clz(a); mine[2] = __ffs(a); mine[3] = __brev(a);
      mine[4] = __popcll(w); mine[5] = __clzll(w); mine[6] = __ffsll(w); mine[7] = __brevll(w) >> 32;
      mine[8] = __mul24(a, b); mine[9] = __umul24(a, b); mine[10] = __mulhi(a, b); mine[11] = __umulhi(a, b);
      mine[12] = __mul64hi(w, w); mine[13] = __umul64hi(w, w);
      mine[14] = __byte_perm(a, b, 0x6142); mine[15] = __uhadd(a, b); mine[16] = __sad(a, b, 7); mine[17] = __usad(a, b, 7);
      mine[18] = __funnelshift_l(a, b, i); mine[19] = __funnelshift_r(a, b, i);
      mine[20] = __funnelshift_lc(a, b, i); mine[21] = __bitextract_u32(a, 5, 9); mine[22] = __bitinsert_u32(a, b, 3, 6);
      mine[23] = __float2int_rn(__uint_as_float(a)); mine[24] = __float2uint_rz(__uint_as_float(a));
      mine[25] = __double2hiint(__hiloint2double(a, b)); mine[26] = min(static_cast<int>(a), 5) + max(a, 9u); mine[27] = abs(static_cast<int>(a));
    })");
  Buffer<unsigned> x(128), to(32 * 64);
  std::vector<unsigned> values(128);
  uint64_t state = 7;
  for (unsigned& value : values) {
    state = state * 6364136223846793005 + 1442695040888963407;
    value = static_cast<unsigned>(state >> 33) >> (state % 29);
  }
  values[0] = 0, values[64] = 0, values[1] = ~0u, values[2] = 0x4f800000, values[3] = 0xcf800001,
  values[4] = 0x7fc00000;
  x.set(values);
  run(program["integers"], 1, 64, x.data, to.data);
  const std::vector<unsigned> got = to.get();
  const auto near = [](float v) {
    return std::isnan(v)   ? 0
           : v >= 0x1p31f  ? 0x7fffffff
           : v <= -0x1p31f ? INT32_MIN
                           : static_cast<int>(std::nearbyint(v));
  };
  const auto zero = [](float v) {
    return !(v > 0) ? 0u : v >= 0x1p32f ? ~0u : static_cast<unsigned>(v);
  };
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned a = values[i], b = values[i + 64];
    const auto sa = static_cast<int>(a), sb = static_cast<int>(b);
    const uint64_t w = uint64_t{a} << 32 | b, both = uint64_t{b} << 32 | a;
    const auto reversed = [](uint64_t v) {
      uint64_t r = 0;
      for (int k = 0; k < 64; ++k) r |= (v >> k & 1) << (63 - k);
      return r;
    };
    const uint8_t bytes[8] = {uint8_t(a), uint8_t(a >> 8), uint8_t(a >> 16), uint8_t(a >> 24),
                              uint8_t(b), uint8_t(b >> 8), uint8_t(b >> 16), uint8_t(b >> 24)};
    const unsigned wanted[] = {
        unsigned(std::popcount(a)),
        unsigned(std::countl_zero(a)),
        a == 0 ? 0 : unsigned(std::countr_zero(a)) + 1,
        unsigned(reversed(a) >> 32),
        unsigned(std::popcount(w)),
        unsigned(std::countl_zero(w)),
        w == 0 ? 0 : unsigned(std::countr_zero(w)) + 1,
        unsigned(reversed(w) >> 32),
        unsigned(int64_t{sa << 8 >> 8} * (sb << 8 >> 8)),
        unsigned(uint64_t{a & 0xffffff} * (b & 0xffffff)),
        unsigned(int64_t{sa} * sb >> 32),
        unsigned(uint64_t{a} * b >> 32),
        unsigned(static_cast<__int128>(int64_t(w)) * int64_t(w) >> 64),
        unsigned(static_cast<unsigned __int128>(w) * w >> 64),
        unsigned(bytes[2] | bytes[4] << 8 | bytes[1] << 16 | unsigned(bytes[6]) << 24),
        unsigned((uint64_t{a} + b) >> 1),
        unsigned(std::abs(int64_t{sa} - sb)) + 7,
        (a > b ? a - b : b - a) + 7,
        unsigned((both << (i & 31)) >> 32),
        unsigned(both >> (i & 31)),
        i >= 32 ? a : unsigned((both << i) >> 32),
        a >> 5 & 0x1ff,
        (a & ~(0x3fu << 3)) | (b << 3 & 0x3fu << 3),
        unsigned(near(std::bit_cast<float>(a))),
        zero(std::bit_cast<float>(a)),
        a,
        unsigned(std::min(sa, 5)) + std::max(a, 9u),
        sa < 0 ? 0 - a : a};
    for (int k = 0; k < 28; ++k)
      EXPECT_EQ(got[32 * i + static_cast<unsigned>(k)], wanted[k]) << i << " " << k;
  }
}

TEST(HipRtcLanguage, PrintsAssertsAndAllocates) {
  const Compiled program(R"(
    extern "C" __global__ void say(int limit) {
      assert(threadIdx.x < limit);
      printf("%s %u of %d\n", "thread", threadIdx.x, blockDim.x);
    }
    struct Node { Node* next; int value; };
    extern "C" __global__ void list(int count, int* sum) {
      Node* first = nullptr;
      for (int i = 0; i < count; ++i) first = new Node{first, i};
      while (first != nullptr) {
        *sum += first->value;
        Node* next = first->next;
        delete first;
        first = next;
      }
      void* block = malloc(100);
      memset(block, 1, 100);
      *sum += static_cast<char*>(block)[99];
      free(block);
      free(nullptr);
    })");
  testing::internal::CaptureStdout();
  run(program["say"], 1, 2, 2);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "thread 0 of 2\nthread 1 of 2\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(program["say"], 1, 2, 0, nullptr, 1));
  EXPECT_EQ(hipErrorLaunchFailure, hipDeviceSynchronize());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("test.hip:3: "), said.npos) << said;
  EXPECT_NE(said.find("Device-side assertion `threadIdx.x < limit' failed."), said.npos) << said;
  (void)hipGetLastError();
  Buffer<int> sum(1);
  run(program["list"], 1, 1, 20, sum.data);
  EXPECT_EQ(sum.get()[0], 190 + 1);
  const Compiled silent("extern \"C\" __global__ void k(int* x) { assert(false); *x = 3; }",
                        {"-DNDEBUG"});
  run(silent["k"], 1, 1, sum.data);
  EXPECT_EQ(sum.get()[0], 3);
}

TEST(HipRtcLanguage, HeadersHaveTheirNames) {
  const Compiled program(R"(
    #include <hip/hip_runtime.h>
    #include <hip/hip_fp16.h>
    #include <hip/hip_bf16.h>
    #include <hip/hip_bfloat16.h>
    #include <hip/hip_cooperative_groups.h>
    #include "hip/hip_vector_types.h"
    #if !defined(__HIPCC_RTC__) || !defined(__HIP_DEVICE_COMPILE__) || !defined(__HIP_PLATFORM_AMD__)
    #error "a macro of HIP is missing"
    #endif
    static_assert(std::is_same<std::enable_if<true, int>::type, int>::value, "");
    HIP_DYNAMIC_SHARED(int, room)
    extern "C" __global__ void names(uint64_t* to) {
      room[hipThreadIdx_x] = hipBlockDim_x;
      to[0] = sizeof(size_t) + sizeof(uint8_t) + room[0] + std::max(1, 2);
    })");
  Buffer<uint64_t> to(1);
  HIP_OK(launch(program["names"], 1, 1, 64, nullptr, to.data));
  EXPECT_EQ(to.get()[0], 12u);
}

TEST(HipRtcLanguage, CooperativeGroups) {
  const Compiled program(R"(
    #include <hip/hip_cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void groups(unsigned* to) {
      const cg::thread_block block = cg::this_thread_block();
      const auto tile = cg::tiled_partition<8>(block);
      unsigned sum = block.thread_rank();
      for (unsigned step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
      unsigned* mine = to + 4 * block.thread_rank();
      mine[0] = tile.shfl(sum, 0);
      mine[1] = tile.thread_rank() + 100 * tile.meta_group_rank();
      mine[2] = tile.ballot(tile.thread_rank() % 2 == 0) + 1000 * tile.any(block.thread_rank() == 9);
      if (block.thread_rank() % 3 == 0) {
        const cg::coalesced_group some = cg::coalesced_threads();
        mine[3] = some.thread_rank() + 100 * some.size();
        some.sync();
      }
      block.sync();
    }
    /// Each block adds to its neighbour's cell in the next round.
    extern "C" __global__ void rounds(unsigned* cells, int count, unsigned* valid) {
      const cg::grid_group grid = cg::this_grid();
      valid[0] = grid.is_valid();
      if (!grid.is_valid()) return;
      for (int round = 0; round < count; ++round) {
        const unsigned to = (blockIdx.x + round) % gridDim.x;
        if (threadIdx.x == 0) cells[to] = cells[to] * 3 + blockIdx.x;
        grid.sync();
      }
    })");
  Buffer<unsigned> to(4 * 32);
  run(program["groups"], 1, 32, to.data);
  const std::vector<unsigned> got = to.get();
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned first = i / 8 * 8;
    EXPECT_EQ(got[4 * i], 8 * first + 28);
    EXPECT_EQ(got[4 * i + 1], i % 8 + 100 * (i / 8));
    EXPECT_EQ(got[4 * i + 2], 0x55u + (first == 8 ? 1000 : 0));
    if (i % 3 == 0) EXPECT_EQ(got[4 * i + 3], i / 3 + 1100);
  }
  constexpr unsigned kBlocks = 12;
  constexpr int kRounds = 30;
  Buffer<unsigned> cells(kBlocks), valid(1);
  int count = kRounds;
  void* list[] = {const_cast<unsigned**>(&cells.data), &count, const_cast<unsigned**>(&valid.data)};
  HIP_OK(hipModuleLaunchCooperativeKernel(program["rounds"], kBlocks, 1, 1, 64, 1, 1, 0, nullptr,
                                          list));
  HIP_OK(hipDeviceSynchronize());
  std::vector<unsigned> wanted(kBlocks, 0);
  for (unsigned round = 0; round < kRounds; ++round) {
    for (unsigned block = 0; block < kBlocks; ++block) {
      unsigned& cell = wanted[(block + round) % kBlocks];
      cell = cell * 3 + block;
    }
  }
  EXPECT_EQ(cells.get(), wanted);
  EXPECT_EQ(valid.get()[0], 1u);
  run(program["rounds"], kBlocks, 64, cells.data, 1, valid.data);
  EXPECT_EQ(valid.get()[0], 0u);  // not a cooperative launch
}

}  // namespace
