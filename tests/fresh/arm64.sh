#!/usr/bin/env bash
# Cross-compiles for arm64 in a fresh Debian system that debootstrap makes, and runs unit tests in qemu-aarch64.
set -euo pipefail

usage() {
  cat <<'END'
usage: tests/fresh/arm64.sh [TEST…]

Makes a Debian 12 system with debootstrap (cached in build/fresh), installs the cross compiler and the libraries for arm64,
clones the last commit of this checkout into it, compiles, and runs the test programs TEST_tests with qemu-aarch64. Default:
those of base, wire, memory, port and transport. Requires root and debootstrap. Nothing outside of build/fresh is
changed; the system shares the network and the processors of this machine.

Prints the last line of each test program. Exits with status 1 if the compilation or a test fails.
END
}
die() { printf 'arm64: %s\n' "$*" >&2 && exit 2; }

tests=(base wire memory port transport)
case ${1:-} in
  -h | --help) usage && exit ;;
  -*) die "unknown option '$1'; --help lists the options" ;;
  ?*) tests=("$@") ;;
esac
top=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../..
top=$(readlink -f -- "$top")
# shellcheck source=tests/fresh/system.sh
. "$top/tests/fresh/system.sh"
need_system_tools
dir=$top/build/fresh
mkdir -p "$dir"
trap leave EXIT
make_system bookworm "$dir"

packages=(crossbuild-essential-arm64 g++ cmake ninja-build pkg-config python3 qemu-user xz-utils libjs-chart.js
  libexpected-dev libcli11-dev nlohmann-json3-dev)
for library in dpdk ibverbs rdmacm xdp bpf numa bsd tbb spdlog yaml-cpp isal pcap hdf5 gtest gmock; do
  packages+=("lib$library-dev:arm64")
done
packages+=(zlib1g-dev:arm64)
root=$dir/arm64 log=$dir/arm64.log
unpack_system "$dir/bookworm.tar" "$root"
git clone --quiet --no-hardlinks "$top" "$root/root/rocinante"

# run COMMAND   in the system; its output is appended to the log
run() { enter "$root" root "cd rocinante && $1" >>"$log" 2>&1; }
: >"$log"
run "dpkg --add-architecture arm64 && apt-get update -q &&
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ${packages[*]}" ||
  die "packages cannot be installed; see $log"
run "cmake -G Ninja -S . -B build/arm64 -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/arm64.cmake \
  -D ROCI_UNITY=ON -D ROCI_BENCH=OFF && cmake --build build/arm64 --target ${tests[*]/%/_tests}" ||
  die "compilation failed; see $log"
failed=0
for test in "${tests[@]}"; do
  status=0
  run "timeout 1800 qemu-aarch64 build/arm64/bin/${test}_tests" || status=$?
  ((status == 0)) || failed=1
  printf 'arm64: %s_tests: exit status %s: %s\n' "$test" "$status" "$(grep -E 'PASSED|FAILED' "$log" | tail -n 1)"
done
rm -rf "$root"
exit "$failed"
