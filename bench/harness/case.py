"""Definition of measurements: a figure, the peers and limits that it is compared with, and its targets."""

import dataclasses
from collections.abc import Callable
from typing import Optional, Union


class Unreadable(Exception):
    """The output of a program does not contain the expected value. Contains an error message."""


@dataclasses.dataclass(frozen=True)
class Command:
    """A program with its arguments. In `words`, {bin} is the folder of the project's programs, {bench} that of the
    benchmark sources, {port} a free TCP port, {seconds} the duration of a run, and {core0} and {core1} are CPUs. The
    program runs in an empty folder."""

    words: tuple
    limit: float = 30  # seconds; a longer run has failed
    environment: tuple = ()  # pairs of name and value
    accepted: tuple = (0,)  # exit statuses

    @property
    def program(self):
        """The word that names the program, after those that set its CPUs or its time limit."""
        words = list(self.words)
        while words[0] in ("taskset", "timeout"):
            words = words[3:] if words[0] == "taskset" else words[words.index("INT") + 2:]
        return words[0]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server and a client. A server that does not exit after its client is stopped."""

    server: Command
    client: Command
    # "tcp" or "udp": ready when {port} is in use; "unix NAME": when an abstract socket with this name exists; "": at
    # once
    ready: str = ""

    @property
    def program(self):
        return self.client.program

    @property
    def limit(self):
        return self.client.limit


@dataclasses.dataclass(frozen=True)
class Output:
    text: str  # standard output; of the client, if there are two programs
    server: str = ""  # standard output of the server


MORE, LESS = "more", "less"


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number read from the output of a command. Figures with the same command share its runs."""

    name: str
    command: Union[Command, Pair]
    take: Callable[[Output], float]  # raises Unreadable
    unit: str
    better: str = MORE


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on the median of the case's figure, or of its ratio to another figure of the case."""

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
    against: tuple = ()  # figures of peers and limits; a ratio is the own figure divided by the other
    targets: tuple = ()
    parts: tuple = ()  # figures whose sum is the own figure; shown in a separate table

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
    """Cases that are measured together. Each distinct command runs once per round."""

    name: str
    what: str  # one line
    cases: tuple
    target: str = ""  # number in the list of targets
    rounds: Optional[int] = None  # for figures that are equal in every run
    notes: str = ""  # text for readers of the table

    @property
    def commands(self):
        """The distinct commands, in the order of the cases."""
        return tuple(dict.fromkeys(figure.command for case in self.cases for figure in case.figures))
