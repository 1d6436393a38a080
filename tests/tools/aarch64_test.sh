#!/bin/sh
# aarch64_test.sh SOURCE BUILD: compiles wick's library for aarch64, without the tests and the
# command (their libraries aren't installed for that architecture): nothing in it is tied to x86.
set -eu
cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
  -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=BOTH -DWICK_BUILD_TESTS=OFF -DWICK_BUILD_APPS=OFF \
  -DWICK_BUILD_BENCH=OFF >/dev/null
ninja -C "$2" wick_objects wick_kernels
