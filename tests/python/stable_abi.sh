#!/bin/sh
# stable_abi.sh ROOT: compiles what the bindings use of CPython beside nanobind with the stable ABI alone, as in a wheel for Python 3.12
# and later. CI's Python is older, so its wheel may use all of CPython's functions.
set -eu
include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
test -e "$include/Python.h" || exit 77
echo '#include "python/bindings/gil.h"' |
  c++ -std=c++20 -fsyntax-only -Wall -DPy_LIMITED_API=0x030B0000 -I "$1" -I "$include" -x c++ -
