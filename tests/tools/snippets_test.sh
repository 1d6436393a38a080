#!/bin/sh
# snippets_test.sh PROGRAM WRITER: runs the pages' C++ in a folder that holds a model.gguf.
set -eu
program=$1 writer=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$writer" .
mv tiny-q8_0.gguf model.gguf
"$program"
