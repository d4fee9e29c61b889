"""The tables of docs/interop.md that odd_packets.py generates, one for each kernel."""

import collections
import pathlib
import re

import odd_table
from odd_assessments import BOTH, HABITS, ASSESSMENTS, KERNELS, LINUX, ROCINANTE, Crash

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "interop.md"
MOST_PARTS = 2  # Maximum number of list items in a cell; longer lists omit the items that both stacks have in common.

Result = collections.namedtuple("Result", "entry found assessment")


def count_text(packets, same, verdicts):
    return (f"{packets} packets: {same} with the same result, {verdicts[ROCINANTE]} where only Rocinante conforms, "
            f"{verdicts[LINUX]} where only Linux conforms, {verdicts[BOTH]} where both conform")


def count_line(results):
    verdicts = collections.Counter(result.assessment.right if result.assessment else "" for result in results if result.found)
    line = count_text(len(results), sum(not result.found for result in results), verdicts)
    return line + (f", {verdicts['']} not assessed" if verdicts[""] else "")


def begin_of(kernel):
    return f"<!-- written by tests/live/odd_packets.py --kernel {kernel} --write -->\n"


END = "<!-- end of what is written by tests/live/odd_packets.py -->\n"


def short(text):
    """Omits the contents of memory and payload."""
    text = re.sub(r"(\w+) at=(\d+) length=(\d+) (crc=)?[0-9a-f]+", r"\1 \2 to \3", text)
    text = re.sub(r"(\w+) (\d+) to (\d+)", lambda found: f"{found[1]} {found[2]} to {int(found[2]) + int(found[3]) - 1}", text)
    return re.sub(r"( bytes) [0-9a-f]{8}\b", r"\1", text)


def cells(found):
    sides = [], []
    for aspect, texts in found.items():
        parts = [text.split(", ") if text else [] for text in texts]
        if max(map(len, parts)) > MOST_PARTS:
            parts = [[part for part in mine if part not in other] for mine, other in (parts, parts[::-1])]
        label = aspect.removeprefix("packets ")
        for side, mine in zip(sides, parts):
            side.append(f"{label}: {short(', '.join(mine)) or 'nothing'}")
    return ["; ".join(side) for side in sides]


def row_of(entry, found, assessment):
    clause = assessment.clause or entry.clause
    if isinstance(assessment, Crash):
        linux, rocinante = "not sent: the kernel panics", "refused"
    else:
        linux, rocinante = cells(found)
    return f"| {entry.name} | {linux} | {rocinante} | {clause} | {assessment.right} | {assessment.why} |\n"


HEAD = "| Packet | Linux | Rocinante | Clause | Conforms | Reason |\n|---|---|---|---|---|---|\n"


def block_of(kernel, results, used, newest_rows):
    """Returns the text of a kernel. Rows equal to those of the newest kernel are omitted."""
    text = f"Linux {kernel}: {count_line(results)}.\n\n"
    text += "| Recurring difference | Packets | Clause | Conforms | Reason |\n|---|---|---|---|---|\n"
    text += "".join(f"| {habit.name} | {used[habit]} | {habit.clause} | {habit.right} | {habit.why} |\n" for habit in HABITS if habit in used)
    rows = [row_of(*result) for result in results if result.found and result.assessment]
    own = [row for row in rows if row not in newest_rows]
    if newest_rows:
        names = {result.entry.name for result in results if result.found}
        text += f"\n{len(rows) - len(own)} of these differences are the same as on Linux {KERNELS[0]}. The others:\n"
        same = [row.split(" | ")[0].removeprefix("| ") for row in newest_rows if row.split(" | ")[0].removeprefix("| ") not in names]
        own += [f"| {name} | the same | the same | | | |\n" for name in same]
    return text + "\n" + HEAD + "".join(own)


def blocks():
    """Returns the text of each kernel on the page."""
    page = PAGE.read_text(encoding="utf-8")
    found = {}
    for kernel in KERNELS:
        _, begin, rest = page.partition(begin_of(kernel))
        if begin:
            found[kernel] = rest.partition(END)[0]
    return found


def rows_on(block):
    return [line + "\n" for line in block.partition(HEAD)[2].split("\n") if line.startswith("| ")]


def update(kernel, results, used, write):
    """Writes the text of a kernel to the page, or compares it with the page. Returns problems."""
    on_page = blocks()
    if kernel not in on_page:
        return [f"{PAGE.name} has no section for Linux {kernel}"]
    newest_rows = [] if kernel == KERNELS[0] else rows_on(on_page[KERNELS[0]])
    block = block_of(kernel, results, used, newest_rows)
    if block == on_page[kernel]:
        return []
    if not write:
        return [f"{PAGE.name} differs from the output of --write"]
    page = PAGE.read_text(encoding="utf-8")
    head, begin, rest = page.partition(begin_of(kernel))
    PAGE.write_text(head + begin + block + END + rest.partition(END)[2], encoding="utf-8")
    return []


def check():
    """Compares the page with the table, as far as possible without sending the packets. Returns problems."""
    entries, problems, newest = odd_table.entries(), [], {}
    problems += [f"assessment of '{name}', which is not in the table" for name in ASSESSMENTS if name not in {entry.name for entry in entries}]
    for kernel, block in blocks().items():
        rows = {row.split(" | ")[0].removeprefix("| "): row for row in rows_on(block)}
        differences = {name: row for name, row in {**newest, **rows}.items() if "| the same | the same |" not in row}
        newest = newest or differences
        assessed = {entry.name: (entry, entry.assessment(kernel)) for entry in entries if entry.assessment(kernel)}
        problems += [f"Linux {kernel}: {name}: not on the page" for name in assessed if name not in differences]
        problems += [f"Linux {kernel}: {name}: on the page, but not assessed" for name in differences if name not in assessed]
        for name, (entry, assessment) in assessed.items():
            end = f" | {assessment.clause or entry.clause} | {assessment.right} | {assessment.why} |\n"
            if not differences.get(name, end).endswith(end):
                problems.append(f"Linux {kernel}: {name}: the page has another assessment")
        count = collections.Counter(assessment.right for _, assessment in assessed.values())
        line = f"Linux {kernel}: {count_text(len(entries), len(entries) - len(assessed), count)}.\n"
        if not block.startswith(line):
            problems.append(f"the page does not begin with '{line.strip()}'")
    return problems if newest else ["the page has no such table"]
