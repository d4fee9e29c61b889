"""TCP ports of this machine, for tests that run servers of others on it."""

import pathlib
import socket


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Whether somebody waits for connections there."""
    wanted = f":{port:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if (fields[1] + " ").endswith(wanted) and fields[3] == "0A":
                return True
    return False
