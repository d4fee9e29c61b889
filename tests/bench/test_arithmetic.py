"""Tests of rounds, medians, ratios and targets, and of their tables and JSON."""

import json
import re
import unittest
from unittest import mock

from harness import compare, document, measure, near, report
from harness.case import Case, Command, Figure, Group, LESS, MORE, Output, at_least, at_most
from harness.groups import GROUPS, WITH_TARGETS
from harness.ratio import Ratio, spread, three_digits, with_range
from harness.run import Failed, Place


def number(output):
    return float(output.text)


def figure(name, unit="Gb/s", better=MORE):
    return Figure(name, Command((name,)), number, unit, better)


OWN, PEER = figure("own"), figure("peer")
CASE = Case("a case", OWN, (PEER,), (at_least(100), at_least(0.5, "peer")))


class Measurement(unittest.TestCase):
    """Runs no commands: each command has a list of outputs, in which None stands for a failure."""

    def measure(self, group, rounds, **outputs):
        self.order = []
        queues = {name: list(values) for name, values in outputs.items()}

        def run(command, _place):
            name = command.words[0]
            self.order.append(name)
            value = queues[name].pop(0)
            if value is None:
                raise Failed("it ended with 3: no luck")
            return Output(str(value))
        with mock.patch.object(measure, "run", run):
            return measure.measure(group, rounds, Place(cores=(0, 1)), lambda text: None)

    def test_runs_every_second_round_in_reverse_order(self):
        group = Group("g", "", (CASE,))
        self.measure(group, 3, own=[1, 2, 3], peer=[1, 1, 1])
        self.assertEqual(self.order, ["own", "peer", "peer", "own", "own", "peer"])

    def test_computes_ratios_per_round(self):
        (result,) = self.measure(Group("g", "", (CASE,)), 3, own=[120, 80, 90], peer=[100, 100, 300]).cases
        self.assertEqual(result.own.median, 90)
        self.assertEqual(result.against[0].ratio.rounds, [1.2, 0.8, 0.3])
        self.assertEqual([verdict.met for verdict in result.verdicts], [False, True])

    def test_figures_of_one_command_share_its_runs(self):
        twice = Figure("twice", OWN.command, lambda out: 2 * number(out), "Gb/s")
        group = Group("g", "", (CASE, Case("other", twice, (OWN,))))
        result = self.measure(group, 2, own=[10, 20], peer=[5, 5])
        self.assertEqual(self.order.count("own"), 2)
        self.assertEqual(result.cases[1].against[0].ratio.rounds, [2, 2])

    def test_excludes_failed_figure_and_reports_error(self):
        (result,) = self.measure(Group("g", "", (CASE,)), 3, own=[1, 2, 3], peer=[1, None]).cases
        self.assertEqual(result.own.rounds, [1, 2, 3])
        self.assertEqual([one.figure.name for one in result.failed], ["peer"])
        self.assertIn("no luck", result.failed[0].error)
        self.assertIsNone(result.against[0].ratio)
        self.assertEqual([verdict.met for verdict in result.verdicts], [False, None])

    def test_reports_unreadable_output_as_failure(self):
        unreadable = Figure("own", OWN.command, mock.Mock(side_effect=measure.Unreadable("no figure in it")), "Gb/s")
        (result,) = self.measure(Group("g", "", (Case("c", unreadable),)), 1, own=["x"]).cases
        self.assertEqual(result.failed[0].error, "no figure in it")

    def test_reports_peer_value_of_zero_as_failure(self):
        (result,) = self.measure(Group("g", "", (CASE,)), 1, own=[1], peer=[0]).cases
        self.assertEqual([one.figure.name for one in result.failed], ["peer"])

    def test_group_overrides_number_of_rounds(self):
        self.measure(Group("g", "", (Case("c", OWN),), rounds=1), 5, own=[1])
        self.assertEqual(self.order, ["own"])

    def test_tables_and_json_contain_figures_ratios_targets_and_failures(self):
        group = Group("g", "what", (CASE,), target="9", notes="a note")
        place = Place(cores=(0, 1))
        good, bad = (self.measure(group, 1, own=[120], peer=[peer]) for peer in (100, None))
        for as_markdown in (False, True):
            text = "\n".join(report.group_lines(good, place, as_markdown))
            for part in ("120 Gb/s", "1.20 (1.20-1.20)", ">= 100 Gb/s: met", ">= 0.50: met", "[1]", "[2]", "a note"):
                self.assertIn(part, text)
            text = "\n".join(report.group_lines(bad, place, as_markdown))
            for part in ("not measured", "failed: [2] it ended with 3: no luck"):
                self.assertIn(part, text)
        self.assertIn("targets: 2 of 2 met", "\n".join(report.target_lines([good], False)))
        self.assertIn("targets: 1 of 2 met", "\n".join(report.target_lines([bad], False)))
        whole = json.loads(json.dumps(document.whole({}, "now", [good, bad], [], place)))
        case = whole["groups"][0]["cases"][0]
        self.assertEqual((case["own"]["rounds"], case["own"]["command"]["line"]), ([120], "own"))
        self.assertEqual(case["against"][0]["ratio"], {"rounds": [1.2], "median": 1.2, "low": 1.2, "high": 1.2})
        self.assertEqual([target["met"] for target in case["targets"]], [True, True])
        self.assertIsNone(whole["groups"][1]["cases"][0]["against"][0]["ratio"])


    def test_tables_and_json_contain_shares_of_parts(self):
        group = Group("g", "what", (Case("whole", OWN, parts=(figure("some"), figure("none"))),))
        place = Place(cores=(0, 1))
        good, bad = (self.measure(group, 2, own=[120, 80], some=[some, 20], none=[0, 0]) for some in (30, None))
        for as_markdown in (False, True):
            text = "\n".join(report.group_lines(good, place, as_markdown))
            self.assertRegex(text, r"some[ |]+25\.0 \(25%\)")
            self.assertRegex(text, r"(?m)none[ |]+-( \||$)")
            self.assertIn("failed: [2] it ended", "\n".join(report.group_lines(bad, place, as_markdown)))
        whole = json.loads(json.dumps(document.whole({}, "now", [good, bad], [], place)))
        parts = [one["cases"][0]["parts"] for one in whole["groups"]]
        self.assertEqual([(part["name"], part["share"]) for part in parts[0]], [("some", 0.25), ("none", 0)])
        self.assertIsNone(parts[1][0]["share"])


class Ratios(unittest.TestCase):
    def test_computes_median_and_range(self):
        ratio = Ratio([1, 9, 4], [2, 3, 4])
        self.assertEqual((ratio.median, ratio.low, ratio.high), (1, 0.5, 3))
        self.assertEqual(with_range(ratio), "1.00 (0.50-3.00)")

    def test_rejects_unequal_empty_and_zero_rounds(self):
        for own, other in (([1], [1, 2]), ([], []), ([1], [0])):
            with self.assertRaises(ValueError):
                Ratio(own, other)

    def test_shows_no_difference_if_range_includes_one(self):
        self.assertFalse(Ratio([9, 11], [10, 10]).shows_difference())
        self.assertFalse(Ratio([10, 11], [10, 10]).shows_difference())
        self.assertTrue(Ratio([11, 12], [10, 10]).shows_difference())

    def test_spread_is_half_the_range_in_percent(self):
        self.assertEqual(spread([90, 100, 120]), 15)

    def test_three_digits_limits_decimals_by_magnitude(self):
        shown = [three_digits(value) for value in (0, 0.0312, 0.634, 9.99, 12.345, 250.4, 12345.6)]
        self.assertEqual(shown, ["0.00", "0.031", "0.63", "9.99", "12.3", "250", "12346"])


class Verdicts(unittest.TestCase):
    def test_target_includes_its_limit(self):
        self.assertTrue(at_least(8).met(8))
        self.assertFalse(at_least(8).met(7.99))
        self.assertTrue(at_most(700).met(700))
        self.assertFalse(at_most(0.25, "peer").met(0.26))

    def test_rejects_target_of_unknown_peer(self):
        with self.assertRaises(ValueError):
            Case("c", OWN, (), (at_least(1, "peer"),))

    def test_more_is_better_for_rates_and_worse_for_times(self):
        def verdict(better, before, after):
            return compare.Compared("g", "c", "", better, 0, 0, Ratio(after, before)).verdict
        before, more, less = [10] * 5, [12, 13, 12, 12, 12], [8, 9, 8, 8, 8]
        self.assertEqual(verdict(MORE, before, more), "better")
        self.assertEqual(verdict(MORE, before, less), "worse")
        self.assertEqual(verdict(LESS, before, less), "better")
        self.assertEqual(verdict(LESS, before, more), "worse")
        self.assertEqual(verdict(LESS, before, [9, 13, 12, 12, 12]), "no difference shown")

    # Two noisy rounds lie on the same side by chance half of the time.
    def test_few_rounds_give_a_verdict_only_if_all_ratios_are_equal(self):
        def verdict(before, after):
            return compare.Compared("g", "c", "", MORE, 0, 0, Ratio(after, before)).verdict
        self.assertEqual(verdict([10, 10], [12, 13]), "too few rounds for a result")
        self.assertEqual(verdict([3021], [2900]), "worse")


class Groups(unittest.TestCase):
    def test_group_and_case_names_are_unique(self):
        self.assertEqual(len({group.name for group in GROUPS}), len(GROUPS))
        for group in GROUPS:
            self.assertEqual(len({case.name for case in group.cases}), len(group.cases), group.name)

    def test_command_lines_contain_no_placeholders(self):
        place = Place(cores=(0, 1))
        for group in GROUPS:
            for command in group.commands:
                self.assertNotRegex(place.line(command), r"[{}]")

    def test_loss_is_compared_with_the_same_recovery_without_loss(self):
        place = Place(cores=(0, 1))
        (group,) = [group for group in GROUPS if group.name == "loss"]
        for case in group.cases:
            own, reference = (place.line(one.command) for one in (case.own, case.against[0]))
            self.assertEqual(re.sub(r" (--loss|-u) \S+", "", own), reference, case.name)

    def test_busy_loops_are_on_the_cores_of_the_programs(self):
        place = Place(cores=(4, 5))
        loops = [place.line(command.client) for group in GROUPS for command in group.commands
                 if hasattr(command, "client") and "beside.sh" in place.line(command.client)]
        self.assertEqual(len(loops), 2)
        for line in loops:
            self.assertIn("beside.sh 4,5 ", line)

    def test_each_data_path_target_has_a_group(self):
        self.assertEqual([group.target for group in WITH_TARGETS], list("1234567"))
        for group in WITH_TARGETS:
            self.assertTrue(any(case.targets for case in group.cases), group.name)


class NearCores(unittest.TestCase):
    """A run counts only if the cores were near each other before and after it."""

    def run_with(self, distances, most=150):
        left, self.runs = list(distances), 0

        def run_once(command, _place):
            if command is OWN.command:
                self.runs += 1
                return Output(str(self.runs))
            return Output(json.dumps({"benchmarks": [{"name": "probe", "ns_per_round_trip": left.pop(0)}]}))
        self.near = near.Near(most, None, run_once)
        self.left = left
        with mock.patch.object(near.time, "sleep"):
            return self.near.run(OWN.command, None).text

    def test_counts_run_between_two_near_probes(self):
        self.assertEqual(self.run_with([80, 90]), "1")
        self.assertEqual(self.near.thrown_away, 0)

    def test_runs_nothing_while_cores_are_far(self):
        self.assertEqual(self.run_with([400, 151, 150, 150]), "1")
        self.assertEqual((self.runs, self.near.thrown_away), (1, 0))

    def test_discards_run_that_ends_with_far_cores(self):
        self.assertEqual(self.run_with([80, 400, 80, 80]), "2")
        self.assertEqual(self.near.thrown_away, 1)
        self.assertIn("1 other run was discarded", self.near.sentence(1))

    def test_fails_if_cores_stay_far_until_time_limit(self):
        with mock.patch.object(near.time, "monotonic", side_effect=[0, 100, 1000]), self.assertRaises(Failed) as caught:
            self.run_with([400, 390])
        self.assertIn("390 ns", str(caught.exception))
        self.assertEqual(self.runs, 0)


if __name__ == "__main__":
    unittest.main()
