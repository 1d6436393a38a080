#!/bin/sh
# triton_test.sh PYTHON ROOT: runs the kernels of tools/rocm/triton_kernels.py on the emulator of build/emu. Exits with 77
# (skip) if there is no emulator, if Python isn't the version that the wheels are pinned for, or if PyPI can't be reached.
set -eu
python=$1
root=$2
if [ ! -e "$root/build/emu/lib/libwick_emu.so" ]; then
  echo "skipped: no $root/build/emu/lib/libwick_emu.so (make emu)"
  exit 77
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  echo "skipped: Triton's wheels are pinned for Python 3.11"
  exit 77
fi
exec "$python" "$root/tools/amd_suites.py" test "Triton's kernels 3.9.0" "Triton's kernels 3.6.0"
