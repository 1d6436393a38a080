# Compiler settings shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
include(GNUInstallDirs)

# Parsing the standard library takes more than half of a host source's compile time. Without the option, missing
# includes are detected; the aarch64 build disables it.
option(WICK_PCH "Precompile headers of other libraries" ON)
find_program(WICK_CCACHE ccache)
if(WICK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WICK_CCACHE})
endif()
# By default ccache doesn't cache sources with precompiled headers. These settings tell it that all use the same
# macros on the command line, and that nothing in the headers depends on the time.
if(WICK_PCH AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# wick_precompile(TARGET HEADERS...): precompiles only headers of other libraries. wick's headers change, and their
# paths differ between source folders, which should share a compiler cache.
set(WICK_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstdio> <cstring>
  <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
  <type_traits> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
# ccache needs the first option to detect precompiled headers. The others disable warnings that GCC 12 gives for
# std::string in a precompiled header, because it no longer treats it as a system header.
set(WICK_PCH_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
function(wick_precompile target)
  if(WICK_PCH)
    target_precompile_headers(${target} PRIVATE ${WICK_PRECOMPILED} ${ARGN})
    target_compile_options(${target} PRIVATE ${WICK_PCH_OPTIONS})
  endif()
endfunction()

add_library(wick_options INTERFACE)
target_include_directories(wick_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
# The numeric contract requires these options: no implicit contraction, no errno from sqrt, and no trapping
# semantics, which would prevent vectorization. Never use -ffast-math.
target_compile_options(wick_options INTERFACE
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -Wall -Wextra -Wshadow -Wconversion)
if(WICK_SANITIZE)
  target_compile_options(wick_options INTERFACE -fsanitize=${WICK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_compile_definitions(wick_options INTERFACE WICK_SANITIZED=1)
  # With these checks, g++ doesn't treat the address of a function as a constant, which the assertions that
  # kernel tables are complete require. The address sanitizer detects uses of null pointers anyway.
  if(WICK_SANITIZE MATCHES undefined)
    target_compile_options(wick_options INTERFACE
      -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
    if(NOT WICK_GPU)  # the GPU backend's classes, whose headers others use, have no type information then
      target_compile_options(wick_options INTERFACE -fno-sanitize=vptr)
    endif()
  endif()
  target_link_options(wick_options INTERFACE -fsanitize=${WICK_SANITIZE})
endif()
