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
((EUID == 0)) || die "requires root, to make and enter a system"
command -v debootstrap >/dev/null || die "debootstrap is not installed"

top=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../..
top=$(readlink -f -- "$top")
dir=$top/build/fresh base=$top/build/fresh/$suite.tar
mkdir -p "$dir"

if [[ ! -f $base ]]; then
  printf 'fresh: making a %s system with debootstrap\n' "$suite"
  rm -rf "$dir/base"
  debootstrap --variant=minbase --include=ca-certificates,sudo,git "$suite" "$dir/base" http://deb.debian.org/debian \
    >"$dir/debootstrap.log" 2>&1 || die "debootstrap failed; see $dir/debootstrap.log"
  # The package sources and settings of this machine, which may use a mirror.
  rm -f "$dir/base/etc/apt/sources.list"
  [[ ! -d /etc/apt/sources.list.d ]] || ! grep -qx "VERSION_CODENAME=$suite" /etc/os-release ||
    cp -rL /etc/apt/sources.list.d "$dir/base/etc/apt/"
  [[ -n $(ls "$dir/base/etc/apt/sources.list.d") ]] ||
    printf 'deb http://deb.debian.org/debian %s main\n' "$suite" >"$dir/base/etc/apt/sources.list"
  grep -lE '^Acquire' /etc/apt/apt.conf.d/* 2>/dev/null | xargs -r cp -t "$dir/base/etc/apt/apt.conf.d"
  rm -rf "$dir/base/var/lib/apt/lists"/*
  chroot "$dir/base" useradd --create-home --shell /bin/bash user
  printf 'user ALL=(ALL) NOPASSWD: ALL\n' >"$dir/base/etc/sudoers.d/user"
  tar -C "$dir/base" -cf "$base.new" . && mv "$base.new" "$base"
  rm -rf "$dir/base"
fi

# enter ROOT USER COMMAND   runs COMMAND in the clone, in namespaces of its own for mounts and processes, which end with it
enter() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup" 2>/dev/null || true
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mount -t tmpfs tmpfs "$1/run"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    exec chroot "$1" su - "$2" -c "cd rocinante && ROCI_REQUIRE_ALL=${ROCI_REQUIRE_ALL:-} $3"
  ' enter "$1" "$2" "$3" </dev/null
}

commit=$(git -C "$top" rev-parse --short HEAD) failed=0
for ((time = 1; time <= times; ++time)); do
  root=$dir/root
  rm -rf "$root"
  mkdir -p "$root"
  tar -C "$root" -xf "$base"
  home=$([[ $as == root ]] && echo root || echo "home/$as")
  git clone --quiet --no-hardlinks "$top" "$root/$home/rocinante"
  [[ $as == root ]] || chroot "$root" chown -R "$as:$as" "/home/$as/rocinante"
  for command in "${commands[@]}"; do
    started=$SECONDS status=0 log=$dir/$time-${command//[^a-z0-9]/_}.log
    enter "$root" "$as" "$command" >"$log" 2>&1 || status=$?
    ((status == 0)) || failed=1
    printf '%s, as %s, %s: %s: exit status %s in %s s: %s\n' "$commit" "$as" "$suite" "$command" "$status" \
      $((SECONDS - started)) "$(tail -n 1 "$log" | tr -d '\033' | cut -c1-160)"
  done
done
rm -rf "$dir/root"
exit "$failed"
