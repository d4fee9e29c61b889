#!/bin/sh
# beside.sh N COMMAND…   runs the command in parallel with N loops that use all the processor time they get.
loops=''
for _ in $(seq "$1"); do
  sh -c 'while kill -0 "$0" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done' $$ &
  loops="$loops $!"
done
shift
"$@"
status=$?
# A list of process ids.
# shellcheck disable=SC2086
kill $loops 2>/dev/null
exit $status
