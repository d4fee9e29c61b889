"""What is measured: a figure of ours, the peers and limits that it stands next to, and the targets that it has."""

import dataclasses
from collections.abc import Callable
from typing import Optional, Union


class Unreadable(Exception):
    """A program's output does not say what it was run for. One sentence."""


@dataclasses.dataclass(frozen=True)
class Command:
    """One program. In its words {bin} is the folder of our programs, {bench} that of the benchmarks' sources, {port} a free
    TCP port, {seconds} how long a run lasts, and {core0} and {core1} are CPUs. It runs in an empty folder."""

    words: tuple
    limit: float = 30  # seconds after which it has failed
    environment: tuple = ()  # pairs
    accepted: tuple = (0,)  # exit statuses

    @property
    def program(self):
        """The word that names the program, behind those that only place it."""
        words = list(self.words)
        while words[0] in ("taskset", "timeout"):
            words = words[3:] if words[0] == "taskset" else words[words.index("INT") + 2:]
        return words[0]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server and a client. The server is stopped when the client has ended and it has not."""

    server: Command
    client: Command
    # "tcp" or "udp": when {port} is taken; "unix NAME": when there is a
    # socket of that name without a file; "": at once
    ready: str = ""

    @property
    def program(self):
        return self.client.program

    @property
    def limit(self):
        return self.client.limit


@dataclasses.dataclass(frozen=True)
class Output:
    text: str  # standard output, of the client where there are two
    server: str = ""  # standard output of the server


MORE, LESS = "more", "less"


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number that a command comes to. Figures with the same command share its runs."""

    name: str
    command: Union[Command, Pair]
    take: Callable[[Output], float]  # raises Unreadable
    unit: str
    better: str = MORE


@dataclasses.dataclass(frozen=True)
class Target:
    """The median of our figure, or of its ratio to another figure of the case, is at least or at most so much."""

    relation: str  # ">=" or "<="
    value: float
    of: Optional[str] = None  # the name of the other figure

    def met(self, measured):
        return measured >= self.value if self.relation == ">=" else measured <= self.value


def at_least(value, of=None):
    return Target(">=", value, of)


def at_most(value, of=None):
    return Target("<=", value, of)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    own: Figure
    against: tuple = ()  # figures: peers and limits; a ratio is ours over theirs
    targets: tuple = ()
    parts: tuple = ()  # figures that ours is the sum of: they have a table of their own

    def __post_init__(self):
        names = {figure.name for figure in self.against}
        for target in self.targets:
            if target.of is not None and target.of not in names:
                raise ValueError(f"case '{self.name}' has a target of '{target.of}', which it is not compared with")

    @property
    def figures(self):
        return (self.own, *self.against, *self.parts)


@dataclasses.dataclass(frozen=True)
class Group:
    """Cases that are measured together, each distinct command once a round."""

    name: str
    what: str  # one line
    cases: tuple
    target: str = ""  # the number that the list of targets gives it
    rounds: Optional[int] = None  # for what is the same in every run
    notes: str = ""  # what a reader of the table must know

    @property
    def commands(self):
        """Distinct, in the order of the cases."""
        return tuple(dict.fromkeys(figure.command for case in self.cases for figure in case.figures))
