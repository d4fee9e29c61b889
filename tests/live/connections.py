"""Tests of connections that are rejected, not answered, or killed. Each check returns an error text, or ''."""

import re
import time

import guest

NOBODY = 99  # Host number without an owner.
RETRIES_EXCEEDED = re.compile("Failed status 12|transport retry counter exceeded")


def refused_connection(bench, roci_serves):
    """No process listens on the server's port. The client's connection is rejected."""
    server, client = bench.roles(roci_serves)
    # Opens the device, but listens on another port.
    holder = bench.start(server, f"ucmatose -p 7999 -b {guest.address(server.rdma_host)}")
    time.sleep(1)
    begin = time.monotonic()
    status, text = bench.start(client, f"rping -c -C 1 -a {guest.address(server.rdma_host)} -p 7998").wait(30)
    took = time.monotonic() - begin
    holder.kill()
    if status in (None, 0) or "REJECTED" not in text:
        return f"exit status {status} after {took:.1f} s\n{text}"
    return "" if took < 10 else f"rejected only after {took:.1f} s"


def address_without_owner(bench, roci_serves):
    """No host has the address, so the resolution fails."""
    _, client = bench.roles(roci_serves)
    status, text = bench.start(client, f"rping -c -C 1 -a {guest.address(NOBODY)}").wait(60)
    return "" if status not in (None, 0) and ("RESOLVE" in text or "ERROR" in text or "UNREACH" in text) else f"exit status {status}\n{text}"


def killed_peer(bench, roci_serves):
    """The server is killed while the client writes. The client ends with a failed completion; a new connection
    succeeds. The retry count is 3 because soft-RoCE retransmits without limit at 7."""
    server, client = bench.roles(roci_serves)
    flags = "-F -R --retry_count=3 -D 30"
    victim = bench.start(server, f"ib_write_bw {flags} -d {server.device} -x {server.gid_index[4]}")
    time.sleep(1)
    survivor = bench.start(client, f"ib_write_bw {flags} -d {client.device} -x {client.gid_index[4]} {guest.address(server.rdma_host)}")
    time.sleep(3)
    victim.kill()
    begin = time.monotonic()
    status, text = survivor.wait(20)
    took = time.monotonic() - begin
    if status in (None, 0) or not RETRIES_EXCEEDED.search(text):
        return f"the survivor: exit status {status} after {took:.1f} s\n{text[-800:]}"
    for _ in range(3):
        victim = bench.start(server, f"rping -s -C 10 -v -a {guest.address(server.rdma_host)}")
        time.sleep(1)
        status, text = bench.start(client, f"rping -c -C 10 -v -a {guest.address(server.rdma_host)}").wait(30)
        server_status, server_text = victim.wait(10)
        if status != 0 or server_status != 0:
            return f"reconnected: client {status}, server {server_status}\n{text}\n{server_text}"
    return ""


def killed_connection(bench, _):
    """The soft-RoCE server of an rdma_cm connection is killed. Its kernel sends a DREQ, so the client exits. Not tested
    with a Rocinante server: no process sends a DREQ for it, and a soft-RoCE client with retry count 7 (rping) waits
    forever."""
    victim = bench.start(bench.rxe, f"rping -s -a {guest.address(guest.GUEST)}")
    time.sleep(1)
    survivor = bench.start(bench.roci, f"rping -c -a {guest.address(guest.GUEST)}")
    time.sleep(2)
    victim.kill()
    status, text = survivor.wait(30)
    return "" if status is not None and "DISCONNECT EVENT" in text else f"the survivor: exit status {status}\n{text[-800:]}"


BOTH_ROLES = (True, False)  # Values of roci_serves.
CHECKS = ((refused_connection, BOTH_ROLES), (address_without_owner, BOTH_ROLES), (killed_peer, BOTH_ROLES), (killed_connection, (False,)))
