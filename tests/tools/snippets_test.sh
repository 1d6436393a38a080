#!/bin/sh
# snippets_test.sh PROGRAM WRITER: runs the C++ code of the documentation in a folder with a
# model.gguf.
set -eu
program=$1 writer=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$writer" .
mv tiny-q8_0.gguf model.gguf
"$program"
