#!/usr/bin/env bash
# Runs programs of the distribution with the portable archive. portable.sh starts it in the fresh system, as an ordinary
# user; mpi_check.c and pyverbs_check.py are in the same folder.
set -uo pipefail

(($# == 2)) || { printf 'usage: programs.sh FOLDER LOGS     FOLDER: the unpacked archive\n' >&2 && exit 2; }
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
top=$1 logs=$PWD/$2 failed=0
run=$top/bin/roci-run
readonly LIMIT=120   # seconds that a program may take, including on a busy machine
readonly PORT=18515  # of the programs that accept one; each runs alone
# Output of clients when the server does not listen yet. Some of them exit with status 0 then.
readonly REFUSED='RDMA_CM_EVENT_(REJECTED|UNREACHABLE)|Unexpected CM event|Connection refused'
umask 077  # roci-run and memif require folders of this user
export ROCI_RUNTIME=$PWD/networks
rm -rf "$logs"
mkdir -p "$logs" "$ROCI_RUNTIME"

# report NAME STATUS PATTERN LOG   prints the result: the program must exit with status 0, a line must match the pattern, and
# no line may be an error of UCX or libfabric, which do not always change the exit status
report() {
  local result=ok
  if [[ $1 == fi_pingpong-rdm* ]] && (($(grep -c '\[error\]' "$4") == 1)) && grep -q 'Work Request Flushed Error' "$4"; then
    # The process that finishes last may receive this error caused by the disconnect of the other one. The measurement is
    # complete then.
    grep -qE -- "$3" "$4" || result="FAILED (no line matches '$3')"
  elif (($2 != 0)); then
    result="FAILED (exit status $2)"
  elif grep -qE 'UCX +ERROR|\[error\]' "$4"; then
    result='FAILED (an error is reported)'
  elif ! grep -qE -- "$3" "$4"; then
    result="FAILED (no line matches '$3')"
  fi
  [[ $result == ok ]] || failed=1
  printf '%s: %s: %s\n' "$1" "$result" "$(grep -vE '^[-[:space:]]*$' "$4" | tail -n 1 | tr -d '\r' | cut -c1-160)"
}

# single NAME PATTERN COMMAND…
single() {
  local name=$1 pattern=$2 status=0
  shift 2
  timeout --kill-after=5 "$LIMIT" "$@" >"$logs/$name" 2>&1 </dev/null || status=$?
  report "$name" "$status" "$pattern" "$logs/$name"
}

# pair NAME PATTERN SERVER… -- CLIENT…   runs both under roci-run, in a network NAME. Both must exit with status 0. The client
# is started when the server has a device or listens on a TCP port, and again while it is refused.
pair() {
  local name=$1 pattern=$2 server=() status=0 served=0 end=$((SECONDS + LIMIT)) pid
  shift 2
  while [[ $1 != -- ]]; do server+=("$1") && shift; done
  shift
  in_network() { "$run" --list 2>/dev/null | awk -v net="$name" '$1 == net && $3 !~ /^0\// {found = 1} END {exit !found}'; }
  listens() { [[ -n $(ss --no-header --listening --tcp --numeric) ]]; }
  timeout --kill-after=5 "$LIMIT" "$run" --net "$name" "${server[@]}" >"$logs/$name.server" 2>&1 </dev/null &
  pid=$!
  until in_network || listens || ! kill -0 "$pid" 2>/dev/null || ((SECONDS > end)); do sleep 0.1; done
  while true; do
    status=0
    timeout --kill-after=5 "$LIMIT" "$run" --net "$name" "$@" >"$logs/$name" 2>&1 </dev/null || status=$?
    if ((status == 0)) && ! grep -qE "$REFUSED" "$logs/$name"; then break; fi
    if ! kill -0 "$pid" 2>/dev/null || ((SECONDS > end)); then
      ((status != 0)) || status=1
      break
    fi
    sleep 0.3
  done
  ((status == 0)) || kill "$pid" 2>/dev/null
  wait "$pid" || served=$?
  if ((status == 0 && served != 0)); then
    report "$name (server)" "$served" "$pattern" "$logs/$name.server"
  else
    report "$name" "$status" "$pattern" "$logs/$name"
  fi
}

# twice NAME PATTERN COMMAND…   the same command as server and, with the server's address, as client
twice() {
  local name=$1 pattern=$2
  shift 2
  pair "$name" "$pattern" "$@" -- "$@" 127.0.0.1
}

for program in perf switch run top pcap cc lab; do
  single "roci-$program --version" "^roci-$program [0-9.]+$" "$top/bin/roci-$program" --version
done
single roci-perf 'verified' "$top/bin/roci-perf" write bw --loopback --verify -n 1000
single roci-lab . "$top/bin/roci-lab" run "$top/share/rocinante/config/lab/incast.yaml" --out "$PWD/lab"

# Programs of perftest and rdma-core; Debian 13's load libmlx5 of rdma-core 56.
for program in ib_write_bw ib_send_bw ib_read_bw; do
  twice "$program" '^ *65536 +1000 ' "$program" -d roci0 -n 1000 -F -p "$PORT"
done
for program in ib_write_lat ib_send_lat ib_read_lat ib_atomic_lat; do
  twice "$program" '^ *[28] +1000 ' "$program" -d roci0 -n 1000 -F -p "$PORT"
done
twice ibv_rc_pingpong 'iters in' ibv_rc_pingpong -d roci0 -g 1 -c
twice ibv_ud_pingpong 'iters in' ibv_ud_pingpong -d roci0 -g 1 -c
single ibv_devinfo 'state:.*PORT_ACTIVE' "$run" --net devinfo ibv_devinfo -d roci0

rping=(rping -a 10.77.0.1 -C 20 -V -v)
pair rping 'ping data: rdma-ping-19' "${rping[@]}" -s -- "${rping[@]}" -c
pair ucmatose 'return status 0' ucmatose -b 10.77.0.1 -- ucmatose -s 10.77.0.1
pair udaddy 'return status 0' udaddy -b 10.77.0.1 -- udaddy -s 10.77.0.1
pair rstream '^1m_bw' rstream -b 10.77.0.1 -- rstream -s 10.77.0.1

# Debian 13's ucx_perftest calls MPI_Init unless its input is a terminal. UCX 1.18 flushes the memory of the peer in its
# default fence mode, which its transport rc_v supports for no device (`flush(remote) is not supported`).
export UCX_NET_DEVICES=roci0:1 UCX_FENCE_MODE=weak
for transport in rc_v ud_v; do
  for test in tag_lat ucp_put_bw ucp_get; do
    command="env UCX_TLS=$transport,self ucx_perftest -t $test -s 4096 -n 1000 -w 10 -p $PORT"
    pair "ucx_perftest-$transport-$test" '^Final:' script -qec "$command" /dev/null -- \
      script -qec "$command 127.0.0.1" /dev/null
  done
done

for transport in rc_v ud_v; do
  job=(env UCX_TLS="$transport,self" mpirun -n 2 --oversubscribe --mca pml ucx --mca osc ucx
    --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any --mca mpi_yield_when_idle 1 "$PWD/mpi-check")
  if mpicc -O2 -o "$PWD/mpi-check" "$here/mpi_check.c" >"$logs/mpicc" 2>&1; then
    single "mpirun-$transport" '2 ranks: all bytes as they should be' "$run" --net mpirun "${job[@]}"
  else
    report mpicc 1 . "$logs/mpicc"
  fi
done

for verb in write read send; do
  pair "fio-$verb" 'io=4096KiB' \
    fio --name=server --ioengine=rdma --bs=64k --size=4m --port="$PORT" --rw=read --iodepth=64 -- \
    fio --name=client --ioengine=rdma --bs=64k --size=4m --port="$PORT" --rw=write --iodepth=1 --verb="$verb" \
    --hostname=10.77.0.1
done

# fi_pingpong first connects by TCP to the address of the server. The server then opens its device first, so that it has the
# first slot of the network.
for endpoint in 'verbs msg 1m' 'verbs;ofi_rxm rdm 1m' 'verbs dgram 4k'; do
  read -r provider kind largest <<<"$endpoint"
  command=(fi_pingpong -p "$provider" -e "$kind" -c -I 10)
  pair "fi_pingpong-$kind" "^$largest +10 +=10 " "${command[@]}" -- "${command[@]}" 10.77.0.1
done

single pyverbs '^pyverbs: received' "$run" --net pyverbs python3 "$here/pyverbs_check.py"
exit "$failed"
