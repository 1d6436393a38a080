#!/bin/sh
# install_test.sh BUILD EXAMPLE: installs wick from BUILD into a scratch prefix, builds EXAMPLE
# against the installed package, runs it and the installed command.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/prefix" >/dev/null
cmake -S "$2" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$scratch/build" >/dev/null
"$scratch/build/hello" | tee "$scratch/out"
grep -q "f32\[2,2\]@cpu: 5 14 14 50" "$scratch/out"
"$scratch/prefix/bin/wick" --version
