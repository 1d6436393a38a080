#!/bin/sh
# program.sh CLANG SOURCE LIBRARY_FOLDER HEADERS BUNDLER_FOLDER OUTPUT
# Compiles a HIP program against the public headers, with the README's command and without
# optimization, and runs it on the emulator, once for each architecture that it is compiled for.
set -e
PATH="$5:$PATH"
export PATH
for level in O2 O0; do
  # The headers include the compiler's own headers as "include/...", which none of its search paths
  # matches.
  "$1" -x hip -$level --offload-arch=gfx1100 --offload-arch=gfx90a -nogpulib \
    --rocm-path="${4%/include}" -D__HIP_PLATFORM_AMD__ \
    -include "$(dirname "$0")/../hip/device_library.h" \
    -idirafter "$("$1" -print-resource-dir)" -idirafter "$4" -c "$2" -o "$6.o"
  "$1" "$6.o" -o "$6" -L "$3" -lamdhip64 -Wl,-rpath,"$3"
  for architecture in gfx1100 gfx90a; do
    WICK_EMU_DEVICES=$architecture "$6"
    WICK_EMU_DEVICES=$architecture WICK_EMU_CHECK=all "$6"
  done
done
