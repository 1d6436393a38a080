// Conversions between types.

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

u32 both(u32 lo, u32 hi) { return (lo & 0xffff) | hi << 16; }

/// Maps [-1, 1] or [0, 1] to the whole range of T, rounded to nearest even.
template <class T>
T normalised(double x) {
  if (x != x) return 0;
  const double limit = std::numeric_limits<T>::max();
  const double least = std::numeric_limits<T>::min() == 0 ? 0.0 : -1.0;
  return static_cast<T>(std::nearbyint(std::clamp(x, least, 1.0) * limit));
}

template <class T>
void add_packing(Table& t, const char* name) {
  t.op(std::string("v_cvt_pk_norm_") + name + "_f32", [](float a, float b) {
    return both(static_cast<u16>(normalised<T>(a)), static_cast<u16>(normalised<T>(b)));
  });
  t.op(std::string("v_cvt_pk_norm_") + name + "_f16", [](half a, half b) {
    return both(static_cast<u16>(normalised<T>(static_cast<double>(a))),
                static_cast<u16>(normalised<T>(static_cast<double>(b))));
  });
  t.op(std::string("v_cvt_pk_") + name + "_f32", [](float a, float b) {
    return both(static_cast<u16>(to_integer<T>(a)), static_cast<u16>(to_integer<T>(b)));
  });
  t.op(std::string("v_cvt_norm_") + name + "_f16",
       [](half a) { return normalised<T>(static_cast<double>(a)); });
}

}  // namespace

void add_convert(Table& t) {
  t.op("v_cvt_f32_i32", [](i32 a) { return static_cast<float>(a); });
  t.op("v_cvt_f32_u32", [](u32 a) { return static_cast<float>(a); });
  t.op("v_cvt_i32_f32", [](float a) { return to_integer<i32>(a); });
  t.op("v_cvt_u32_f32", [](float a) { return to_integer<u32>(a); });
  t.op("v_cvt_f16_f32", [](float a) { return half_nearest(a); });
  t.op("v_cvt_f32_f16", [](half a) { return static_cast<float>(static_cast<double>(a)); });
  t.op("v_cvt_f32_f64", [](double a) { return static_cast<float>(a); });
  t.op("v_cvt_f64_f32", [](float a) { return static_cast<double>(a); });
  t.op("v_cvt_f64_i32", [](i32 a) { return static_cast<double>(a); });
  t.op("v_cvt_f64_u32", [](u32 a) { return static_cast<double>(a); });
  t.op("v_cvt_i32_f64", [](double a) { return to_integer<i32>(a); });
  t.op("v_cvt_u32_f64", [](double a) { return to_integer<u32>(a); });
  t.op("v_cvt_f16_i16", [](i16 a) { return half_nearest(a); });
  t.op("v_cvt_f16_u16", [](u16 a) { return half_nearest(a); });
  t.op("v_cvt_i16_f16", [](half a) { return to_integer<i16>(static_cast<double>(a)); });
  t.op("v_cvt_u16_f16", [](half a) { return to_integer<u16>(static_cast<double>(a)); });
  t.op("v_cvt_i32_i16", [](i16 a) { return i32{a}; });
  t.op("v_cvt_u32_u16", [](u16 a) { return u32{a}; });
  t.op("v_cvt_f32_ubyte0", [](u32 a) { return static_cast<float>(a & 255); });
  t.op("v_cvt_f32_ubyte1", [](u32 a) { return static_cast<float>(a >> 8 & 255); });
  t.op("v_cvt_f32_ubyte2", [](u32 a) { return static_cast<float>(a >> 16 & 255); });
  t.op("v_cvt_f32_ubyte3", [](u32 a) { return static_cast<float>(a >> 24); });
  t.op("v_cvt_nearest_i32_f32", [](float a) { return to_integer<i32>(std::floor(a + 0.5f)); });
  t.op("v_cvt_floor_i32_f32", [](float a) { return to_integer<i32>(std::floor(a)); });
  t.op("v_cvt_off_f32_i4", [](u32 a) {
    const int n = static_cast<int>(a & 15);
    return static_cast<float>(n < 8 ? n : n - 16) / 16;
  });
  t.op("v_cvt_pk_rtz_f16_f32", [](float a, float b) {
    return Pk<half>{half_towards_zero(a), half_towards_zero(b)};
  });
  t.op("v_cvt_pk_u16_u32",
       [](u32 a, u32 b) { return both(std::min(a, 65535u), std::min(b, 65535u)); });
  t.op("v_cvt_pk_i16_i32", [](i32 a, i32 b) {
    return both(static_cast<u16>(saturate<i16>(a)), static_cast<u16>(saturate<i16>(b)));
  });
  t.op("v_cvt_pk_u8_f32", [](float a, u32 at, u32 old) {
    const u32 shift = 8 * (at & 3);
    const u32 byte =
        a != a ? 0 : static_cast<u32>(std::clamp(std::nearbyint(double{a}), 0.0, 255.0));
    return (old & ~(255u << shift)) | byte << shift;
  });
  t.op("v_sat_pk_u8_i16", [](u32 a) {
    const auto lo = saturate<u8>(static_cast<i16>(a)), hi = saturate<u8>(static_cast<i16>(a >> 16));
    return static_cast<u16>(lo | hi << 8);
  });
  add_packing<i16>(t, "i16");
  add_packing<u16>(t, "u16");
}

}  // namespace emu::test
