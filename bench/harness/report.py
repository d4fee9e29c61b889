"""Tables for the terminal, or as Markdown for bench/RESULTS.md."""

from harness.ratio import three_digits, with_range

MISSED, MET, UNKNOWN = "missed", "met", "not measured"


def amount(value, unit):
    """Formats a value with 3 digits and its unit; "x" follows without a space."""
    text = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"{text} {unit}" if unit != "x" else f"{text}x"


def plain(headings, rows, right=()):
    """Aligned columns; the last one is not padded."""
    table = [headings, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(headings))]
    for row in table:
        cells = [cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()


def markdown(headings, rows, right=()):
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "|".join("--:" if i in right else "---" for i in range(len(headings))) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def wanted(target, unit):
    if target.of is not None:
        return f"{target.relation} {three_digits(target.value)}"
    return f"{target.relation} {amount(target.value, unit)}"


def outcome(verdict):
    return UNKNOWN if verdict.met is None else MET if verdict.met else MISSED


def verdicts_of(result, of):
    return "; ".join(f"{wanted(v.target, result.own.figure.unit)}: {outcome(v)}" for v in result.verdicts
                     if v.target.of == of)


HEADINGS = ("case", "figure", "median", "+-", "ratio: median (range)", "target", "")


def figure_rows(results, numbers):
    """A row for the figure of this tree and one for each peer or limit; `ratio` is the first divided by the other."""
    for result in results:
        for other in (None, *result.against):
            one = result.own if other is None else other.other
            ratio = with_range(other.ratio) if other is not None and other.ratio is not None else ""
            value, spread = ("failed", "") if one.error else (amount(one.median, one.figure.unit), f"{one.spread:.0f} %")
            yield (result.case.name if other is None else "", one.figure.name if other is None else f"  {one.figure.name}",
                   value, spread, ratio, verdicts_of(result, None if other is None else one.figure.name),
                   f"[{numbers[one.figure.command]}]")


def part_of(result, name):
    """Returns a cell: the median of that part and its fraction of the case's figure."""
    part = next((one for one in result.parts if one.figure.name == name), None)
    if part is None:
        return ""
    share = result.share(part)
    if share is None:
        return "failed"
    return f"{part.median:.1f} ({share:.0%})" if part.median else "-"


def part_rows(results):
    """Yields a row per part, with a column for each case that has parts."""
    for name in dict.fromkeys(part.figure.name for result in results for part in result.parts):
        yield (name, *(part_of(result, name) for result in results))


def part_lines(results, as_markdown):
    results = [result for result in results if result.parts]
    if results:
        unit = results[0].own.figure.unit
        headings = (f"{unit} (share)", *(result.case.name for result in results))
        yield from (markdown if as_markdown else plain)(headings, list(part_rows(results)), range(1, len(headings)))
        yield ""


def loads(result):
    before, after = ("/".join(f"{value:.1f}" for value in load) for load in (result.load_before, result.load_after))
    return f"load average before {before or '?'}, after {after or '?'}"


def group_lines(result, place, as_markdown):
    """Yields all lines of one group."""
    group = result.group
    times = "1 round" if result.rounds == 1 else f"{result.rounds} rounds"
    yield f"{'### ' if as_markdown else ''}{group.name}: {group.what}"
    yield ""
    yield f"{times}; {loads(result)}."
    yield from filter(None, (group.notes, result.near))
    yield ""
    numbers = {command: i + 1 for i, command in enumerate(group.commands)}
    yield from (markdown if as_markdown else plain)(HEADINGS, list(figure_rows(result.cases, numbers)), right=(2, 3))
    yield ""
    yield from part_lines(result.cases, as_markdown)
    if as_markdown:
        yield "```sh"
    for command, number in numbers.items():
        yield f"[{number}] {place.line(command)}"
    if as_markdown:
        yield "```"
    yield from dict.fromkeys(f"failed: [{numbers[one.figure.command]}] {one.error}" for case in result.cases
                             for one in case.failed)


TARGET_HEADINGS = ("target", "figure", "measured", "wanted", "ratio to", "")


def target_rows(results):
    for result in results:
        for case in result.cases:
            for verdict in case.verdicts:
                unit, of = case.own.figure.unit, verdict.target.of
                ratio = next((c.ratio for c in case.against if c.other.figure.name == of), None)
                measured = ("-" if verdict.measured is None else amount(verdict.measured, unit) if of is None
                            else with_range(ratio))
                yield (result.group.target, f"{result.group.name}: {case.case.name}", measured,
                       wanted(verdict.target, unit), of or "", outcome(verdict))


def target_lines(results, as_markdown):
    """Yields the table of the targets of all groups."""
    rows = list(target_rows([result for result in results if result.group.target]))
    met = sum(row[-1] == MET for row in rows)
    yield f"{'### ' if as_markdown else ''}targets: {met} of {len(rows)} met"
    yield ""
    yield from (markdown if as_markdown else plain)(TARGET_HEADINGS, rows)


COMPARED_HEADINGS = ("group", "case", "unit", "before", "after", "after over before", "")


def compared_rows(rows):
    for row in rows:
        if row.error:
            yield (row.group, row.name, row.unit, "", "", "", f"not compared: {row.error}")
            continue
        yield (row.group, row.name, row.unit, f"{row.before:.4g}", f"{row.after:.4g}", with_range(row.ratio), row.verdict)


def compared_lines(rows, revision, rounds, as_markdown):
    yield f"{'### ' if as_markdown else ''}this tree against {revision}: {rounds} rounds, in turn"
    yield ""
    yield from (markdown if as_markdown else plain)(COMPARED_HEADINGS, list(compared_rows(rows)), right=(3, 4))
