#pragma once

// The in-memory structures of DLPack 1.1, https://dmlc.github.io/dlpack.

#include <cstdint>

namespace wick::python::dlpack {

inline constexpr uint32_t kMajor = 1, kMinor = 1;
inline constexpr uint64_t kReadOnly = 1;  ///< flag: the memory is read-only

inline constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3, kRocm = 10, kRocmHost = 11,
                         kCudaManaged = 13;

enum class Code : uint8_t {
  integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  boolean = 6,
  float8_e4m3fn = 10,
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct DeviceOf {
  int32_t type, id;
};

struct Array {
  void* data;
  DeviceOf device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null: dense
  uint64_t byte_offset;
};

/// The contents of a "dltensor" capsule.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};

/// The contents of a "dltensor_versioned" capsule.
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  Array array;
};

}  // namespace wick::python::dlpack
