"""TCP ports of this machine, for tests that start third-party servers."""

import pathlib
import socket


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Returns whether a socket listens on the port."""
    wanted = f":{port:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if (fields[1] + " ").endswith(wanted) and fields[3] == "0A":
                return True
    return False
