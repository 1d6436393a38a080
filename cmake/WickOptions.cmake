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

find_program(WICK_CCACHE ccache)
if(WICK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WICK_CCACHE})
endif()

add_library(wick_options INTERFACE)
target_include_directories(wick_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
# The numeric contract rests on these: no contraction behind the source's back, no errno from sqrt,
# and no trapping semantics in the way of vectorisation. Never -ffast-math.
target_compile_options(wick_options INTERFACE
  -ffp-contract=off -fno-math-errno -fno-trapping-math
  -Wall -Wextra -Wshadow -Wconversion)
if(WICK_SANITIZE)
  target_compile_options(wick_options INTERFACE -fsanitize=${WICK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  # With these g++ no longer takes the address of a function for a constant, and the assertions that
  # tables of kernels are complete need that. The address sanitizer finds a null pointer's use anyway.
  if(WICK_SANITIZE MATCHES undefined)
    target_compile_options(wick_options INTERFACE
      -fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute)
  endif()
  target_link_options(wick_options INTERFACE -fsanitize=${WICK_SANITIZE})
endif()
