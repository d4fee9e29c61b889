# shellcheck shell=bash
# Functions of run.sh and portable.sh, which include this file: a Debian system that debootstrap makes, and the namespaces
# in which a command runs in it. `die` is a function of the including script.

# need_system_tools   ends the script if a system cannot be made
need_system_tools() {
  ((EUID == 0)) || die "requires root, to make and enter a system"
  command -v debootstrap >/dev/null || die "debootstrap is not installed"
}

# make_system SUITE FOLDER   makes FOLDER/SUITE.tar, unless it exists: a minimal system with the user `user` and sudo
make_system() {
  local suite=$1 folder=$2 base=$2/base
  [[ ! -f $folder/$suite.tar ]] || return 0
  printf 'fresh: making a %s system with debootstrap\n' "$suite"
  rm -rf "$base"
  debootstrap --variant=minbase --include=ca-certificates,sudo,git "$suite" "$base" http://deb.debian.org/debian \
    >"$folder/debootstrap.log" 2>&1 || die "debootstrap failed; see $folder/debootstrap.log"
  # The package sources and settings of this machine, which may use a mirror.
  rm -f "$base/etc/apt/sources.list"
  [[ ! -d /etc/apt/sources.list.d ]] || ! grep -qx "VERSION_CODENAME=$suite" /etc/os-release ||
    cp -rL /etc/apt/sources.list.d "$base/etc/apt/"
  [[ -n $(ls "$base/etc/apt/sources.list.d") ]] ||
    printf 'deb http://deb.debian.org/debian %s main\n' "$suite" >"$base/etc/apt/sources.list"
  grep -lE '^Acquire' /etc/apt/apt.conf.d/* 2>/dev/null | xargs -r cp -t "$base/etc/apt/apt.conf.d"
  rm -rf "$base/var/lib/apt/lists"/*
  chroot "$base" useradd --create-home --shell /bin/bash user
  printf 'user ALL=(ALL) NOPASSWD: ALL\n' >"$base/etc/sudoers.d/user"
  tar -C "$base" -cf "$folder/$suite.tar.new" . && mv "$folder/$suite.tar.new" "$folder/$suite.tar"
  rm -rf "$base"
}

# unpack_system FILE ROOT   replaces the folder ROOT by the system in the file
unpack_system() {
  rm -rf "$2"
  mkdir -p "$2"
  tar -C "$2" -xf "$1"
}

entered=  # process that the function `enter` has started
# leave   ends the command of `enter`, and with it the namespaces. For the EXIT trap of the script: the first process of the
# namespaces ignores SIGTERM and SIGINT.
leave() { [[ -z $entered ]] || kill -KILL "$entered" 2>/dev/null || true; }
trap 'exit 130' INT
trap 'exit 143' TERM

# enter [--private-net] [--read-only FOLDER] ROOT USER COMMAND
# Runs COMMAND in the system, in namespaces of its own for mounts and processes, which end with it. --private-net: also for
# the network, with only a loopback interface that is down. --read-only: this folder of the system is mounted read-only.
enter() {
  local namespaces=(--mount --pid --fork --kill-child) read_only=''
  while [[ $1 == --* ]]; do
    case $1 in
      --private-net) namespaces+=(--net) ;;
      --read-only) read_only=$2 && shift ;;
      *) die "enter: unknown option '$1'" ;;
    esac
    shift
  done
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare "${namespaces[@]}" bash -c '
    set -e
    mount --make-rprivate /
    mount --bind "$1" "$1"  # unshare and pivot_root require that the root folder is a mount point
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup" 2>/dev/null || true
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mount -t tmpfs tmpfs "$1/run"
    if [[ -n $4 ]]; then
      mount --bind "$1$4" "$1$4"
      mount -o remount,bind,ro "$1$4"
    fi
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    exec chroot "$1" su - "$2" -c "$3"
  ' enter "$1" "$2" "$3" "$read_only" </dev/null &
  entered=$!
  local status=0
  wait "$entered" || status=$?
  entered=
  return "$status"
}
