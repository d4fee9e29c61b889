#!/usr/bin/env python3
"""Checks docs/verbs.md, docs/robustness.md, docs/security.md and docs/interop.md against the sources: every test named
there exists, docs/verbs.md contains every name and call of the verbs header and every wire opcode, and each row of the table of
allocations in docs/robustness.md has a limit, a counter and a test.

usage: check_verbs.py [infiniband/verbs.h [repository]]
"""

import pathlib
import re
import sys

from findings import report
from named_tests import NAMED_TEST, SHORT_NAMED_TEST, DefinedTests

ENUMS = ("ibv_wr_opcode", "ibv_wc_status", "ibv_wc_opcode", "ibv_wc_flags", "ibv_event_type", "ibv_qp_attr_mask",
         "ibv_access_flags", "ibv_send_flags", "ibv_qp_state", "ibv_qp_type", "ibv_mig_state", "ibv_mw_type",
         "ibv_rereg_mr_flags", "ibv_srq_attr_mask")
STRUCTS = ("ibv_qp_attr", "ibv_qp_init_attr", "ibv_device_attr", "ibv_port_attr", "ibv_srq_attr", "ibv_wc")
# Not calls of a device: conversions, texts of values, and functions of providers.
OTHER_CALLS = {"ibv_cq_ex_to_cq", "ibv_event_type_str", "ibv_flow_label_to_udp_sport", "ibv_inc_rkey",
               "ibv_is_qpt_supported", "ibv_node_type_str", "ibv_port_state_str", "ibv_qp_to_qp_ex", "ibv_rate_to_mbps",
               "ibv_rate_to_mult", "ibv_resolve_eth_l2_from_gid", "ibv_static_providers", "ibv_wc_status_str"}
PAGES = ("docs/verbs.md", "docs/robustness.md", "docs/security.md")
SHORT_NAMES = "docs/interop.md"  # names tests without their program
ALLOCATIONS = "## Allocations by unauthenticated senders"
ALLOCATION_COLUMNS = ["Resource", "Limit", "At the limit", "Counter", "Test"]
NO_COUNTER = "–"


def enumerators(header, enum):
    body = re.search(rf"enum\s+{enum}\s*\{{(.*?)\}}", header, re.DOTALL)
    return re.findall(r"^\s*(IBV_\w+)", body.group(1), re.MULTILINE) if body else []


def fields(header, struct):
    body = re.search(rf"struct\s+{struct}\s*\{{(.*?)^\}};", header, re.DOTALL | re.MULTILINE)
    return re.findall(r"(\w+)(?:\[\w+\])?;", body.group(1)) if body else []


def calls(header):
    """Functions that the header declares or defines, except OTHER_CALLS. `ibv_wc_read_*` counts as one."""
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"^(?:static inline )?(?:const )?(?:struct |enum )?\w+[\s*]+(ibv_\w+)\s*\(", header, re.MULTILINE)
    return sorted({re.sub(r"^(ibv_wc_read)_\w+", r"\1_", name) for name in found if name not in OTHER_CALLS})


def wire_opcodes(root):
    return re.findall(r'entry\(Opcode::\w+,\s*"(\w+)"', (root / "lib/wire/headers/opcodes.cpp").read_text())


def counters(root):
    """Names of the counters of a host, and of the connection manager."""
    host = re.findall(r'^ *"(\w+)",$', (root / "lib/telemetry/counters.cpp").read_text(), re.MULTILINE)
    manager = re.search(r"struct Counts \{(.*?)^\};", (root / "lib/cm/agent.hpp").read_text(), re.DOTALL | re.MULTILINE)
    return {*host, *re.findall(r"uint64_t (\w+) = 0;", manager.group(1) if manager else "")}


def check_allocations(root):
    page = (root / "docs/robustness.md").read_text()
    _, found, section = page.partition(f"\n{ALLOCATIONS}\n")
    if not found:
        yield f"docs/robustness.md: no section '{ALLOCATIONS}'"
        return
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in section.split("\n## ")[0].splitlines() if line.startswith("|")]
    if rows[:1] != [ALLOCATION_COLUMNS] or len(rows) < 3:
        yield f"docs/robustness.md: the table of allocations has not the columns {', '.join(ALLOCATION_COLUMNS)}, or no row"
        return
    known = counters(root)
    for row in rows[2:]:
        where = f"docs/robustness.md: allocation '{row[0][:40]}'"
        if len(row) != len(ALLOCATION_COLUMNS):
            yield f"{where}: {len(row)} cells; required are {len(ALLOCATION_COLUMNS)}"
            continue
        _, limit, behavior, counter, test = row
        if not re.search(r"\d", limit):
            yield f"{where}: the limit has no number"
        if not behavior:
            yield f"{where}: the behavior at the limit is missing"
        name = re.fullmatch(r"`(\w+)`", counter)
        if counter != NO_COUNTER and not (name and name.group(1) in known):
            yield f"{where}: there is no counter {counter}; allowed are names of counters and '{NO_COUNTER}'"
        if not NAMED_TEST.search(test):
            yield f"{where}: no test"


def check(root, header):
    root = pathlib.Path(root)
    tests = DefinedTests(root)
    for page in PAGES:
        for program, test in NAMED_TEST.findall((root / page).read_text()):
            if not tests.has(program, test):
                yield f"{page}: there is no test {program}:{test}"
    for test, rest in SHORT_NAMED_TEST.findall((root / SHORT_NAMES).read_text()):
        if not tests.any_has(test, rest != ""):
            yield f"{SHORT_NAMES}: there is no test {test}{rest}"
    yield from check_allocations(root)
    page = (root / "docs/verbs.md").read_text()
    words = set(re.findall(r"\w+", page))
    for kind, names, of in [("enumerator", enumerators, ENUMS), ("field", fields, STRUCTS)]:
        for owner in of:
            found = names(header, owner)
            if not found:
                yield f"the header has no {owner}"
            for name in found:
                if name not in words:
                    yield f"docs/verbs.md: {kind} {name} of {owner} is not there"
    for name in calls(header):
        if name not in words:
            yield f"docs/verbs.md: call {name} is not there"
    for name in wire_opcodes(root):
        if name not in words:
            yield f"docs/verbs.md: wire opcode {name} is not there"
    for line in page.splitlines():
        if line.startswith("| ") and not NAMED_TEST.search(line) and not line.endswith("| Test |"):
            yield f"docs/verbs.md: no test in the row {line[:60]}"


def main():
    header = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/include/infiniband/verbs.h")
    root = sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2]
    return report(check(root, header.read_text()))


if __name__ == "__main__":
    sys.exit(main())
