#!/bin/sh
# on_emulator.sh LIBRARY ARCHITECTURE PROGRAM ARGUMENTS...
# Runs a program with the software AMD GPU as its HIP runtime, all checks on. 77, a skip, without one.
library=$1
architecture=$2
shift 2
if [ ! -e "$library" ]; then
  echo "skipped: no $library (make emu)"
  exit 77
fi
# One thread: tests run beside each other, and with several the check of races has told of bytes that nobody shares.
WICK_EMU_THREADS=${WICK_EMU_THREADS:-1} WICK_HIP_LIBRARY=$library WICK_EMU_DEVICES=$architecture WICK_EMU_CHECK=memory,alignment,lds,registers,waits,races,barriers exec "$@"
