#!/bin/sh
# text_seeds.sh LLVM_OBJCOPY CLANG CORPUS OUTPUT_FOLDER
# Writes the machine code of the corpus' kernels as seeds of the fuzzer: the letter T, the
# architecture, the instructions.
set -e
for source in "$3"/*.hip; do
  name=$(basename "$source" .hip)
  for kind in 0:gfx1100 1:gfx90a 2:gfx1030 3:gfx1200; do
    seed="$4/text-$name-${kind#*:}"
    [ -e "$seed" ] && continue
    # Some files don't compile for every architecture.
    "$2" -x hip -std=c++20 -O1 --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -w \
      --offload-arch="${kind#*:}" -c "$source" -o "$seed.o" 2>/dev/null || continue
    "$1" -O binary --only-section=.text "$seed.o" "$seed.text"
    { printf "T%s" "${kind%:*}"; cat "$seed.text"; } >"$seed"
    rm "$seed.o" "$seed.text"
  done
done
