#!/bin/sh
# aarch64_root.sh FOLDER: fetches the packages of aarch64 that wick is built with from Debian and unpacks them in FOLDER.
# Nothing is installed: apt uses lists of its own, and the system's packages don't change.
set -eu
PACKAGES="libbsd-dev libbsd0 libcli11-dev libedit-dev libedit2 libfmt-dev libfmt9 libgmock-dev libgmp-dev libgmp10
libgtest-dev libmd-dev libmd0 libmpfr-dev libmpfr6 libncurses-dev libncurses6 libpcre2-8-0 libpcre2-dev libtinfo6
libutf8proc-dev libutf8proc2 libzstd-dev libzstd1 nlohmann-json3-dev"
root=$1
test -e "$root/complete" && exit 0
mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial" "$root/apt/packages"
root=$(cd "$root" && pwd)
cat >"$root/apt/apt.conf" <<END
Dir::State::lists "$root/apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$root/apt/cache";
APT::Architecture "arm64";
APT::Architectures {"arm64";};
APT::Sandbox::User "root";
END
export APT_CONFIG="$root/apt/apt.conf"
cd "$root/apt/packages"
# shellcheck disable=SC2086
{ apt-get update && apt-get download $PACKAGES; } >"$root/apt/log" 2>&1 || {
  tail -n 5 "$root/apt/log" >&2
  exit 1
}
for package in *.deb; do dpkg -x "$package" "$root"; done
rm -rf "$root/apt"
: >"$root/complete"
