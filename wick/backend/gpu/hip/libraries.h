#pragma once

#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {

/// hipBLASLt; null with a reason in `trace`.
std::unique_ptr<MatrixLibrary> open_hipblaslt(std::string& trace);

}  // namespace wick::gpu
