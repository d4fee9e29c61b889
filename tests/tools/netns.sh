#!/bin/sh
# netns.sh [--mtu BYTES] PROGRAM [ARGUMENT…]
# Runs PROGRAM in a new network namespace with loopback and a veth pair (veth0, veth1) without addresses. The namespace
# is deleted when PROGRAM exits; nothing outside it changes.
# Exit code: that of PROGRAM; 77 (skipped, for CTest) if the user may not create namespaces, but 1 if ROCI_REQUIRE_ALL
# is set, as in CI; 1 if iproute2 is missing.
set -u

mtu=1500
if [ "${1:-}" = --mtu ]; then
  mtu=$2
  shift 2
fi
if [ $# -eq 0 ]; then
  echo "usage: netns.sh [--mtu BYTES] PROGRAM [ARGUMENT...]" >&2
  exit 2
fi

if ! reason=$(unshare --net true 2>&1); then
  if [ -n "${ROCI_REQUIRE_ALL:-}" ]; then
    echo "FAILED: cannot make a network namespace, and ROCI_REQUIRE_ALL is set: $reason"
    exit 1
  fi
  echo "SKIPPED: cannot make a network namespace: $reason"
  exit 77
fi
if ! command -v ip > /dev/null; then
  echo "the command ip is missing; install iproute2 (./roci deps does)" >&2
  exit 1
fi

# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare --net sh -euc '
  mtu=$1
  shift
  ip link set lo up
  ip link add veth0 mtu "$mtu" type veth peer name veth1 mtu "$mtu"
  for interface in veth0 veth1; do
    # Disables IPv6, so that the kernel sends no frames of its own.
    echo 1 2> /dev/null > "/proc/sys/net/ipv6/conf/$interface/disable_ipv6" || true
    ip link set "$interface" up
  done
  exec "$@"
' sh "$mtu" "$@"
