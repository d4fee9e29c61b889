"""The output of `./roci bench --json`; documented in bench/README.md."""

from harness import google_benchmark
from harness.case import Command

SCHEMA = 1


def command(one, place):
    if isinstance(one, Command):
        return {"line": place.line(one)}
    return {"line": place.line(one.client), "server": place.line(one.server)}


def figure(measured, place):
    one = measured.figure
    return {"name": one.name, "unit": one.unit, "better": one.better, "command": command(one.command, place),
            "rounds": measured.rounds, "median": None if measured.error else measured.median,
            "error": measured.error or None}


def case(result, place):
    return {
        "name": result.case.name,
        "own": figure(result.own, place),
        "against": [{**figure(c.other, place), "ratio": c.ratio.document() if c.ratio else None} for c in result.against],
        "parts": [{**figure(part, place), "share": result.share(part)} for part in result.parts],
        "targets": [{"relation": v.target.relation, "value": v.target.value, "of": v.target.of, "measured": v.measured,
                     "met": v.met} for v in result.verdicts],
    }


def group(result, place):
    return {"name": result.group.name, "what": result.group.what, "target": result.group.target or None,
            "rounds": result.rounds, "load_before": result.load_before, "load_after": result.load_after,
            "near": result.near or None, "cases": [case(one, place) for one in result.cases]}


def program(result, place):
    return {"name": result.name, "command": command(result.command, place), "error": result.error or None,
            "load_before": result.load_before, "load_after": result.load_after,
            "benchmarks": google_benchmark.document(result.found)}


def compared(row):
    return {"group": row.group, "name": row.name, "unit": row.unit, "better": row.better, "before": row.before,
            "after": row.after, "ratio": row.ratio.document() if row.ratio else None, "verdict": row.verdict or None,
            "error": row.error or None}


def whole(machine, started, groups, programs, place, revision=None, rows=()):
    document = {"schema": SCHEMA, "machine": machine, "started": started}
    if revision is not None:
        document["compared_with"] = revision
        document["comparison"] = [compared(row) for row in rows]
    else:
        document["groups"] = [group(result, place) for result in groups]
        document["programs"] = [program(result, place) for result in programs]
    return document
