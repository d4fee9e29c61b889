"""Assigns code to the stages of message processing.

A sample of a profile is a symbol in a library, or a chain of frames in the measured program: the innermost inlined
function first, then its callers. The first frame that matches a rule determines the stage. Common helpers (the
standard library, intrinsics, lib/base, work queues, counters) have no rule, so their time counts for their caller.
"""

import os
import re

POSTING, REQUESTER, HEADERS, ICRC, COPYING = "posting", "requester", "headers", "ICRC", "copying"
CHECKS, BUFFERS, PORT, PARSING, RESPONDER = "memory checks", "buffers", "port", "parsing", "responder"
COMPLETIONS, ENGINE, TIMERS, APPLICATION = "completions", "engine", "timers", "application"
CLOCK, WAITING, KERNEL, REST = "clock", "waiting", "kernel", "rest"

# Stages in the order of processing, with their descriptions.
STAGES = {
    APPLICATION: "apps/roci-perf: creation of requests, counting of completions",
    POSTING: "post_send and post_recv: check of a request, write into the work queue",
    REQUESTER: "selection of the next packet, window, PSNs, retransmission state; reading of posted work requests",
    HEADERS: "writing of Ethernet, IP, UDP, BTH and further headers",
    COPYING: "copying of payload by memcpy",
    ICRC: "checksum of headers and payload, including the copy if it is made in the same pass",
    CHECKS: "keys, ranges and rights of memory regions",
    BUFFERS: "packet buffers: allocation, prefetch, release",
    PORT: "rx_burst and tx_burst including the device, also empty bursts",
    PARSING: "parsing of received headers",
    RESPONDER: "order, execution and responses of received requests",
    COMPLETIONS: "processing of acknowledgments, retirement of requests, writing and polling of completions",
    ENGINE: "the worker: scheduling of queue pairs, doorbells, look-up of queue pairs",
    TIMERS: "time-outs",
    CLOCK: "reading the clock, once a round",
    WAITING: "the poll loop around it all, yields, what the application does between polls",
    KERNEL: "interrupts, page faults, yields of an idle thread",
    REST: "what no rule knows",
}

# A rule is a stage and a pattern of "FILE FUNCTION". The first rule that matches a frame applies.
_SOURCES = (
    (ICRC, r"^lib/wire/icrc/|^\S+ crc32_"),
    (COPYING, r"^lib/wire/roce/roce_writer\.\w+ .*\bcopy_payload\b"
              r"|^lib/transport/messages/message_packet\.\w+ .*\bfill_payload\b"),
    (COPYING, r"^lib/transport/messages/scatter\.hpp"),
    (CHECKS, r"^lib/memory/"),
    (BUFFERS, r"^lib/engine/transmit/tx_buffers|^lib/port/dpdk/(mbuf_pool|buffer_memory)"
              r"|^\S*/rte_(mempool|mbuf|ring)\w*\.h "),
    (HEADERS, r"^lib/wire/(roce/roce_writer|net/link_header|extensions/extension_)"),
    (PARSING, r"^lib/wire/(roce/(frame|packet)|extensions/extensions)"),
    (CLOCK, r"^lib/base/time/tick_clock|^lib/port/realtime_runner\.\w+ .*\bmonotonic_now\b"),
    (PORT, r"^lib/port/(dpdk/ethdev_port|port|sim/faulty_port|capture/)|^\S*/rte_ethdev\w*\.h "),
    (TIMERS, r"^lib/base/time/timing_wheel"),
    (POSTING, r"^lib/transport/queue_pair/queue_pair_core\.\w+ .*\b(post_\w+|check_send|check_list)\b"
              r"|^lib/device/api/queue_pair\."),
    (COMPLETIONS, r"^lib/transport/(rc/requester_receive|queues/(completion_ring|channel_queue)"
                  r"|messages/receive_completion)"),
    (COMPLETIONS, r"^lib/transport/queue_pair/queue_pair_core\.cpp .*\bcomplete_\w+"),
    (RESPONDER, r"^lib/transport/(rc/responder|queue_pair/reorder_buffer|queues/shared_receive_ring)"),
    (RESPONDER, r"^lib/transport/rc/reliable_queue_pair\.cpp"),
    (REQUESTER, r"^lib/transport/(rc/requester|messages/message_packet|queue_pair/extension_session)"),
    (WAITING, r"^lib/engine/worker/worker\.\w+ .*\bWorker::(poll|next_deadline|begin_round|serve_protocols|end_round)\b"),
    (WAITING, r"^lib/engine/transmit/transmit_scheduler\.\w+ .*\bwake_\w*waiting\b|^lib/port/neighbors/"),
    (WAITING, r"^lib/device/(host/host|api/device|api/completion)\.|^lib/port/realtime_runner"),
    (ENGINE, r"^lib/engine/|^lib/device/"),
    (WAITING, r"^apps/roci-perf/(connection/(control|peer)|hosts/watchdog|measurement/session)"
              r"|^apps/roci-perf/measurement/bandwidth\.cpp .*\bserve_bandwidth\b"),
    (APPLICATION, r"^apps/"),
)
# For libraries without sources in this tree: the pattern is of "LIBRARY SYMBOL".
_LIBRARIES = (
    (CLOCK, r"^\[vdso\]|^libc\S* .*clock_gettime|^libstdc\S* .*clock::now"),
    (WAITING, r"^libc\S* .*(sched_yield|nanosleep|pause|futex)"),
    (COPYING, r"^libc\S* .*mem(cpy|move|set|cmp)"),
    (BUFFERS, r"^librte_(mempool|mbuf|ring\b|ring\.)"),
    (PORT, r"^librte_(net_|ethdev|bus_)"),
    (ICRC, r"^libisal"),
    (KERNEL, r"^\[(kernel|guest\.kernel|bpf)"),
)
SOURCES = tuple((stage, re.compile(pattern)) for stage, pattern in _SOURCES)
LIBRARIES = tuple((stage, re.compile(pattern)) for stage, pattern in _LIBRARIES)


def within_the_tree(path):
    """Returns the path relative to the top of the tree, wherever the program was built; other paths unchanged."""
    path = os.path.normpath(path)
    if path.startswith(("/usr/lib/", "/usr/include/")):
        return path
    found = re.match(r"(?:.*/)?((?:lib|apps|include/roci|switch|cc)/.*)$", path)
    return found.group(1) if found else path


def decide(rules, text):
    return next((stage for stage, pattern in rules if pattern.search(text)), None)


def of_frames(frames):
    """Returns the stage of an address in the measured program, given pairs of function and file, the innermost
    first."""
    stages = (decide(SOURCES, f"{within_the_tree(file)} {function}") for function, file in frames)
    return next((stage for stage in stages if stage), REST)


def of_library(path, symbol):
    return decide(LIBRARIES, f"{os.path.basename(path)} {symbol}") or REST
