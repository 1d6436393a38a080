#!/bin/sh
# stable_abi.sh ROOT: compiles what the bindings use of CPython beside nanobind as a wheel for Python 3.12 and later does, with the
# stable ABI alone. CI's Python is older, so that its wheel has all of CPython's functions.
set -eu
include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
test -e "$include/Python.h" || exit 77
c++ -std=c++20 -fsyntax-only -Wall -DPy_LIMITED_API=0x030B0000 -I "$1" -I "$include" -x c++ "$1/python/bindings/gil.h" 2>&1 |
  grep -v 'pragma once in main file' | grep -E 'error' && exit 1
exit 0
