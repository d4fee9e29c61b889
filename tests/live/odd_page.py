"""The section of docs/interop.md that odd_packets.py writes."""

import collections

Result = collections.namedtuple("Result", "entry found judgement")


def count_line(results):
    verdicts = collections.Counter(result.judgement.right if result.judgement else "?" for result in results if result.found)
    same = sum(not result.found for result in results)
    line = (f"{len(results)} packets: {same} same, {verdicts['Rocinante']} different and Rocinante right, "
            f"{verdicts['Linux']} different and Linux right, {verdicts['both']} both allowed")
    return line + (f", {verdicts['?']} not judged" if verdicts["?"] else "")


def update(kernel, results, write):
    return []


def check():
    return []
