#!/usr/bin/env python3
"""Checks docs/verbs.md and docs/robustness.md against the sources: every test named there exists, and docs/verbs.md
contains every name of the verbs header and every wire opcode.

usage: check_verbs.py [infiniband/verbs.h [repository]]
"""

import pathlib
import re
import sys

from findings import report
from named_tests import NAMED_TEST, DefinedTests

ENUMS = ("ibv_wr_opcode", "ibv_wc_status", "ibv_wc_opcode", "ibv_wc_flags", "ibv_event_type", "ibv_qp_attr_mask",
         "ibv_access_flags", "ibv_send_flags", "ibv_qp_state", "ibv_qp_type", "ibv_mig_state", "ibv_mw_type",
         "ibv_rereg_mr_flags", "ibv_srq_attr_mask")
STRUCTS = ("ibv_qp_attr", "ibv_qp_init_attr", "ibv_device_attr", "ibv_port_attr", "ibv_srq_attr", "ibv_wc")
PAGES = ("docs/verbs.md", "docs/robustness.md")


def enumerators(header, enum):
    body = re.search(rf"enum\s+{enum}\s*\{{(.*?)\}}", header, re.DOTALL)
    return re.findall(r"^\s*(IBV_\w+)", body.group(1), re.MULTILINE) if body else []


def fields(header, struct):
    body = re.search(rf"struct\s+{struct}\s*\{{(.*?)^\}};", header, re.DOTALL | re.MULTILINE)
    return re.findall(r"(\w+)(?:\[\w+\])?;", body.group(1)) if body else []


def wire_opcodes(root):
    return re.findall(r'entry\(Opcode::\w+,\s*"(\w+)"', (root / "lib/wire/headers/opcodes.cpp").read_text())


def check(root, header):
    root = pathlib.Path(root)
    tests = DefinedTests(root)
    for page in PAGES:
        for program, test in NAMED_TEST.findall((root / page).read_text()):
            if not tests.has(program, test):
                yield f"{page}: there is no test {program}:{test}"
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
