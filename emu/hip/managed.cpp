// Advice, prefetches and attachment of managed memory. No memory moves, but the settings can be
// queried.

#include <algorithm>
#include <map>

#include "emu/hip/api.h"

namespace emu::hip {
namespace {

struct Advice {
  bool read_mostly = false, coarse = false;
  int preferred = hipInvalidDeviceId, prefetched = hipInvalidDeviceId;
  std::vector<int> accessed_by;
};

/// The parts of an allocation; each extends from its key to the next key.
struct Advised {
  uint64_t serial = 0;
  std::map<uintptr_t, Advice> parts;
};

std::mutex mutex;

/// Returns the advice of an allocation, by its base address. If the base address belonged to an
/// earlier allocation, that advice is discarded.
Advised& advised(const Allocation& a) {
  static auto* all = new std::map<uintptr_t, Advised>;
  Advised& one = (*all)[a.base];
  if (one.serial != a.serial) one = {a.serial, {{a.base, {}}}};
  return one;
}

/// Returns the managed allocation that contains the whole range.
Allocation managed(const void* pointer, size_t bytes) {
  require(pointer != nullptr && bytes != 0);
  const std::optional<Allocation> a = memory().find(address(pointer));
  require(a && a->kind == MemoryKind::managed);
  require(bytes <= a->bytes - (address(pointer) - a->base));
  return *a;
}

/// Splits a part so that one begins at `at`.
std::map<uintptr_t, Advice>::iterator cut(std::map<uintptr_t, Advice>& parts, uintptr_t at) {
  const auto after = parts.upper_bound(at);
  const auto holds = std::prev(after);
  return holds->first == at ? holds : parts.emplace_hint(after, at, holds->second);
}

template <class Change>
void advise(const void* pointer, size_t bytes, const Change& change) {
  const Allocation a = managed(pointer, bytes);
  std::lock_guard lock(mutex);
  auto& parts = advised(a).parts;
  auto part = cut(parts, address(pointer));
  const uintptr_t end = address(pointer) + bytes;
  const auto last = end == a.base + a.bytes ? parts.end() : cut(parts, end);
  for (; part != last; ++part) change(part->second);
}

/// Returns the advice of each part of a range.
std::vector<Advice> advice_of(const void* pointer, size_t bytes) {
  const Allocation a = managed(pointer, bytes);
  std::lock_guard lock(mutex);
  auto& parts = advised(a).parts;
  std::vector<Advice> said;
  for (auto part = std::prev(parts.upper_bound(address(pointer)));
       part != parts.end() && part->first < address(pointer) + bytes; ++part) {
    said.push_back(part->second);
  }
  return said;
}

/// Returns the location if all parts agree on it, and "none" otherwise.
int common(const std::vector<Advice>& said, int Advice::*place) {
  const auto differs = [&](const Advice& part) { return part.*place != said.front().*place; };
  const bool same = std::none_of(said.begin(), said.end(), differs);
  return same ? said.front().*place : hipInvalidDeviceId;
}

void put_accessed_by(int* out, size_t count, const std::vector<Advice>& said) {
  std::fill_n(out, count, hipInvalidDeviceId);
  size_t found = 0;
  for (const int ordinal : said.front().accessed_by) {
    const bool all = std::all_of(said.begin(), said.end(), [&](const Advice& part) {
      return std::count(part.accessed_by.begin(), part.accessed_by.end(), ordinal) != 0;
    });
    if (all && found < count) out[found++] = ordinal;
  }
}

hipMemRangeCoherencyMode coherency(const std::vector<Advice>& said) {
  const auto coarse =
      std::count_if(said.begin(), said.end(), [](auto& part) { return part.coarse; });
  if (coarse == 0) return hipMemRangeCoherencyModeFineGrain;
  return static_cast<size_t>(coarse) == said.size() ? hipMemRangeCoherencyModeCoarseGrain
                                                    : hipMemRangeCoherencyModeIndeterminate;
}

void put_attribute(void* data, size_t bytes, hipMemRangeAttribute attribute,
                   const std::vector<Advice>& said) {
  require(data != nullptr && bytes != 0 && bytes % sizeof(int) == 0);
  int* out = static_cast<int*>(data);
  if (attribute == hipMemRangeAttributeAccessedBy) {
    return put_accessed_by(out, bytes / sizeof(int), said);
  }
  require(bytes == sizeof(int));
  switch (attribute) {
    case hipMemRangeAttributeReadMostly:
      *out = std::all_of(said.begin(), said.end(), [](auto& part) { return part.read_mostly; });
      break;
    case hipMemRangeAttributePreferredLocation:
      *out = common(said, &Advice::preferred);
      break;
    case hipMemRangeAttributeLastPrefetchLocation:
      *out = common(said, &Advice::prefetched);
      break;
    case hipMemRangeAttributeCoherencyMode:
      *out = static_cast<int>(coherency(said));
      break;
    default:
      throw Error{hipErrorInvalidValue};
  }
}

void check_place(int ordinal) {
  if (ordinal != hipCpuDeviceId) device(ordinal);
}

}  // namespace
}  // namespace emu::hip

using namespace emu;
using namespace emu::hip;

EMU_API hipError_t hipMemAdvise(const void* pointer, size_t bytes, hipMemoryAdvise advice,
                                int ordinal) {
  EMU_CALL({
    check_place(ordinal);
    require((advice >= hipMemAdviseSetReadMostly && advice <= hipMemAdviseUnsetAccessedBy) ||
            advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain);
    advise(pointer, bytes, [&](Advice& part) {
      switch (advice) {
        case hipMemAdviseSetReadMostly:
        case hipMemAdviseUnsetReadMostly:
          part.read_mostly = advice == hipMemAdviseSetReadMostly;
          break;
        case hipMemAdviseSetPreferredLocation:
          part.preferred = ordinal;
          break;
        case hipMemAdviseUnsetPreferredLocation:
          part.preferred = hipInvalidDeviceId;
          break;
        case hipMemAdviseSetAccessedBy:
        case hipMemAdviseUnsetAccessedBy:
          std::erase(part.accessed_by, ordinal);
          if (advice == hipMemAdviseSetAccessedBy) part.accessed_by.push_back(ordinal);
          break;
        case hipMemAdviseSetCoarseGrain:
        case hipMemAdviseUnsetCoarseGrain:
          part.coarse = advice == hipMemAdviseSetCoarseGrain;
          break;
      }
    });
  });
}

EMU_API hipError_t hipMemPrefetchAsync(const void* pointer, size_t bytes, int ordinal,
                                       hipStream_t stream) {
  EMU_CALL({
    check_place(ordinal);
    find_stream(stream);
    advise(pointer, bytes, [&](Advice& part) { part.prefetched = ordinal; });
  });
}

namespace {

/// Returns the ordinal of a location, which is that of the host for any of its NUMA nodes.
int ordinal_of(const hipMemLocation& location) {
  constexpr unsigned kHost = 2, kHostNumaCurrent = 4;  // values of hipMemLocationType
  if (location.type >= kHost && location.type <= kHostNumaCurrent) return hipCpuDeviceId;
  require(location.type == hipMemLocationTypeDevice);
  return location.id;
}

}  // namespace

EMU_API hipError_t hipMemAdvise_v2(const void* pointer, size_t bytes, hipMemoryAdvise advice,
                                   hipMemLocation location) {
  EMU_CALL({ return hipMemAdvise(pointer, bytes, advice, ordinal_of(location)); });
}

EMU_API hipError_t hipMemPrefetchAsync_v2(const void* pointer, size_t bytes,
                                          hipMemLocation location, unsigned flags,
                                          hipStream_t stream) {
  EMU_CALL({
    require(flags == 0);
    return hipMemPrefetchAsync(pointer, bytes, ordinal_of(location), stream);
  });
}

EMU_API hipError_t hipMemRangeGetAttribute(void* data, size_t bytes, hipMemRangeAttribute attribute,
                                           const void* pointer, size_t count) {
  EMU_CALL({ put_attribute(data, bytes, attribute, advice_of(pointer, count)); });
}

EMU_API hipError_t hipMemRangeGetAttributes(void** data, size_t* bytes,
                                            hipMemRangeAttribute* attributes, size_t number,
                                            const void* pointer, size_t count) {
  EMU_CALL({
    require(data != nullptr && bytes != nullptr && attributes != nullptr && number != 0);
    const std::vector<Advice> said = advice_of(pointer, count);
    for (size_t i = 0; i < number; ++i) put_attribute(data[i], bytes[i], attributes[i], said);
  });
}

EMU_API hipError_t hipStreamAttachMemAsync(hipStream_t stream, void* pointer, size_t bytes,
                                           unsigned flags) {
  EMU_CALL({
    find_stream(stream);
    require(flags == hipMemAttachGlobal || flags == hipMemAttachHost ||
            flags == hipMemAttachSingle);
    const Allocation a = managed(pointer, 1);
    require(bytes == 0 || (a.base == address(pointer) && a.bytes == bytes));
  });
}
