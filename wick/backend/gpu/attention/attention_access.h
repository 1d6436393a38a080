#pragma once

// The layouts of keys and values that attention kernels take. Nothing here needs a device.

#include "wick/backend/gpu/kernels/attention/attention_abi.h"
#include "wick/base/dtype.h"

namespace wick::gpu {

/// Whether decode.gpu takes a call with keys and values of this dtype: neighbouring keys of one
/// element, and neighbouring elements of one value, are aligned pairs, and a chunk lies within 4
/// GiB above its first element.
bool takes_decode_layout(const AttentionCall& c, DType cache);
/// Whether keys and values of such a call are also aligned to 16 bytes, as decode.gpu needs for
/// copies to shared memory.
bool takes_staged_layout(const AttentionCall& c, DType cache);
/// Whether decode_rows.gpu takes such a call: the elements of a key, and of a value, are contiguous
/// and consist of whole, aligned vectors of 16 bytes.
bool takes_rows_layout(const AttentionCall& c, DType cache);
/// Whether flash.gpu can copy tiles of keys and values of a 16-bit dtype: rows of d or of
/// neighbouring keys, and rows of e, in vectors of 16 bytes.
bool takes_flash_layout(const AttentionCall& c, DType cache);

}  // namespace wick::gpu
