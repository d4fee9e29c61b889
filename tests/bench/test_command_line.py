"""Tests of names, options and help, and of the packages of the programs compared with."""

import contextlib
import io
import unittest

from harness import command_line, peers
from harness.groups import GROUPS
from harness.programs import command


def main(*arguments):
    """Returns exit status, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command_line.main(list(arguments))
    return status, out.getvalue(), err.getvalue()


class InvalidArguments(unittest.TestCase):
    def refuse(self, *arguments):
        status, out, err = main(*arguments)
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, r"\Aroci: bench: [^\n]+\n\Z")
        return err

    def test_rejects_unknown_benchmark_and_lists_groups(self):
        sentence = self.refuse("bandwith")
        self.assertIn("unknown benchmark 'bandwith'", sentence)
        for group in GROUPS:
            self.assertIn(group.name, sentence)

    def test_rejects_unknown_and_invalid_options(self):
        self.assertIn("--frobnicate", self.refuse("--frobnicate"))
        self.assertIn("from 1 to 1000", self.refuse("latency", "--runs", "0"))
        self.assertIn("from 1 to 1000", self.refuse("latency", "--runs", "many"))
        self.assertIn("--json and --markdown", self.refuse("latency", "--json", "--markdown"))
        self.assertIn("no revision 'nonsense'", self.refuse("latency", "--compare", "nonsense"))

    def test_rejects_google_benchmark_options_without_its_programs(self):
        self.assertIn("base, wire", self.refuse("latency", "--", "--benchmark_filter=x"))


class Names(unittest.TestCase):
    def test_list_contains_every_name_and_help_contains_list(self):
        status, out, _ = main("--list")
        self.assertEqual(status, 0)
        names = [line.split()[0] for line in out.splitlines() if line]
        self.assertEqual(names[0], "targets")
        self.assertEqual(len(names), len(set(names)))
        for name in [group.name for group in GROUPS] + ["base", "wire", "loopback", "queue_pairs"]:
            self.assertIn(name, names)
        _, text, _ = main("--help")
        for word in names + ["--quick", "--runs", "--json", "--markdown", "--compare", "--list", "examples:"]:
            self.assertIn(word, text)

    def test_help_fits_into_120_columns(self):
        _, text, _ = main("--help")
        self.assertEqual([line for line in text.splitlines() if len(line) > 120], [])

    def test_targets_selects_groups_with_targets_and_no_programs(self):
        groups, programs = command_line.chosen(["targets"])
        self.assertEqual(programs, [])
        self.assertTrue(groups and all(group.target for group in groups))
        self.assertEqual(command_line.chosen(["wire"]), ([], ["wire"]))
        groups, programs = command_line.chosen([])
        self.assertEqual(len(groups), len(GROUPS))
        self.assertIn("queue_pairs", programs)

    def test_accepts_program_name_with_suffix(self):
        self.assertEqual(command_line.parse(["wire_bench"])[0].names, ["wire"])


class Packages(unittest.TestCase):
    def test_lists_packages_of_chosen_groups_and_none_for_compare(self):
        self.assertEqual(main("--packages", "latency", "wire")[1].split(), [])
        self.assertEqual(main("--packages", "memif")[1].split(),
                         ["dpdk-dev", "iperf3", "libfabric-bin", "sockperf", "ucx-utils"])
        self.assertEqual(main("--packages", "memif", "--compare", "HEAD")[1].split(), [])
        self.assertEqual(main("--packages", "budget")[1].split(), ["valgrind"])
        self.assertEqual(main("--packages", "stages")[1].split(), ["linux-perf"])
        self.assertEqual(main("--packages", "forwarding")[1].split(), ["dpdk-dev"])
        self.assertEqual(main("--packages", "lab")[1].split(), ["libns3-dev"])
        self.assertEqual(main("--packages", "lab", "--compare", "HEAD")[1].split(), [])

    # Installing Open vSwitch would start its services.
    def test_lists_packages_with_services_as_unpacked_only(self):
        unpacked = main("--unpacked", "forwarding")[1].split()
        self.assertEqual(unpacked, ["openvswitch-common", "openvswitch-switch", "openvswitch-switch-dpdk"])
        self.assertEqual(main("--unpacked", "memif")[1].split(), [])
        self.assertEqual(main("--unpacked", "forwarding", "--compare", "HEAD")[1].split(), [])
        self.assertEqual([name for name in main("--packages")[1].split() if name in unpacked], [])

    # A third-party program without a package could not be installed.
    def test_every_third_party_program_has_a_package(self):
        for one in command_line.commands_of(GROUPS, False):
            self.assertTrue(one.program.startswith("{bin}/") or one.program in peers.PACKAGES or
                            one.program in peers.SCRIPTS or one.program == "python3", one.program)

    def test_finds_program_after_taskset_and_timeout(self):
        line = "A=b taskset -c {core0} timeout --preserve-status -s INT 5 dpdk-testpmd -m 1"
        self.assertEqual(command(line).program, "dpdk-testpmd")


if __name__ == "__main__":
    unittest.main()
