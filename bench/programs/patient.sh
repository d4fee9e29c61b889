#!/bin/sh
# patient.sh COMMAND…   runs a client; once more, and again for ten seconds at most, when it could not connect: of two hosts that
# share memory the server listens only when it has seen the other one.
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
