#!/bin/sh
# aarch64_compile.sh COMPILER ARGUMENTS... -o OBJECT -c SOURCE: checks SOURCE by the compiler's front end and leaves an empty
# OBJECT. The front end finds all errors but those of code generation, which can fail only where there is assembly, or
# vectors and builtins: in kernels and thread_pool.cpp. tools/aarch64_run compiles these to code.
set -eu
object=
for word in "$@"; do
  case $word in
  *.o) object=$word ;;
  esac
done
"$@" -fsyntax-only
: >"$object"
