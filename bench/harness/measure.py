"""Rounds of measurement. Every distinct command of a group runs once per round, in every second round in reverse
order, so that changes of the machine's speed affect all commands alike."""

import dataclasses

from harness.case import Unreadable
from harness.ratio import Ratio, median, spread
from harness.run import Failed, run


@dataclasses.dataclass
class Measured:
    """Results of all runs of one figure."""

    figure: object
    rounds: list = dataclasses.field(default_factory=list)
    error: str = ""

    @property
    def median(self):
        return median(self.rounds)

    @property
    def spread(self):
        return spread(self.rounds)


@dataclasses.dataclass
class Comparison:
    other: Measured
    ratio: object  # None if either failed


@dataclasses.dataclass
class Verdict:
    target: object
    measured: float  # None if it could not be measured

    @property
    def met(self):
        return None if self.measured is None else self.target.met(self.measured)


@dataclasses.dataclass
class CaseResult:
    case: object
    own: Measured
    against: list
    verdicts: list
    parts: list = dataclasses.field(default_factory=list)

    @property
    def failed(self):
        return [one for one in (self.own, *(c.other for c in self.against), *self.parts) if one.error]

    def share(self, part):
        """Returns the part's fraction of the own figure, by medians; None if either failed."""
        return None if part.error or self.own.error or not self.own.median else part.median / self.own.median


@dataclasses.dataclass
class GroupResult:
    group: object
    rounds: int
    cases: list
    load_before: tuple = ()
    load_after: tuple = ()
    near: str = ""  # the sentence of --near


def run_rounds(commands, rounds, place, tell, run_one):
    """Returns the outputs of each command by round, and the first error of each failed command."""
    outputs = {command: [] for command in commands}
    errors = {}
    for number in range(rounds):
        order = list(commands) if number % 2 == 0 else list(reversed(commands))
        for command in order:
            if command in errors:
                continue
            tell(f"round {number + 1} of {rounds}: {place.line(getattr(command, 'client', command))}")
            try:
                outputs[command].append(run_one(command, place))
            except Failed as failure:
                errors[command] = f"{failure} (in round {number + 1})"
                tell(f"failed: {failure}")
    return outputs, errors


def read_figure(figure, outputs, errors):
    measured = Measured(figure, error=errors.get(figure.command, ""))
    if measured.error:
        return measured
    try:
        measured.rounds = [figure.take(output) for output in outputs[figure.command]]
    except Unreadable as problem:
        measured.rounds, measured.error = [], str(problem)
    return measured


def evaluate(case, own, others, parts=()):
    """Returns the result of a case from its own and other figures."""
    comparisons = []
    for other in others:
        ratio = None
        if not own.error and not other.error:
            try:
                ratio = Ratio(own.rounds, other.rounds)
            except ValueError as problem:
                other.error = str(problem)
        comparisons.append(Comparison(other, ratio))
    verdicts = []
    for target in case.targets:
        if target.of is None:
            measured = None if own.error else own.median
        else:
            ratio = next(c.ratio for c in comparisons if c.other.figure.name == target.of)
            measured = None if ratio is None else ratio.median
        verdicts.append(Verdict(target, measured))
    return CaseResult(case, own, comparisons, verdicts, list(parts))


def measure(group, rounds, place, tell, load=lambda: (), near=None):
    rounds = group.rounds or rounds
    before = load()
    thrown_away = near.thrown_away if near else 0
    outputs, errors = run_rounds(group.commands, rounds, place, tell, near.run if near else run)
    def read(figures):
        return [read_figure(figure, outputs, errors) for figure in figures]
    cases = [evaluate(case, *read([case.own]), read(case.against), read(case.parts)) for case in group.cases]
    sentence = near.sentence(near.thrown_away - thrown_away) if near else ""
    return GroupResult(group, rounds, cases, before, load(), sentence)
