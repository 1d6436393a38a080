#pragma once

#include "wick/backend/gpu/kernels/device/device.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"

namespace wick::gpu {

/// Reads an id. Returns −1 for an id that gives zeros; it is a fault unless it is the type's
/// largest value (unsigned types only).
WICK_DEVICE i64 read_id(const Ids& ids, i64 at) {
  i64 id;
  bool zeros = false;
  if (ids.type == IdType::id_u8) {
    const u8 x = static_cast<const u8*>(ids.data)[at];
    id = x;
    zeros = x == 0xff;
  } else if (ids.type == IdType::id_u32) {
    const u32 x = static_cast<const u32*>(ids.data)[at];
    id = x;
    zeros = x == ~u32{0};
  } else if (ids.type == IdType::id_i32) {
    id = static_cast<const i32*>(ids.data)[at];
  } else {
    id = static_cast<const i64*>(ids.data)[at];
  }
  if (zeros) return -1;
  if (id >= 0 && id < ids.size) return id;
  report(ids.line, kIdOutOfRange, ids.note, id);
  return -1;
}

}  // namespace wick::gpu
