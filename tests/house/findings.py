"""Output of the checks: one line per finding, and their number."""


def report(findings):
    """Prints the findings and returns the exit status."""
    found = list(findings)
    for line in found:
        print(line)
    print(f"{len(found)} findings")
    return 1 if found else 0
