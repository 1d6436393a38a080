#!/bin/sh
# Installs the packages that wick needs and the machine lacks, from Debian with apt (as root or with
# sudo). Does nothing if all are installed. If it can't install them, it names the missing ones.
set -eu

PACKAGES="ccache clang-19 clang-tools-19 cmake g++ libamdhip64-dev libbenchmark-dev libcli11-dev libedit-dev libfmt-dev libgmock-dev libgtest-dev
libmpfr-dev libpcre2-dev libutf8proc-dev ninja-build nlohmann-json3-dev pkg-config python3 python3-dev python3-pip python3-venv zstd
g++-aarch64-linux-gnu libclang-rt-19-dev librocrand1 libzstd-dev lld-19 llvm-19 llvm-19-dev qemu-user"

missing=""
for package in $PACKAGES; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" ||
    missing="$missing $package"
done
[ -z "$missing" ] && exit 0

fail() {
  echo "wick: cannot install with apt ($1); install these packages by hand:$missing" >&2
  exit 2
}
command -v apt-get >/dev/null || fail "no apt-get here"
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "need root or sudo"
  sudo="sudo"
fi
echo "installing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$sudo apt-get install -y --no-install-recommends $missing >"$log" 2>&1 || {
  # The package lists may be old, or missing on a new machine.
  $sudo apt-get update >"$log" 2>&1 || { tail -n 5 "$log" >&2; fail "apt-get update failed"; }
  $sudo apt-get install -y --no-install-recommends $missing >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; fail "apt-get install failed"; }
}
