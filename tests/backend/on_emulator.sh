#!/bin/sh
# on_emulator.sh LIBRARY ARCHITECTURE PROGRAM ARGUMENTS...
# Runs a program with the software AMD GPU as its HIP runtime and with all checks. Exits with 77
# (skip) if there is no emulator.
library=$1
architecture=$2
shift 2
if [ ! -e "$library" ]; then
  echo "skipped: no $library (make emu)"
  exit 77
fi
# Two threads suffice to show concurrency of workgroups, and tests run in parallel.
WICK_EMU_THREADS=${WICK_EMU_THREADS:-2} WICK_HIP_LIBRARY=$library WICK_EMU_DEVICES=$architecture \
  WICK_EMU_CHECK=${WICK_EMU_CHECK:-memory,alignment,lds,registers,waits,races,barriers} exec "$@"
