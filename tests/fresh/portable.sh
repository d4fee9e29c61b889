#!/usr/bin/env bash
# Runs unmodified programs of a distribution with the portable archive, in a system that debootstrap makes and that has
# none of the libraries with which the archive was built.
set -euo pipefail

usage() {
  cat <<'END_OF_USAGE'
usage: tests/fresh/portable.sh [--suite NAME] [ARCHIVE]

Makes a system with debootstrap (cached in build/fresh), installs the distribution's RDMA programs and nothing else in
it, unpacks ARCHIVE into it, mounts the unpacked folder read-only, and runs each program there between two processes, as
an ordinary user, in a network namespace without access to the machine's network. Default: the archive that
'./roci package --portable' made. Requires root and debootstrap. Nothing outside of build/fresh is changed.

  --suite NAME    Debian suite [trixie]

Prints one line per program: ok or FAILED, and the last line of its output. Exits with status 1 if a program fails. The
complete outputs are in build/fresh/portable-NAME-logs.
END_OF_USAGE
}
die() { printf 'portable: %s\n' "$*" >&2 && exit 2; }

suite=trixie archive=
while (($#)); do
  case $1 in
    -h | --help) usage && exit ;;
    --suite)
      [[ -n ${2:-} ]] || die "--suite requires the name of a Debian suite"
      suite=$2 && shift
      ;;
    -*) die "unknown option '$1'; --help lists the options" ;;
    *)
      [[ -z $archive ]] || die "only one archive is allowed"
      archive=$1
      ;;
  esac
  shift
done

top=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../..
top=$(readlink -f -- "$top")
# shellcheck source=tests/fresh/system.sh
. "$top/tests/fresh/system.sh"
if [[ -z $archive ]]; then
  made=("$top"/build/portable/rocinante-*.tar.xz)
  archive=${made[0]}
  [[ -f $archive ]] || die "build/portable has no archive; './roci package --portable' makes it"
fi
[[ -f $archive ]] || die "$archive does not exist"
need_system_tools
command -v xz >/dev/null || die "xz is not installed"

# The compiler and libopenmpi-dev build the MPI job; ip makes the interfaces of the network namespace.
packages=(perftest ibverbs-utils rdmacm-utils ucx-utils openmpi-bin libfabric-bin fio python3-pyverbs
  gcc libc6-dev libopenmpi-dev iproute2)
dir=$top/build/fresh
root=$dir/portable-$suite-root logs=$dir/portable-$suite-logs installed=$dir/$suite-programs
mkdir -p "$dir"
exec 9>"$dir/portable-$suite.lock"
flock --nonblock 9 || die "another run uses $root"
make_system "$suite" "$dir"
trap 'leave; rm -rf "$root"' EXIT

if [[ ! -f $installed.tar || $(cat "$installed.list") != "${packages[*]}" ]]; then
  printf 'portable: installing %s packages in %s\n' "${#packages[@]}" "$suite"
  unpack_system "$dir/$suite.tar" "$root"
  enter "$root" root "export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update && apt-get -y install --no-install-recommends ${packages[*]} && apt-get clean" \
    >"$dir/$suite-programs.log" 2>&1 || die "the packages cannot be installed; see $dir/$suite-programs.log"
  tar -C "$root" -cf "$installed.tar.new" .
  printf '%s\n' "${packages[*]}" >"$installed.list"
  mv "$installed.tar.new" "$installed.tar"
fi

unpack_system "$installed.tar" "$root"
mkdir -p "$root/opt/programs"
tar -C "$root/opt" -xf "$archive"
name=$(basename -- "$archive" .tar.xz)
[[ -x $root/opt/$name/bin/roci-run ]] || die "$archive has no $name/bin/roci-run"
cp "$top/tests/fresh/programs.sh" "$top/tests/fresh/pyverbs_check.py" "$top/tests/programs/mpi_check.c" "$root/opt/programs"

# libfabric connects by TCP to the address that it then uses for RDMA, so an interface has the addresses too.
status=0
enter --private-net --read-only "/opt/$name" "$root" root "
  ip link set lo up && ip link add veth0 type veth peer name veth1 && ip link set veth0 arp off up &&
  ip link set veth1 arp off up && ip addr add 10.77.0.1/32 dev veth0 && ip addr add 10.77.0.2/32 dev veth0 &&
  su - user -c '/opt/programs/programs.sh /opt/$name logs'" || status=1
rm -rf "$logs"
[[ ! -d $root/home/user/logs ]] || cp -r "$root/home/user/logs" "$logs"

# The namespaces end with their first process. A mount or process that is left is a defect of this script.
! grep -qF " $root" /proc/self/mounts || die "a file system is still mounted in $root"
for process in /proc/[0-9]*; do
  [[ $(readlink "$process/root" 2>/dev/null || true) != "$root"* ]] || die "process ${process#/proc/} still runs in $root"
done
exit "$status"
