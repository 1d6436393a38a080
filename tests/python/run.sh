#!/bin/sh
# run.sh SOURCE BUILD WRITER: builds the Python package as a wheel with BUILD's library, installs it
# in a virtual environment in BUILD, and runs its tests, the examples, and mypy on both. WRITER
# writes small models. Exits with 77 (skip) if the tools can't be installed from PyPI.
set -eu
source=$1 build=$2 writer=$3
venv=$build/python-venv
log=$build/python-test.log

fail() {
  cat "$log"
  exit 1
}

test -x "$venv/bin/python" || "${PYTHON:-python3}" -m venv "$venv" >"$log" 2>&1 || fail
python=$venv/bin/python
$python -m pip install --quiet --disable-pip-version-check --retries 1 \
  -r "$source/tests/python/requirements.txt" >"$log" 2>&1 || {
  grep -qE "NewConnectionError|NameResolution|ProxyError|ConnectTimeout|Network is unreachable" "$log" || fail
  echo "SKIP: PyPI can't be reached, and $venv lacks what tests/python/requirements.txt names"
  exit 77
}

# The wheel is built without isolation, so that the compiler sees the same paths as before and
# ccache works.
rm -rf "$build/python-wheels"
CMAKE_ARGS="-DWICK_LIBRARY_DIR=$build/lib" $python -m pip wheel --quiet \
  --disable-pip-version-check --no-build-isolation --no-deps -C build-dir="$build/python-wheel" \
  -w "$build/python-wheels" "$source" >"$log" 2>&1 || fail
$python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
  "$build"/python-wheels/wick-*.whl >"$log" 2>&1 || fail
# The wheel must not need a library that some Linux systems lack.
$python -m auditwheel show "$build"/python-wheels/wick-*.whl >"$log" 2>&1 || fail
grep -q '"manylinux_' "$log" || fail

# The tests run outside the source folder, so that they test the installed package.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# WICK_TORCH names a site-packages folder with PyTorch, for the tests of memory shared with it.
PYTHONPATH=${WICK_TORCH:-} WICK_TINY_WRITER=$writer \
  $python -m pytest -q -p no:cacheprovider -rs "$source/python/tests"
# Compares the decoding of block formats with the package gguf.
$python "$source/tests/math/gguf_reference_test.py" "$source/wick/math/quants.def" "$build/bin/decode_blocks"
$python "$source/tools/codebooks.py" --check
# Runs the tests on emulated GPUs, if the emulator has been built.
emulator=$source/build/emu/lib/libamdhip64.so.6
# on_emulator ARCHITECTURE TESTS: runs tests of kernels with all checks of the emulator. Pytest doesn't capture its
# reports (-s), because they may come after a test. Each tensor has memory of its own, so that the checks see where it ends.
on_emulator() {
  WICK_TEST_DEVICES=hip:0 WICK_GPU_POOL=exact WICK_KERNEL_CACHE=$build/python-kernels \
    sh "$source/tests/backend/on_emulator.sh" "$emulator" "$1" \
    $python -m pytest -q -s -p no:cacheprovider "$source/python/tests/$2" >"$log" 2>&1 || fail
  tail -n 1 "$log"
}
reports="wick-emu: |absent: "
if test -e "$emulator"; then
  WICK_HIP_LIBRARY=$emulator WICK_EMU_DEVICES=gfx1100 \
    $python -m pytest -q -p no:cacheprovider "$source/python/tests/test_devices.py"
  for architecture in gfx1100 gfx90a; do
    on_emulator $architecture test_custom.py
    ! grep -qE "$reports" "$log" || fail
    on_emulator $architecture test_custom_wrong.py
    grep -q "1 passed" "$log" && grep -qE "$reports" "$log" || fail
  done
fi

cp "$source"/examples/python/*.py .
$python -m mypy --strict --cache-dir "$build/python-mypy" -p wick
$python -m mypy --strict --cache-dir "$build/python-mypy" ./*.py
$writer .
mv tiny-q8_0.gguf model.gguf
# WICK_TEST_MODEL names a real model, which then generates a few words.
$python quick_start.py ${WICK_TEST_MODEL:+"$WICK_TEST_MODEL"}
$python custom_ops.py
$python two_spirals.py --picture spirals.svg
test -s spirals.svg
grep -q "<polyline" spirals.svg
# Runs the Python code in the documentation.
$python "$source/tests/tools/snippets.py" python "$source/README.md" "$source/docs/python.md" "$source/docs/custom-ops.md" >snippets.py
$python snippets.py
$python "$source/bench/python_overhead.py" --import-only --check
