#!/bin/sh
# program.sh CLANG SOURCE LIBRARY_FOLDER HEADERS BUNDLER_FOLDER OUTPUT
# Compiles a HIP program against the public headers, and runs it on the emulator.
set -e
PATH="$5:$PATH"
export PATH
"$1" -x hip -std=c++20 -O2 --offload-arch=gfx1100 --offload-arch=gfx90a -nogpuinc -nogpulib \
  -D__HIP_PLATFORM_AMD__ -I "$4" "$2" -c -o "$6.o"
"$1" "$6.o" -o "$6" -L "$3" -lamdhip64 -Wl,-rpath,"$3"
exec "$6"
