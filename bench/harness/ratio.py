"""Medians and ratios of the rounds of a measurement."""

import statistics


def median(values):
    return statistics.median(values)


def spread(values):
    """Returns half the range in percent of the median."""
    middle = median(values)
    return (max(values) - min(values)) / middle * 50 if middle else 0.0


class Ratio:
    """The own values divided by the other's, round by round: median and range."""

    def __init__(self, own, other):
        if len(own) != len(other) or not own:
            raise ValueError("a ratio needs as many values of one as of the other, and some")
        if any(value == 0 for value in other):
            raise ValueError("a ratio to nothing")
        self.rounds = [a / b for a, b in zip(own, other)]
        self.median = median(self.rounds)
        self.low, self.high = min(self.rounds), max(self.rounds)

    def shows_difference(self):
        return not self.low <= 1 <= self.high

    def document(self):
        return {"rounds": self.rounds, "median": self.median, "low": self.low, "high": self.high}


def three_digits(value):
    """Formats a ratio with two or three significant digits: 0.63, 0.071, 12.4, 2500."""
    if value == 0 or 0.095 <= value < 10:
        return f"{value:.2f}"
    if value < 1:
        return f"{value:.2g}"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def with_range(ratio):
    return f"{three_digits(ratio.median)} ({three_digits(ratio.low)}-{three_digits(ratio.high)})"
