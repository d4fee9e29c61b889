"""Instructions of the data path, counted by callgrind in virtual time, compared with bench/budget.yaml."""

import yaml

from harness.case import Case, Figure, Group, LESS, at_most
from harness.programs import budget_row, command
from harness.run import ROOT

TOLERANCE = 1.03  # same value as in bench/budget.py
BUDGETS = yaml.safe_load((ROOT / "bench/budget.yaml").read_text())
# Exit status 1: a budget is exceeded. That is a missed target, not a failed measurement. 2: for example, a workload has no
# budget and therefore no case here.
COUNT = command("python3 {bench}/budget.py --program {bin}/roci-budget", limit=600, accepted=(0, 1))


def workload(name, budget):
    return Case(name, Figure("instructions of a message", COUNT, budget_row(name), "instructions", LESS), (),
                (at_most(round(budget * TOLERANCE)),))


GROUP = Group(
    name="budget",
    what="instructions per message of both hosts and the application, compared with bench/budget.yaml",
    cases=tuple(workload(name, entry["instructions"]) for name, entry in BUDGETS.items()),
    rounds=1,
)
