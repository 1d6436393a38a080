// gfx12: the layout of its matrix instructions, its waits and barriers, scalar floats, and names
// that it gives to instructions of older families.

#include <gtest/gtest.h>

#include <cmath>

#include "emu/tests/float8.h"
#include "emu/tests/names.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr int kA = 10, kB = 20, kC = 30, kD = 50;

// ---- Matrix instructions. Sums are exact, since their order is unspecified.

enum class In { f16, bf16, i8, i4, fp8, bf8 };
enum class Out { f32, f16, bf16, i32 };

struct Shape {
  const char* name;
  In in;
  Out out;
  int depth;
  In in_b = in;
};

constexpr Shape kShapes[] = {
    {"v_wmma_f32_16x16x16_f16", In::f16, Out::f32, 16},
    {"v_wmma_f32_16x16x16_bf16", In::bf16, Out::f32, 16},
    {"v_wmma_f16_16x16x16_f16", In::f16, Out::f16, 16},
    {"v_wmma_bf16_16x16x16_bf16", In::bf16, Out::bf16, 16},
    {"v_wmma_i32_16x16x16_iu8", In::i8, Out::i32, 16},
    {"v_wmma_i32_16x16x16_iu4", In::i4, Out::i32, 16},
    {"v_wmma_i32_16x16x32_iu4", In::i4, Out::i32, 32},
    {"v_wmma_f32_16x16x16_fp8_fp8", In::fp8, Out::f32, 16},
    {"v_wmma_f32_16x16x16_fp8_bf8", In::fp8, Out::f32, 16, In::bf8},
    {"v_wmma_f32_16x16x16_bf8_fp8", In::bf8, Out::f32, 16, In::fp8},
    {"v_wmma_f32_16x16x16_bf8_bf8", In::bf8, Out::f32, 16},
};

/// Sparse ones. Of the depth, A has at most two of four consecutive elements that aren't zero.
constexpr Shape kSparse[] = {
    {"v_swmmac_f32_16x16x32_f16", In::f16, Out::f32, 32},
    {"v_swmmac_f32_16x16x32_bf16", In::bf16, Out::f32, 32},
    {"v_swmmac_f16_16x16x32_f16", In::f16, Out::f16, 32},
    {"v_swmmac_bf16_16x16x32_bf16", In::bf16, Out::bf16, 32},
    {"v_swmmac_i32_16x16x32_iu8", In::i8, Out::i32, 32},
    {"v_swmmac_i32_16x16x32_iu4", In::i4, Out::i32, 32},
    {"v_swmmac_i32_16x16x64_iu4", In::i4, Out::i32, 64},
    {"v_swmmac_f32_16x16x32_fp8_fp8", In::fp8, Out::f32, 32},
    {"v_swmmac_f32_16x16x32_fp8_bf8", In::fp8, Out::f32, 32, In::bf8},
    {"v_swmmac_f32_16x16x32_bf8_fp8", In::bf8, Out::f32, 32, In::fp8},
    {"v_swmmac_f32_16x16x32_bf8_bf8", In::bf8, Out::f32, 32},
};

int bits_of(In in) {
  return in == In::i8 || in == In::fp8 || in == In::bf8 ? 8 : in == In::i4 ? 4 : 16;
}
bool is_packed(Out out) { return out == Out::f16 || out == Out::bf16; }

u32 encoded(In in, double x) {
  const auto f = static_cast<float>(x);
  if (in == In::fp8) return kFp8Ocp.byte_of(x);
  if (in == In::bf8) return kBf8Ocp.byte_of(x);
  if (in == In::f16) return static_cast<u32>(to_bits(static_cast<half>(f)));
  if (in == In::bf16) return static_cast<u32>(to_bits(f) >> 16);
  return static_cast<u32>(static_cast<i32>(x)) & (in == In::i8 ? 255 : 15);
}

u32 encoded(Out out, double x) {
  const auto f = static_cast<float>(x);
  if (out == Out::i32) return static_cast<u32>(static_cast<i64>(x));
  if (out == Out::f16) return static_cast<u32>(to_bits(static_cast<half>(f)));
  return out == Out::bf16 ? static_cast<u32>(to_bits(f) >> 16) : static_cast<u32>(to_bits(f));
}

/// Values whose sums are exact, in bf16 too. Integers are signed.
double some(In in, Random& random) {
  if (in == In::i8) return static_cast<double>(random.below(256)) - 128;
  if (in == In::i4) return static_cast<double>(random.below(16)) - 8;
  return in == In::bf16 ? static_cast<double>(random.below(3)) - 1
                        : (static_cast<double>(random.below(17)) - 8) / 4;
}

struct Matrices {
  Matrices(const Shape& s, Random& random) {
    for (auto* m : {&a, &b}) {
      for (auto& row : *m) {
        for (double& x : row) x = some(s.in, random);
      }
    }
    for (auto& row : c) {
      for (double& x : row) x = some(s.in, random);
    }
  }
  double a[16][32], b[16][32], c[16][16];  // rows of A, columns of B, rows of C
};

/// A row of A or column of B lies in the lanes with that number modulo 16. Each of the wave's rows
/// of lanes holds consecutive k.
void put_source(const Shape& s, In in, const double (&m)[16][32], State& state, int reg,
                int lanes) {
  const int each = s.depth / (lanes / 16), bits = bits_of(in);
  for (int i = 0; i < each * bits / 32; ++i) state.v[static_cast<size_t>(reg + i)].fill(0);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < each; ++i) {
      const u32 value = encoded(in, m[lane % 16][lane / 16 * each + i]);
      state.v[static_cast<size_t>(reg + i * bits / 32)][static_cast<size_t>(lane)] |=
          value << (i * bits % 32);
    }
  }
}

/// Calls each(row, column, register, lane, shift) for the elements of C or D. Lanes hold columns.
/// In a wave of 32, lanes from 16 on hold the rows from 8 on. A wave of 64 holds the upper four of
/// a lane's eight rows in its lanes from 32 on.
template <class Each>
void for_results(const Shape& s, int lanes, const Each& each) {
  const int rows = 16 / (lanes / 16);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < rows; ++i) {
      const int reg = is_packed(s.out) ? i / 2 : i, shift = is_packed(s.out) ? i % 2 * 16 : 0;
      const int block = lane / 16,
                first = lanes == 64 ? 8 * (block & 1) + 4 * (block >> 1) : 8 * block;
      each(first + i, lane % 16, static_cast<size_t>(reg), static_cast<size_t>(lane), shift);
    }
  }
}

void check_matrix(const Hand::Run& run, const Shape& s, u64 seed) {
  const int lanes = run.batch.target().lanes();
  Random random(seed);
  const Matrices m(s, random);
  State state = random_state(run.batch.target(), seed);
  put_source(s, s.in, m.a, state, kA, lanes);
  put_source(s, s.in_b, m.b, state, kB, lanes);
  const auto put = [&](State& to, size_t reg, size_t lane, int shift, double x) {
    const u32 mask = (is_packed(s.out) ? 0xffffu : ~0u) << shift;
    u32& dword = to.v[reg][lane];
    dword = (dword & ~mask) | (encoded(s.out, x) << shift & mask);
  };
  for_results(s, lanes, [&](int row, int column, size_t reg, size_t lane, int shift) {
    put(state, kC + reg, lane, shift, m.c[row][column]);
  });
  State want = state;
  for_results(s, lanes, [&](int row, int column, size_t reg, size_t lane, int shift) {
    double sum = m.c[row][column];
    for (int k = 0; k < s.depth; ++k) sum += m.a[row][k] * m.b[column][k];
    put(want, kD + reg, lane, shift, sum);
  });
  if (!run(state)) return;
  for (size_t reg = 0; reg < want.v.size(); ++reg) {
    ASSERT_EQ(state.v[reg], want.v[reg]) << run.batch.text(run.id) << ": register " << reg;
  }
}

void add_matrices(const Target& target) {
  Hand hand("Gfx12Matrix", target);
  const int lanes = hand.target().lanes();
  for (const Shape& s : kShapes) {
    const int bits = s.depth * bits_of(s.in) * 16 / lanes, source = bits / 32;
    if (bits < 32) continue;  // half a register
    const int result = 256 / lanes / (is_packed(s.out) ? 2 : 1);
    const bool is_integer = s.out == Out::i32;
    hand.add(s.name,
             std::string(s.name) + " " + range(kD, result) + ", " + range(kA, source) + ", " +
                 range(kB, source) + ", " + range(kC, result) +
                 (is_integer ? " neg_lo:[1,1,0]" : ""),
             {s.name}, [&s](const Hand::Run& run) {
               for (u64 seed = 1; seed <= 4; ++seed) check_matrix(run, s, seed);
             });
  }
}

// ---- Sparse ones.

struct SparseCase {
  const Shape& s;
  int lanes, set;  // `set`: which set of indices of the register the instruction uses
  int groups() const { return lanes / 16; }
  int each() const { return s.depth / 2 / groups(); }  // elements of A in a lane
};

void put_element(State& state, int reg, int lane, int index, int bits, u32 value) {
  const int bit = index * bits;
  u32& dword = state.v[static_cast<size_t>(reg + bit / 32)][static_cast<size_t>(lane)];
  const u32 mask = ((1u << bits) - 1) << (bit % 32);
  dword = (dword & ~mask) | (value << (bit % 32) & mask);
}

/// Fills the registers of A, B and the indices. Returns the products, without D.
std::vector<double> put_sparse(const SparseCase& c, State& state, Random& random) {
  std::vector<double> product(256, 0.0);
  const int each = c.each();
  for (int group = 0; group < c.groups(); ++group) {
    double b[64][16];
    for (int column = 0; column < 16; ++column) {
      for (int k = 0; k < 2 * each; ++k) {
        b[k][column] = some(c.s.in_b, random);
        put_element(state, kB, 16 * group + column, k, bits_of(c.s.in_b),
                    encoded(c.s.in_b, b[k][column]));
      }
    }
    for (int row = 0; row < 16; ++row) {
      const int lane = 16 * group + row;
      for (int i = 0; i < each; ++i) {
        // The second of a pair lies above the first one.
        const u32 place = i % 2 == 0 ? random.below(3) : 3;
        put_element(state, 60, lane, c.set * each + i, 2, place);
        const double x = some(c.s.in, random);
        put_element(state, kA, lane, i, bits_of(c.s.in), encoded(c.s.in, x));
        const int k = i / 2 * 4 + static_cast<int>(place);
        for (int column = 0; column < 16; ++column) {
          product[static_cast<size_t>(16 * row + column)] += x * b[k][column];
        }
      }
    }
  }
  return product;
}

void check_sparse(const Hand::Run& run, const SparseCase& c, u64 seed) {
  Random random(seed);
  State state = random_state(run.batch.target(), seed);
  const std::vector<double> product = put_sparse(c, state, random);
  const u32 mask = is_packed(c.s.out) ? 0xffff : ~0u;
  State want = state;
  for_results(c.s, c.lanes, [&](int row, int column, size_t reg, size_t lane, int shift) {
    const double old = some(c.s.in, random);
    u32 &before = state.v[kD + reg][lane], &after = want.v[kD + reg][lane];
    before = (before & ~(mask << shift)) | encoded(c.s.out, old) << shift;
    const double sum = old + product[static_cast<size_t>(16 * row + column)];
    after = (after & ~(mask << shift)) | encoded(c.s.out, sum) << shift;
  });
  if (!run(state)) return;
  for (size_t reg = 0; reg < want.v.size(); ++reg) {
    ASSERT_EQ(state.v[reg], want.v[reg]) << run.batch.text(run.id) << ": register " << reg;
  }
}

void add_sparse(const Target& target) {
  Hand hand("Gfx12Sparse", target);
  const int lanes = hand.target().lanes();
  for (const Shape& s : kSparse) {
    const int elements = s.depth / 2 * 16 / lanes, bits = elements * bits_of(s.in);
    if (bits < 32) continue;  // half a register
    const int result = 256 / lanes / (is_packed(s.out) ? 2 : 1);
    for (int set = 0; set < 32 / (2 * elements); ++set) {
      const std::string text = std::string(s.name) + " " + range(kD, result) + ", " +
                               range(kA, bits / 32) + ", " + range(kB, bits / 16) + ", v60" +
                               (set != 0 ? " index_key:" + std::to_string(set) : "") +
                               (s.out == Out::i32 ? " neg_lo:[1,1,0]" : "");
      hand.add(s.name + std::string("_") + std::to_string(set), text, {s.name},
               [&s, lanes, set](const Hand::Run& run) {
                 for (u64 seed = 1; seed <= 4; ++seed) check_sparse(run, {s, lanes, set}, seed);
               });
    }
  }
}

// ---- Other instructions.

void add_scalar(Hand& hand, const std::string& name, const std::string& operands,
                std::vector<u32> sources, u32 want) {
  hand.add(name + operands, name + operands, {name}, [=](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 1);
    state.scc = 0;
    for (size_t i = 0; i < sources.size(); ++i) state.s[10 + i] = sources[i];
    if (run(state)) EXPECT_EQ(name.starts_with("s_cmp") ? state.scc : state.s[40], want);
  });
}

u32 real(float x) { return static_cast<u32>(to_bits(x)); }

void add_scalars(Hand& hand) {
  add_scalar(hand, "s_add_f32", " s40, s10, s11", {real(1.5f), real(2.25f)}, real(3.75f));
  add_scalar(hand, "s_sub_f32", " s40, s10, s11", {real(1.5f), real(2.25f)}, real(-0.75f));
  add_scalar(hand, "s_mul_f32", " s40, s10, s11", {real(1.5f), real(-2.5f)}, real(-3.75f));
  add_scalar(hand, "s_fmaak_f32", " s40, s10, s11, 0x40400000", {real(1.5f), real(-2.5f)},
             real(-0.75f));
  add_scalar(hand, "s_fmamk_f32", " s40, s10, 0x40400000, s11", {real(1.5f), real(-2.5f)}, real(2));
  add_scalar(hand, "v_s_rcp_f32", " s40, s10", {real(-4)}, real(-0.25f));
  add_scalar(hand, "v_s_rsq_f32", " s40, s10", {real(16)}, real(0.25f));
  add_scalar(hand, "v_s_sqrt_f32", " s40, s10", {real(16)}, real(4));
  add_scalar(hand, "v_s_exp_f32", " s40, s10", {real(-2)}, real(0.25f));
  add_scalar(hand, "v_s_log_f32", " s40, s10", {real(8)}, real(3));
  hand.add("s_fmac_f32", "s_fmac_f32 s40, s10, s11", {"s_fmac_f32"}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 5);
    state.s[10] = real(1.5f);
    state.s[11] = real(-2.5f);
    state.s[40] = real(4);
    if (run(state)) EXPECT_EQ(state.s[40], real(0.25f));
  });
  add_scalar(hand, "s_cvt_f32_i32", " s40, s10", {0xffffff9c}, real(-100));
  add_scalar(hand, "s_cvt_f32_u32", " s40, s10", {0xffffff9c}, real(4294967196.0f));
  add_scalar(hand, "s_cvt_i32_f32", " s40, s10", {real(-7.9f)}, 0xfffffff9);
  add_scalar(hand, "s_cvt_i32_f32", " s40, s10 ", {real(3e9f)}, 0x7fffffff);
  add_scalar(hand, "s_cvt_u32_f32", " s40, s10", {real(-7.9f)}, 0);
  add_scalar(hand, "s_cvt_u32_f32", " s40, s10 ", {0x7fc00000}, 0);
  add_scalar(hand, "s_floor_f32", " s40, s10", {real(-1.5f)}, real(-2));
  add_scalar(hand, "s_ceil_f32", " s40, s10", {real(-1.5f)}, real(-1));
  add_scalar(hand, "s_trunc_f32", " s40, s10", {real(-1.5f)}, real(-1));
  const u32 nan = 0x7fc00000;
  struct Case {
    const char* name;
    u32 less, equal, more, unordered;
  };
  for (const Case& c :
       {Case{"lt", 1, 0, 0, 0}, Case{"eq", 0, 1, 0, 0}, Case{"le", 1, 1, 0, 0},
        Case{"gt", 0, 0, 1, 0}, Case{"lg", 1, 0, 1, 0}, Case{"ge", 0, 1, 1, 0},
        Case{"neq", 1, 0, 1, 1}, Case{"nlt", 0, 1, 1, 1}, Case{"ngt", 1, 1, 0, 1}}) {
    const std::string name = std::string("s_cmp_") + c.name + "_f32";
    add_scalar(hand, name, " s10, s11", {real(1), real(2)}, c.less);
    add_scalar(hand, name, " s10, s11 ", {real(2), real(2)}, c.equal);
    add_scalar(hand, name, " s10, s11  ", {real(3), real(2)}, c.more);
    add_scalar(hand, name, " s10, s11   ", {nan, real(2)}, c.unordered);
  }
  add_scalar(hand, "s_add_co_u32", " s40, s10, s11", {7, 9}, 16);
  add_scalar(hand, "s_sub_co_u32", " s40, s10, s11", {7, 9}, 0xfffffffe);
  add_scalar(hand, "s_add_co_i32", " s40, s10, s11", {7, 9}, 16);
  add_scalar(hand, "s_sub_co_i32", " s40, s10, s11", {7, 9}, 0xfffffffe);
  hand.add("s_add_nc_u64", "s_add_nc_u64 s[40:41], s[10:11], s[12:13]", {"s_add_nc_u64"},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             const u64 want = state.s64(10) + state.s64(12);
             if (run(state)) EXPECT_EQ(state.s64(40), want);
           });
  hand.add("s_mul_u64", "s_mul_u64 s[40:41], s[10:11], s[12:13]", {"s_mul_u64"},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             const u64 want = state.s64(10) * state.s64(12);
             if (run(state)) EXPECT_EQ(state.s64(40), want);
           });
  for (const u32 carry : {0u, 1u}) {
    hand.add("s_add_co_ci_u32_" + std::to_string(carry), "s_add_co_ci_u32 s40, s10, s11",
             {"s_add_co_ci_u32"}, [carry](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 2);
               state.scc = carry;
               state.s[10] = 0xffffffff;
               state.s[11] = 5;
               if (!run(state)) return;
               EXPECT_EQ(state.s[40], 4 + carry);
               EXPECT_EQ(state.scc, 1u);
             });
  }
}

void add_waits(Hand& hand) {
  for (const char* text :
       {"s_wait_loadcnt 0x0", "s_wait_dscnt 0x0", "s_wait_kmcnt 0x0", "s_wait_loadcnt_dscnt 0x0",
        "s_wait_storecnt 0x0", "s_wait_storecnt_dscnt 0x0", "s_wait_samplecnt 0x0",
        "s_wait_bvhcnt 0x0", "s_wait_expcnt 0x0", "s_wait_alu 0xfffe", "global_inv scope:SCOPE_SYS",
        "global_wb scope:SCOPE_SYS", "global_wbinv scope:SCOPE_SYS", "s_barrier_signal -1"}) {
    const std::string line = text;
    hand.add(line, line + "\nv_mov_b32 v40, v12", {line.substr(0, line.find(' '))},
             [](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 3);
               const State before = state;
               if (!run(state)) return;
               EXPECT_EQ(state.v[40], before.v[12]);
               for (size_t i = 0; i < 106; ++i) EXPECT_EQ(state.s[i], before.s[i]) << i;
             });
  }
}

/// Minimum and maximum: of numbers they ignore NaN, and otherwise they return it. Both order zeros.
void add_extremes(Hand& hand) {
  struct Case {
    float a, b, least, most;
  };
  const float nan = std::nanf("");
  for (const bool numbers : {true, false}) {
    for (const bool most : {false, true}) {
      const std::string name =
          std::string("v_") + (most ? "max" : "min") + (numbers ? "_num_f32" : "imum_f32");
      hand.add(name, name + " v40, v10, v11", {name}, [=](const Hand::Run& run) {
        const float missing = numbers ? 3 : nan;
        for (const Case& c : {Case{1, 2, 1, 2}, Case{-5, 2, -5, 2}, Case{0.0f, -0.0f, -0.0f, 0.0f},
                              Case{nan, 3, missing, missing}, Case{3, nan, missing, missing},
                              Case{nan, nan, nan, nan}}) {
          State state = random_state(run.batch.target(), 4);
          state.mode = 0x1f0;  // gfx12 has no IEEE bit
          state.v[10].fill(real(c.a));
          state.v[11].fill(real(c.b));
          if (!run(state)) return;
          const float want = most ? c.most : c.least, got = from_bits<float>(state.v[40][7]);
          if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(got)) << c.a << " " << c.b;
          } else {
            EXPECT_EQ(real(got), real(want)) << c.a << " " << c.b;
          }
        }
      });
    }
  }
}

/// Loads into scalar registers that older families lack.
void add_loads(Hand& hand) {
  struct Case {
    const char *name, *to, *offset;
    std::vector<u32> want;
  };
  for (const Case& c :
       {Case{"s_load_u8", "s40", "0x5", {0xf1}}, Case{"s_load_i8", "s40", "0x5", {0xfffffff1}},
        Case{"s_load_u16", "s40", "0x6", {0xf3f2}}, Case{"s_load_i16", "s40", "0x6", {0xfffff3f2}},
        Case{"s_load_b96", "s[40:42]", "0x4", {0xf3f2f1f0, 0x17161514, 0x1b1a1918}}}) {
    const std::string text =
        c.name + std::string(" ") + c.to + ", s[10:11], " + c.offset + "\ns_wait_kmcnt 0x0";
    hand.add(c.name, text, {c.name}, [c](const Hand::Run& run) {
      alignas(64) const u32 memory[] = {0x03020100, 0xf3f2f1f0, 0x17161514, 0x1b1a1918};
      State state = random_state(run.batch.target(), 8);
      state.set_s64(10, reinterpret_cast<u64>(memory));
      const State before = state;
      if (!run(state)) return;
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(state.s[40 + i], i < c.want.size() ? c.want[i] : before.s[40 + i]) << i;
      }
    });
  }
}

/// Instructions that have another name on older families: one result each of their rows.
void add_renamed(Hand& hand) {
  struct Case {
    const char *name, *operands;
    std::vector<float> sources;
    float want;
  };
  for (const Case& c : {Case{"v_med3_num_f32", " v40, v10, v11, v12", {3, 1, 2}, 2},
                        Case{"v_minmax_num_f32", " v40, v10, v11, v12", {5, 3, 4}, 4},
                        Case{"v_maxmin_num_f32", " v40, v10, v11, v12", {5, 3, 4}, 4},
                        Case{"v_min3_num_f32", " v40, v10, v11, v12", {5, 3, 4}, 3},
                        Case{"v_max3_num_f32", " v40, v10, v11, v12", {5, 3, 4}, 5}}) {
    hand.add(c.name, c.name + std::string(c.operands), {c.name}, [c](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 6);
      for (size_t i = 0; i < c.sources.size(); ++i) state.v[10 + i].fill(real(c.sources[i]));
      if (run(state)) EXPECT_EQ(state.v[40][9], real(c.want));
    });
  }
  for (const bool most : {false, true}) {
    const std::string wide = most ? "v_max_num_f64" : "v_min_num_f64";
    hand.add(wide, wide + " v[40:41], v[10:11], v[12:13]", {wide}, [most](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 6);
      for (int lane = 0; lane < 32; ++lane) {
        state.set_v64(10, lane, static_cast<u64>(to_bits(2.5)));
        state.set_v64(12, lane, static_cast<u64>(to_bits(-7.0)));
      }
      if (run(state)) EXPECT_EQ(state.v64(40, 9), static_cast<u64>(to_bits(most ? 2.5 : -7.0)));
    });
    const std::string packed = most ? "v_pk_max_num_f16" : "v_pk_min_num_f16";
    hand.add(packed, packed + " v40, v10, v11", {packed}, [most](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 6);
      state.v[10].fill(0x3c00'4000);  // 1, 2
      state.v[11].fill(0x4200'bc00);  // 3, -1
      if (run(state)) EXPECT_EQ(state.v[40][9], most ? 0x4200'4000u : 0x3c00'bc00u);
    });
  }
  for (const bool with_sign : {false, true}) {
    const std::string name = with_sign ? "v_mad_co_i64_i32" : "v_mad_co_u64_u32";
    hand.add(name, name + " v[40:41], vcc_lo, v10, v11, v[12:13]", {name},
             [with_sign](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 7);
               const State before = state;
               if (!run(state)) return;
               for (int lane = 0; lane < 32; ++lane) {
                 const auto at = static_cast<size_t>(lane);
                 const u32 a = before.v[10][at], b = before.v[11][at];
                 const u64 product =
                     with_sign ? static_cast<u64>(i64{static_cast<i32>(a)} * static_cast<i32>(b))
                               : u64{a} * b;
                 ASSERT_EQ(state.v64(40, lane), product + before.v64(12, lane)) << lane;
               }
             });
  }
}

void add_others(const Target& target) {
  Hand hand("Gfx12", target);
  add_scalars(hand);
  add_waits(hand);
  add_extremes(hand);
  add_loads(hand);
  add_renamed(hand);
  hand.add("s_barrier_wait",
           "s_mov_b32 s40, 1\ns_barrier_signal -1\ns_barrier_wait -1\ns_add_co_i32 s40, s40, 2",
           {"s_barrier_signal", "s_barrier_wait"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 9);
             if (run(state)) EXPECT_EQ(state.s[40], 3u);
           });
  // Named barriers would need a barrier of their own each: s_barrier_signal 3, s_barrier_signal m0,
  // s_barrier_wait 3.
  for (const char* word : {"0xbe804e83", "0xbe804e7d", "0xbf940003"}) {
    hand.add(std::string("named_barrier_") + word, std::string(".long ") + word, {},
             [](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 10);
               const Outcome outcome = run.batch.run(run.id, state);
               EXPECT_EQ(outcome.ran, Ran::missing);
               EXPECT_NE(outcome.message.find("a named barrier"), std::string::npos)
                   << outcome.message;
             });
  }
}

}  // namespace

void register_gfx12() {
  for (const Target& target : all_targets()) {
    if (generation(target) != 12) continue;
    add_matrices(target);
    add_sparse(target);
    if (target.wave64) continue;
    add_gfx12_floats(target);
    add_others(target);
  }
  // RDNA 3.5 has the scalar floats.
  const Target rdna35{"gfx1151", false};
  add_gfx12_floats(rdna35);
  Hand hand("Gfx12", rdna35);
  add_scalars(hand);
}

}  // namespace emu::test
