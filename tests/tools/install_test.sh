#!/bin/sh
# install_test.sh BUILD EXAMPLES CXX: installs wick from BUILD into a scratch prefix, compiles every
# installed header, builds two of the EXAMPLES with the installed package, and runs them and the
# installed command.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/prefix" >/dev/null

# Headers must only include installed headers and no other library.
(cd "$scratch/prefix/include" && find wick -name '*.h' | sort | sed 's/.*/#include "&"/') \
  >"$scratch/headers.cpp"
test "$(wc -l <"$scratch/headers.cpp")" -ge 30
"$3" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I"$scratch/prefix/include" "$scratch/headers.cpp"
if grep -rlE '#include *[<"](fmt|nlohmann|CLI|pcre2)' "$scratch/prefix/include"; then
  echo "installed headers include other libraries" >&2
  exit 1
fi

for example in hello custom_ops; do
  cmake -S "$2/$example" -B "$scratch/$example" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
    -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE=Release >"$scratch/log" 2>&1 &&
    cmake --build "$scratch/$example" >>"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
done
"$scratch/custom_ops/custom_ops"
"$scratch/hello/hello" | tee "$scratch/out"
grep -q "f32\[2,2\]@cpu: 5 14 14 50" "$scratch/out"
# The installation works after it is moved.
mv "$scratch/prefix" "$scratch/moved"
"$scratch/moved/bin/wick" --version
"$scratch/moved/bin/wick" devices
