#pragma once

// What the sections of emu_codes share: finding functions of the runtime, and printing codes.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "emu/hip/functions.h"

extern void* library;

/// The library's function of this name and type.
template <class Function>
Function* find(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr) {
    std::printf("%s is missing\n", name);
    std::exit(1);
  }
  return found;
}
#define HIP(name) find<decltype(name)>(#name)

inline void say(const char* what, hipError_t code) {
  std::printf("%s: %d\n", what, static_cast<int>(code));
}

/// Prints a code, and what remains as the last error.
inline void say_both(const char* what, hipError_t code) {
  const hipError_t last = HIP(hipGetLastError)();
  std::printf("%s: %d, then the last error is %d\n", what, static_cast<int>(code),
              static_cast<int>(last));
}

/// Prints a number that a call has given.
inline void say_number(const char* what, unsigned long long number) {
  std::printf("  %s: %llu\n", what, number);
}

std::vector<void (*)()> sections_of_6();
std::vector<void (*)()> sections_of_7();
