#!/bin/sh
# patient.sh COMMAND…   runs a client, and repeats it for up to ten seconds if it cannot connect: with two hosts over shared
# memory, the server listens only after it has detected the other host.
end=$(($(date +%s) + 10))
until output=$("$@" 2>&1); do
  case $output in
    *"Couldn't connect"* | *"Unable to connect"* | *"does not listen"*) [ "$(date +%s)" -lt "$end" ] || break ;;
    *) break ;;
  esac
  sleep 0.05
done
printf '%s\n' "$output"
case $output in *"#bytes"*) exit 0 ;; *) exit 1 ;; esac
