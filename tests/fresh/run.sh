#!/usr/bin/env bash
# Runs commands of the README in a fresh Debian system that debootstrap makes, as root and as a user with sudo, and
# prints how long each takes. Shows that they work on a machine that has nothing of this project installed.
set -euo pipefail

usage() {
  cat <<'END'
usage: tests/fresh/run.sh [--suite NAME] [--as root|user] [--times N] [COMMAND…]

Makes a system with debootstrap (cached in build/fresh), clones the last commit of this checkout into it, and runs each
COMMAND there in a shell. Default: './roci demo' and './roci test', in one clone. Requires root and debootstrap.
Nothing outside of build/fresh is changed; the system shares the network and the processors of this machine.

  --suite NAME    Debian suite [bookworm]
  --as WHO        root, or user: an ordinary user with sudo [root]
  --times N       repeat everything N times, each in a new system [1]

Prints one line per command: time, exit status, and the last line of output. Exits with status 1 if a command fails.
END
}
die() { printf 'fresh: %s\n' "$*" >&2 && exit 2; }

suite=bookworm as=root times=1 commands=()
while (($#)); do
  case $1 in
    -h | --help) usage && exit ;;
    --suite) suite=${2:-} && shift ;;
    --as) as=${2:-} && shift ;;
    --times) times=${2:-} && shift ;;
    -*) die "unknown option '$1'; --help lists the options" ;;
    *) commands+=("$1") ;;
  esac
  shift
done
((${#commands[@]})) || commands=('./roci demo' './roci test')
[[ $as == root || $as == user ]] || die "--as: '$as' is not allowed; root and user are"
[[ $times =~ ^[1-9][0-9]*$ ]] || die "--times: '$times' is not a number from 1 on"
top=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../..
top=$(readlink -f -- "$top")
# shellcheck source=tests/fresh/system.sh
. "$top/tests/fresh/system.sh"
need_system_tools
dir=$top/build/fresh
mkdir -p "$dir"
trap leave EXIT
make_system "$suite" "$dir"

commit=$(git -C "$top" rev-parse --short HEAD) failed=0
for ((time = 1; time <= times; ++time)); do
  root=$dir/root
  unpack_system "$dir/$suite.tar" "$root"
  home=$([[ $as == root ]] && echo root || echo "home/$as")
  git clone --quiet --no-hardlinks "$top" "$root/$home/rocinante"
  [[ $as == root ]] || chroot "$root" chown -R "$as:$as" "/home/$as/rocinante"
  for command in "${commands[@]}"; do
    started=$SECONDS status=0 log=$dir/$time-${command//[^a-z0-9]/_}.log
    enter "$root" "$as" "cd rocinante && ROCI_REQUIRE_ALL=${ROCI_REQUIRE_ALL:-} $command" >"$log" 2>&1 || status=$?
    ((status == 0)) || failed=1
    printf '%s, as %s, %s: %s: exit status %s in %s s: %s\n' "$commit" "$as" "$suite" "$command" "$status" \
      $((SECONDS - started)) "$(tail -n 1 "$log" | tr -d '\033' | cut -c1-160)"
  done
done
rm -rf "$dir/root"
exit "$failed"
