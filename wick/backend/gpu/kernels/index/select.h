#pragma once

// Ids of every type, and their checks.

#include "wick/backend/gpu/kernels/device/uniform.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"

namespace wick::gpu {

/// The value of an id, unchecked.
WICK_DEVICE i64 load_id(const Ids& ids, i64 at) {
  if (ids.type == IdType::id_u8) return static_cast<const u8*>(ids.data)[at];
  if (ids.type == IdType::id_u32) return static_cast<const u32*>(ids.data)[at];
  if (ids.type == IdType::id_i32) return static_cast<const i32*>(ids.data)[at];
  return static_cast<const i64*>(ids.data)[at];
}

/// Whether an id is its type's largest value, if the type is unsigned.
WICK_DEVICE bool is_padding(const Ids& ids, i64 id) {
  return (ids.type == IdType::id_u8 && id == 0xff) ||
         (ids.type == IdType::id_u32 && id == 0xffffffff);
}

/// The id, or −1 if it is padding or out of range. The latter is reported as a fault.
WICK_DEVICE i64 checked_id(const Ids& ids, i64 id) {
  if (is_padding(ids, id)) return -1;
  if (id >= 0 && id < ids.size) return id;
  report(ids.line, kIdOutOfRange, ids.note, id);
  return -1;
}

/// Reads an id. Returns −1 for an id that gives zeros; it is a fault unless it is the type's
/// largest value (unsigned types only).
WICK_DEVICE i64 read_id(const Ids& ids, i64 at) { return checked_id(ids, load_id(ids, at)); }

/// The values of several ids, unchecked, of which those with there[u] exist. Neighbouring lanes
/// mostly load the same ids.
template <class Id, u32 kMany>
WICK_DEVICE void load_repeated_ids(const Id* ids, const i64 (&at)[kMany],
                                   const bool (&there)[kMany], i64 (&id)[kMany]) {
  bool alike = sizeof(Id) >= 4;
#pragma unroll
  for (u32 u = 0; u < kMany; ++u) {
    const bool same = is_of_first_lane(at[u]);  // outside the condition: all lanes evaluate it
    alike = alike && there[u] && same;
  }
  if (wave_agrees(alike)) {
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) id[u] = load_uniform(ids + at[u]);
  } else {
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) {
      if (there[u]) id[u] = ids[at[u]];
    }
  }
}
template <u32 kMany>
WICK_DEVICE void load_repeated_ids(const Ids& ids, const i64 (&at)[kMany],
                                   const bool (&there)[kMany], i64 (&id)[kMany]) {
  if (ids.type == IdType::id_u8) {
    load_repeated_ids(static_cast<const u8*>(ids.data), at, there, id);
  } else if (ids.type == IdType::id_u32) {
    load_repeated_ids(static_cast<const u32*>(ids.data), at, there, id);
  } else if (ids.type == IdType::id_i32) {
    load_repeated_ids(static_cast<const i32*>(ids.data), at, there, id);
  } else {
    load_repeated_ids(static_cast<const i64*>(ids.data), at, there, id);
  }
}

/// read_id of several ids, of which those with there[u] exist.
template <u32 kMany>
WICK_DEVICE void read_ids(const Ids& ids, const i64 (&at)[kMany], const bool (&there)[kMany],
                          i64 (&id)[kMany]) {
  if constexpr (WICK_AMD) load_repeated_ids(ids, at, there, id);
#pragma unroll
  for (u32 u = 0; u < kMany; ++u) {
    if (there[u]) id[u] = checked_id(ids, WICK_AMD ? id[u] : load_id(ids, at[u]));
  }
}

/// An id as it was loaded.
struct RawId {
  u32 low, high;  ///< high: 0 unless ids have 64 bits

  WICK_DEVICE i64 value(IdType type) const {
    if (type == IdType::id_i32) return static_cast<i32>(low);
    return static_cast<i64>(low | u64{high} << 32);
  }
};

/// Loads several ids, of which those with there[u] exist. No instruction here waits for a load.
template <u32 kMany>
WICK_DEVICE void load_raw_ids(const Ids& ids, const i64 (&at)[kMany], const bool (&there)[kMany],
                              RawId (&id)[kMany]) {
#pragma unroll
  for (u32 u = 0; u < kMany; ++u) id[u] = {0, 0};
  if (ids.type == IdType::id_i64) {
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) {
      if (!there[u]) continue;
      const u64 x = static_cast<const u64*>(ids.data)[at[u]];
      id[u] = {static_cast<u32>(x), static_cast<u32>(x >> 32)};
    }
  } else if (ids.type == IdType::id_u8) {
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) {
      if (there[u]) id[u].low = static_cast<const u8*>(ids.data)[at[u]];
    }
  } else {
#pragma unroll
    for (u32 u = 0; u < kMany; ++u) {
      if (there[u]) id[u].low = static_cast<const u32*>(ids.data)[at[u]];
    }
  }
}

}  // namespace wick::gpu
