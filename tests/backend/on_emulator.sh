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
# Two threads, as many as show what groups do at once: tests run beside each other.
WICK_EMU_THREADS=${WICK_EMU_THREADS:-2} WICK_HIP_LIBRARY=$library WICK_EMU_DEVICES=$architecture \
  WICK_EMU_CHECK=${WICK_EMU_CHECK:-memory,alignment,lds,registers,waits,races,barriers} exec "$@"
