#!/bin/sh
# aarch64_compile.sh COMPILER ARGUMENTS... -o OBJECT -c SOURCE: compiles SOURCE, or reads it alone and leaves an empty
# OBJECT. Assembly, vectors and builtins, which a processor may lack when code is made of them, are in the kernels
# (-DWICK_ISA) and in what includes thread_pool.h; of all other sources the compiler's front end finds what there is
# to find: it takes half of the time.
set -eu
object=
for word in "$@"; do
  case $word in
  -DWICK_ISA=* | */thread_pool.cpp) exec "$@" ;;
  *.o) object=$word ;;
  esac
done
"$@" -fsyntax-only
: >"$object"
