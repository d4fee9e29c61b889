"""both.py ROCI_RUN SERVER_ARGUMENTS -- PROGRAM [ARGUMENT]…: runs PROGRAM as server and, when it has a slot in a
network, as client with SERVER_ARGUMENTS appended. Prints the output of both, each line prefixed with its side. A
server that does not exit within LINGER after the client is killed."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LIMIT, LINGER = 100, 5  # seconds


def main():
    split = sys.argv.index("--")
    roci_run, *to_server = sys.argv[1:split]
    program = sys.argv[split + 1:]
    with tempfile.TemporaryDirectory(prefix="both-") as folder:
        environment = {**os.environ, "ROCI_RUNTIME": str(pathlib.Path(folder, "r")), "RUNTIME_DIRECTORY": folder}
        for name in ("ROCI_NET", "ROCI_CONFIG", "ROCI_CC", "ROCI_STATS"):
            environment.pop(name, None)

        def start(*words):
            return subprocess.Popen([roci_run, "--net", "both", *words], env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def places():
            listed = subprocess.run([roci_run, "--list"], env=environment, capture_output=True, text=True, check=False)
            return len(re.findall(r"\d+: ", listed.stdout))

        sides = {"server": start(*program)}
        try:
            end = time.monotonic() + LIMIT
            while not places() and sides["server"].poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            sides["client"] = start(*program, *to_server)
            status = 0
            for side in ("client", "server"):
                stopped = False
                try:
                    text, _ = sides[side].communicate(timeout=LIMIT if side == "client" else LINGER)
                except subprocess.TimeoutExpired:
                    stopped = True
                    sides[side].kill()
                    text, _ = sides[side].communicate()
                for line in text.splitlines():
                    print(f"{side}: {line}")
                if not stopped or side == "client":
                    status = status or sides[side].returncode
            return status
        finally:
            for process in sides.values():
                if process.poll() is None:
                    process.kill()
                    process.wait()
            subprocess.run([roci_run, "--stop", "both"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False)


if __name__ == "__main__":
    sys.exit(main())
