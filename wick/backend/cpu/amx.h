#pragma once

namespace wick::cpu {

/// Whether the processor multiplies matrices of int8 on tiles (AMX) and the system lets this
/// process use them; asks for the permission.
bool has_amx();

}  // namespace wick::cpu
