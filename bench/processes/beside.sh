#!/bin/sh
# beside.sh CPU[,CPU…] COMMAND…   runs the command in parallel with a loop on each of the CPUs that uses all the processor
# time it gets.
loops=''
for cpu in $(echo "$1" | tr , ' '); do
  # The variables are those of the inner shell.
  # shellcheck disable=SC2016
  taskset -c "$cpu" sh -c 'while kill -0 "$0" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done' $$ &
  loops="$loops $!"
done
shift
"$@"
status=$?
# A list of process ids.
# shellcheck disable=SC2086
kill $loops 2>/dev/null
exit $status
