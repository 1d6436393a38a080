#!/bin/sh
# aarch64_compile.sh COMPILER ARGUMENTS... -o OBJECT -c SOURCE: compiles SOURCE, or only checks its syntax and leaves an
# empty OBJECT. Only kernels (-DWICK_ISA) and thread_pool.cpp contain assembly, vectors and builtins, for which code
# generation can fail. All errors of other sources are found by the compiler's front end, which takes half of the time.
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
