// Attributes and numbers of streams, the processors that a stream may use, and batches of waits and
// writes.

#include "emu/hip/batch.h"

namespace emu::hip {
namespace {

/// The attributes that AMD's runtime knows of streams.
bool known(hipLaunchAttributeID attribute) {
  return attribute == hipLaunchAttributePriority ||
         attribute == hipLaunchAttributeSynchronizationPolicy;
}

constexpr unsigned kMostOperations = 256;

ValueOp value_op(const hipStreamMemOpValueParams& p, bool wide, bool write) {
  require(write ? p.flags == 0 : p.flags <= hipStreamWaitValueNor);
  check_range(p.address, wide ? 8 : 4,
              write ? "what is to be written" : "what is to be waited for");
  require(address(p.address) % (wide ? 8 : 4) == 0);
  ValueOp op;
  op.address = p.address;
  op.value = wide ? p.value : static_cast<uint32_t>(p.value);
  if (!wide) op.mask = ~uint32_t{0};
  op.condition = write ? 0 : p.flags;
  op.write = write;
  op.wide = wide;
  return op;
}

}  // namespace

std::vector<ValueOp> batch_of(const hipStreamBatchMemOpParams* list, unsigned count,
                              unsigned flags) {
  require(list != nullptr && count != 0 && count <= kMostOperations && flags == 0);
  std::vector<ValueOp> ops;
  for (unsigned i = 0; i < count; ++i) {
    switch (list[i].operation) {
      case hipStreamMemOpWaitValue32:
        ops.push_back(value_op(list[i].value, false, false));
        break;
      case hipStreamMemOpWriteValue32:
        ops.push_back(value_op(list[i].value, false, true));
        break;
      case hipStreamMemOpWaitValue64:
        ops.push_back(value_op(list[i].value, true, false));
        break;
      case hipStreamMemOpWriteValue64:
        ops.push_back(value_op(list[i].value, true, true));
        break;
      default:
        throw Error{hipErrorInvalidValue};
    }
  }
  return ops;
}

}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipStreamGetAttribute(hipStream_t handle, hipLaunchAttributeID attribute,
                                         hipLaunchAttributeValue* value) {
  EMU_CALL({
    require(value != nullptr && known(attribute));
    const StreamPtr stream = find_stream(handle);
    if (attribute == hipLaunchAttributePriority) {
      value->priority = stream->priority;
    } else {
      value->syncPolicy = static_cast<hipSynchronizationPolicy>(stream->policy.load());
    }
  });
}

// A stream's priority is set when it is created, and doesn't change.
EMU_API hipError_t hipStreamSetAttribute(hipStream_t handle, hipLaunchAttributeID attribute,
                                         const hipLaunchAttributeValue* value) {
  EMU_CALL({
    require(value != nullptr && attribute == hipLaunchAttributeSynchronizationPolicy);
    require(value->syncPolicy >= hipSyncPolicyAuto &&
            value->syncPolicy <= hipSyncPolicyBlockingSync);
    find_stream(handle)->policy = value->syncPolicy;
  });
}

EMU_API hipError_t hipStreamCopyAttributes(hipStream_t to, hipStream_t from) {
  EMU_CALL({ find_stream(to)->policy = find_stream(from)->policy.load(); });
}

EMU_API hipError_t hipStreamGetId(hipStream_t handle, unsigned long long* id) {
  EMU_CALL({
    require(id != nullptr);
    *id = find_stream(handle)->id;
  });
}

EMU_API hipError_t hipExtStreamGetCUMask(hipStream_t handle, uint32_t words, uint32_t* mask) {
  EMU_CALL({
    require(mask != nullptr);
    const StreamPtr stream = find_stream(handle);
    const auto processors = static_cast<uint32_t>(stream->device->architecture.processors);
    require(words >= (processors + 31) / 32);
    for (uint32_t word = 0; word < words; ++word) {
      const uint32_t left = processors > word * 32 ? processors - word * 32 : 0;
      const uint32_t all = left >= 32 ? ~0u : (1u << left) - 1;
      mask[word] = stream->mask.empty()         ? all
                   : word < stream->mask.size() ? all & stream->mask[word]
                                                : 0;
    }
  });
}

EMU_API hipError_t hipStreamBatchMemOp(hipStream_t handle, unsigned count,
                                       hipStreamBatchMemOpParams* list, unsigned flags) {
  EMU_CALL({
    const std::vector<ValueOp> ops = batch_of(list, count, flags);
    const StreamPtr stream = find_stream(handle);
    for (const ValueOp& op : ops) submit(*stream, op);
  });
}
