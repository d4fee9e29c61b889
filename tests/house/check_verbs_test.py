#!/usr/bin/env python3
"""Tests that check_verbs.py can fail: each test makes correct pages and breaks one of them."""

import pathlib
import tempfile
import unittest

import check_verbs

HEADER = "".join(f"enum {name} {{\n\tIBV_{name.upper()},\n}};\n" for name in check_verbs.ENUMS)
HEADER += "".join(f"struct {name} {{\n\tint\t\t{name}_one;\n\tchar\t{name}_two[64];\n}};\n" for name in check_verbs.STRUCTS)
HEADER += """int ibv_declared(struct ibv_context *context);
static inline struct ibv_mw *ibv_inline(void)
{
	return ibv_used();
}
static inline int
ibv_two_lines(int value);
uint8_t ibv_wc_read_sl(void);
/* ibv_in_comment(), or
int ibv_in_comment(void); */
const char *ibv_wc_status_str(int status);
"""
CALLS = ["ibv_declared", "ibv_inline", "ibv_two_lines", "ibv_wc_read_"]
NAMES = [f"IBV_{name.upper()}" for name in check_verbs.ENUMS]
NAMES += [f"{name}_{field}" for name in check_verbs.STRUCTS for field in ("one", "two")]
NAMES += CALLS
TRUE_SOURCES = {
    "docs/verbs.md": "`wire:Bytes.arrive` RC_ACK " + " ".join(NAMES) + "\n| What | Test |\n|---|---|\n| a | `wire:Bytes.go` |\n",
    "docs/security.md": "| a | `wire:Bytes.go` | `wire:Python.test_one` |\n",
    "docs/interop.md": "`Bytes.go`, `Bytes.arr…`, `Bytes.*`, `write_bw`\n",
    "docs/robustness.md": "`wire:Bytes.go`\n\n" + check_verbs.ALLOCATIONS + """

| Resource | Limit | At the limit | Counter | Test |
|---|---|---|---|---|
| entry | 16 | dropped | `mads_dropped` | `wire:Bytes.arrive` |
| request | 2^20 | dropped | `overflowed` | `wire:Bytes.arrive` |
| name | 64 | lost | – | `wire:Bytes.arrive` |

## Other tables

| Table | Limit |
|---|---|
| a | of the port |
""",
    "lib/telemetry/counters.cpp": 'names = {\n      "mads_dropped",\n};\n',
    "lib/cm/agent.hpp": "struct Counts {\n  uint64_t overflowed = 0;\n};\n",
    "lib/wire/headers/opcodes.cpp": 'entry(Opcode::kRcAcknowledge, "RC_ACK", kOnly),\n',
    "tests/wire/script_test.py": "class Python(unittest.TestCase):\n    def helper(self):\n    def test_one(self):\n",
    "tests/wire/bytes_test.cpp": "TEST(Bytes, arrive) {}\nTEST_F(Bytes,\n       go) {}\n",
}


class CheckVerbs(unittest.TestCase):
    def complaints(self, changes, header=HEADER):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**TRUE_SOURCES, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check_verbs.check(folder, header))

    def changed(self, page, old, new):
        return {page: TRUE_SOURCES[page].replace(old, new)}

    def test_accepts_correct_pages(self):
        self.assertEqual(self.complaints({}), [])

    def test_reports_missing_test(self):
        for page in check_verbs.PAGES:
            self.assertEqual(self.complaints(self.changed(page, "Bytes.go", "Bytes.went")),
                             [f"{page}: there is no test wire:Bytes.went"])

    def test_reports_missing_test_that_is_named_without_program(self):
        for name in ("Bytes.leave", "Bytes.lea…", "Octets.*"):
            self.assertEqual(self.complaints({"docs/interop.md": f"`{name}`"}), [f"docs/interop.md: there is no test {name}"])

    def test_reports_missing_python_test(self):
        for name in ("Python.test_two", "Python.helper", "Bytes.test_one"):
            self.assertEqual(self.complaints(self.changed("docs/security.md", "Python.test_one", name)),
                             [f"docs/security.md: there is no test wire:{name}"])

    def test_reports_test_of_another_program(self):
        self.assertEqual(len(self.complaints(self.changed("docs/robustness.md", "wire:Bytes.go", "port:Bytes.go"))), 1)

    def test_reports_name_missing_from_page(self):
        for name in NAMES + ["RC_ACK"]:
            self.assertEqual(len(self.complaints(self.changed("docs/verbs.md", f" {name} ", " ") if name != NAMES[-1] else
                                                 self.changed("docs/verbs.md", name, "x"))), 1, name)

    def test_reports_row_without_test(self):
        self.assertEqual(self.complaints(self.changed("docs/verbs.md", "| a | `wire:Bytes.go` |", "| a | partial |")),
                         ["docs/verbs.md: no test in the row | a | partial |"])

    def test_reports_allocation_without_limit_behavior_counter_or_test(self):
        page = "docs/robustness.md"
        for old, new, complaint in (
                ("| 16 |", "| some |", "the limit has no number"),
                ("| lost |", "|  |", "the behavior at the limit is missing"),
                ("`mads_dropped`", "`mads_lost`", "there is no counter `mads_lost`"),
                ("`mads_dropped`", "", "there is no counter"),
                ("| – | `wire:Bytes.arrive` |", "| – | by reading |", "no test"),
                ("| 64 | lost |", "| 64 |", "4 cells; required are 5")):
            with self.subTest(new):
                found = self.complaints(self.changed(page, old, new))
                self.assertEqual(len(found), 1, found)
                self.assertIn(complaint, found[0])

    def test_reports_allocation_whose_test_does_not_exist(self):
        self.assertEqual(self.complaints(self.changed("docs/robustness.md", "| – | `wire:Bytes.arrive` |",
                                                      "| – | `wire:Bytes.left` |")),
                         ["docs/robustness.md: there is no test wire:Bytes.left"])

    def test_reports_missing_table_of_allocations(self):
        for old, new in ((check_verbs.ALLOCATIONS, "## Limits"), ("| Counter |", "| Count |")):
            self.assertEqual(len(self.complaints(self.changed("docs/robustness.md", old, new))), 1, new)

    def test_reports_enums_and_structs_missing_from_header(self):
        self.assertEqual(len(self.complaints({}, header="")), len(check_verbs.ENUMS) + len(check_verbs.STRUCTS))


if __name__ == "__main__":
    unittest.main()
