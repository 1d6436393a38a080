#!/bin/sh
# aarch64_compile.sh COMPILER ARGUMENTS... -o OBJECT -c SOURCE: checks SOURCE by the compiler's front end and leaves an empty
# OBJECT. The front end finds all errors but those of code generation, which can fail only where there is assembly, or
# vectors and builtins: in kernels and thread_pool.cpp. tools/aarch64_run compiles these to code. If it can run, WICK_AARCH64_RUN
# is set, and the sources that it compiles are left out here.
set -eu
object=
for word in "$@"; do
  case $word in
  *.o) object=$word ;;
  esac
done
case $object in
*/Unity/unity_base_* | */Unity/unity_op_* | */Unity/unity_backend_cpu_* | */wick_objects.dir/backend/cpu/*)
  test -z "${WICK_AARCH64_RUN:-}" || { : >"$object" && exit; } ;;
esac
"$@" -fsyntax-only
: >"$object"
