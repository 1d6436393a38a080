#include "wick/backend/cpu/move/strided.h"

namespace wick::cpu {
namespace {

template <class T>
void gather_elems(char* to, const char* from, int64_t stride, int64_t n) {
  if (stride == 0) {
    T value;
    std::memcpy(&value, from, sizeof value);
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof value);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from + i * stride, sizeof(T));
  }
}

template <class T>
void scatter_elems(char* to, int64_t stride, const char* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * stride, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
}

}  // namespace

void gather(char* to, const char* from, int64_t stride, int64_t n, int64_t elem_bytes) {
  switch (elem_bytes) {
    case 1:
      return gather_elems<uint8_t>(to, from, stride, n);
    case 2:
      return gather_elems<uint16_t>(to, from, stride, n);
    case 4:
      return gather_elems<uint32_t>(to, from, stride, n);
    default:
      return gather_elems<uint64_t>(to, from, stride, n);
  }
}

void scatter(char* to, int64_t stride, const char* from, int64_t n, int64_t elem_bytes) {
  switch (elem_bytes) {
    case 1:
      return scatter_elems<uint8_t>(to, stride, from, n);
    case 2:
      return scatter_elems<uint16_t>(to, stride, from, n);
    case 4:
      return scatter_elems<uint32_t>(to, stride, from, n);
    default:
      return scatter_elems<uint64_t>(to, stride, from, n);
  }
}

}  // namespace wick::cpu
