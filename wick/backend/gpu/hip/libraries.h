#pragma once

#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {

/// Opens hipBLASLt. Null, with a reason in `trace`, if it can't be opened.
std::unique_ptr<MatrixLibrary> open_hipblaslt(std::string& trace);

}  // namespace wick::gpu
