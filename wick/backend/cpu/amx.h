#pragma once

namespace wick::cpu {

/// Whether the processor multiplies matrices of int8 on tiles (AMX) and the system can save them.
/// Processes need the permission that request_amx() asks for, too.
bool has_amx();
/// The same for products of bf16.
bool has_amx_bf16();
/// Asks the system to let all threads of this process use tiles. From then on, the system requires
/// alternate signal stacks that can hold 8 KiB of tiles. Returns false if the system refuses.
bool request_amx();

}  // namespace wick::cpu
