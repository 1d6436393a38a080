#!/bin/sh
# with_clang.sh CLANG CCACHE COMPILER ARGUMENTS...: runs CLANG by way of CCACHE (or env) instead of COMPILER. A CMake project has
# one C++ compiler, which is g++ here. This script is the compiler launcher of the tests that clang compiles.
clang=$1 ccache=$2
shift 3
export CCACHE_SLOPPINESS=pch_defines,time_macros
# clang gives these warnings where g++ gives none.
exec "$ccache" "$clang" "$@" -Wno-unused-result -Wno-unused-value -Wno-sign-conversion -Wno-shadow -Wno-braced-scalar-init \
  -Wno-missing-field-initializers -Wno-deprecated-declarations -Wno-unknown-warning-option
