#pragma once

// Gemms by descriptors: the interface that both vendors' newer libraries share.

#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {

/// The functions of lt_library.def, as they were found in a library.
struct LtApi {
#define WICK_LT_FN(role, arguments) int(*role) arguments = nullptr;
#include "wick/backend/gpu/linear/lt_library.def"
};

/// A vendor's name of each function.
struct LtApiNames {
#define WICK_LT_FN(role, arguments) const char* role = nullptr;
#include "wick/backend/gpu/linear/lt_library.def"
};

/// Whether every role has a name.
constexpr bool complete(const LtApiNames& names) {
  bool all = true;
#define WICK_LT_FN(role, arguments) all = all && names.role != nullptr;
#include "wick/backend/gpu/linear/lt_library.def"
  return all;
}

/// A vendor's values of constants.
struct LtNumbers {
  int f32, f16, bf16;                     // types
  int compute_f32;                        // full f32, without TF32
  int compute_fast;                       // with TF32 where there is such a type
  int no_transpose, transpose;            // operations
  int batch_count, batch_stride;          // attributes of layouts
  int transpose_first, transpose_second;  // attributes of gemms
  int workspace_bytes;                    // attribute of preferences
  // The first of four consecutive attributes of preferences; -1: alignments aren't passed.
  int alignments;
};

class LtLibrary : public MatrixLibrary {
 protected:
  LtLibrary(DeviceKind kind, std::string what, std::string file, const LtApi& functions,
            const LtNumbers& numbers)
      : MatrixLibrary(kind, std::move(what), std::move(file)), api_(functions), numbers_(numbers) {}

  const LtApi api_;

 private:
  class Device;
  std::unique_ptr<OnDevice> prepare(wick::Device device, std::string& reason) override;
  /// Whether the library can be used on a device at all.
  virtual bool usable(wick::Device device, std::string& reason) const = 0;

  const LtNumbers numbers_;
};

/// Finds all functions of lt_library.def.
bool find_functions(const Library& library, const LtApiNames& names, LtApi& api,
                    std::string& trace);

}  // namespace wick::gpu
