"""Test of the block target: a target and its initiators are processes with libibverbs of Rocinante, on a network that
drops, duplicates and reorders frames."""

import re
import socket
import subprocess

import example_harness
from example_harness import ExampleTest


class BlockTarget(ExampleTest):
    def verbs_environment(self, config):
        """Returns the environment in which a verbs application has the host of this configuration as its device."""
        folder = self.programs["libibverbs"].parent
        return {**self.environment, "LD_LIBRARY_PATH": str(folder), "ROCI_CONFIG": config}

    def start_target(self, config, *options):
        target = self.start([self.programs["block-target"], "--port", self.tcp_port, *options],
                            env=self.verbs_environment(config))
        self.expect_line(target, "serving")
        return target

    def initiator(self, config, *words, options=(), **how):
        command = [self.programs["block-initiator"], "--port", self.tcp_port, *options, "127.0.0.1", *words]
        how.setdefault("env", self.verbs_environment(config))
        return self.start(command, **how)

    def bytes_of(self, config, *words, given=b""):
        """Runs an initiator, expects success, and returns its standard output."""
        command = [str(word) for word in
                   (self.programs["block-initiator"], "--port", self.tcp_port, "127.0.0.1", *words)]
        return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, env=self.verbs_environment(config),
                              timeout=example_harness.perf_harness.TIMEOUT).stdout

    def succeed(self, process):
        self.finish(process)
        self.assertEqual(process.returncode, 0, process.out + process.err)
        return process.out

    def exercise(self, config, first, operations=800, seed=None, options=()):
        return self.initiator(config, "exercise", options=[
            "--seed", seed if seed is not None else self.random.randrange(1, 2**32), "--operations", operations,
            "--first", first, "--blocks", "512", *options])

    def test_three_initiators_verify_data_over_faulty_network(self):
        target_config, *configs = self.network(4)
        target = self.start_target(target_config)
        runs = [self.exercise(config, 1000 * i, options=["--events"] if i == 1 else [])
                for i, config in enumerate(configs)]
        for run in runs:
            out = self.succeed(run)
            overtaken = re.search(r"(\d+) completed out of order; all data is correct", out)
            self.assertIsNotNone(overtaken, out)
            self.assertGreater(int(overtaken.group(1)), 0, "responses came in order")
        self.assertIsNone(target.poll())

    def test_target_with_completion_events_serves_correct_data(self):
        target_config, config = self.network(2)
        self.start_target(target_config, "--events")
        self.assertIn("all data is correct", self.succeed(self.exercise(config, 0, 300, options=["--events"])))

    # Depth 1 leaves no spare credit; 64 is the maximum.
    def test_serves_queue_depths_1_2_and_64(self):
        target_config, config = self.network(2)
        self.start_target(target_config, "--depth", "64")
        for depth in (1, 2, 64):
            with self.subTest(depth):
                out = self.succeed(self.exercise(config, 0, 150, options=["--depth", depth, "--max-blocks", "64"]))
                self.assertIn("all data is correct", out)
                if depth == 1:
                    self.assertIn(" 0 completed out of order", out)

    # Two initiators that write to the same blocks must detect the conflict: this verifies that the check can fail.
    def test_initiator_detects_data_written_by_another_initiator(self):
        target_config, *configs = self.network(3, faults=False)
        self.start_target(target_config)
        long = self.exercise(configs[0], 0, 10**6)
        self.expect_line(long, "seed")
        short = self.exercise(configs[1], 0, 1000)
        self.finish(short)
        if short.returncode == 0:  # The other initiator detects the conflict in this case.
            self.wait_until(lambda: long.poll() is not None, "somebody to complain")
        long.kill()
        self.finish(long)
        self.assertIn(1, [short.returncode, long.returncode])
        self.assertRegex(short.err + long.err, r"block \d+, byte \d+ is [0-9a-f]{2}, expected [0-9a-f]{2}")

    def test_killed_initiator_does_not_affect_other_initiators(self):
        target_config, *configs = self.network(4)
        target = self.start_target(target_config)
        dies = self.exercise(configs[0], 0, 10**6)
        self.expect_line(dies, "seed")
        stays = self.exercise(configs[1], 1000)
        self.expect_line(stays, "seed")
        dies.kill()
        self.finish(dies)
        self.assertIn("all data is correct", self.succeed(stays))
        self.expect_line(target, "initiator ")
        self.assertIn("all data is correct", self.succeed(self.exercise(configs[2], 0)))
        self.assertIsNone(target.poll())

    def test_initiator_reports_error_after_target_is_killed(self):
        target_config, config = self.network(2)
        target = self.start_target(target_config)
        for options in ([], ["--events"]):
            with self.subTest(options):
                run = self.exercise(config, 0, 10**6, options=options)
                self.expect_line(run, "seed")
                target.kill()
                self.finish(target)
                self.assert_failed(run, 1, "block-initiator: ", "seed")
            if not options:
                target = self.start_target(target_config)

    # A violation leads to an error status or to the loss of the initiator's own connection. It never affects another
    # initiator.
    def test_rejects_invalid_commands_without_affecting_other_initiators(self):
        target_config, config, other = self.network(3, faults=False)
        target = self.start_target(target_config)
        bystander = self.exercise(other, 1000, 10**6)
        self.expect_line(bystander, "seed")
        for case, answer in (("opcode", "unknown command"), ("reserved", "a field of the command is invalid"),
                             ("beyond", "beyond the end"), ("wraps", "beyond the end"), ("crosses", "beyond the end"),
                             ("long", "too many blocks"), ("endless", "too many blocks"),
                             ("short-buffer", "the buffer is too short"), ("nothing", "a field of the command is invalid"),
                             ("wrong-key", "lost: "), ("wrong-key-write", "lost: "), ("wrong-address", "lost: "),
                             ("half", "lost: ")):
            with self.subTest(case):
                hostile = self.start([self.programs["hostile-initiator"], "127.0.0.1", self.tcp_port, case],
                                     env=self.verbs_environment(config))
                self.assertIn(answer, self.succeed(hostile))
        self.assertIsNone(bystander.poll(), "the bystander has ended")
        bystander.kill()
        self.finish(bystander)
        self.assertIn("all data is correct", self.succeed(self.exercise(config, 0, 100)))
        self.assertIsNone(target.poll())

    def test_closes_connection_that_exceeds_its_credits(self):
        target_config, config = self.network(2, faults=False)
        target = self.start_target(target_config, "--depth", "2")
        hostile = self.start([self.programs["hostile-initiator"], "127.0.0.1", self.tcp_port, "flood"],
                             env=self.verbs_environment(config))
        self.assertIn("lost: ", self.succeed(hostile))
        self.expect_line(target, "more commands than it has credits")
        self.assertIn("all data is correct", self.succeed(self.exercise(config, 0, 50)))

    def test_file_disk_keeps_data_after_target_is_killed(self):
        target_config, config = self.network(2, faults=False)
        disk, content = self.folder / "disk", self.random.randbytes(512 * 300)
        target = self.start_target(target_config, "--file", disk, "--blocks", "400")
        self.assertEqual(self.succeed(self.initiator(config, "identify")),
                         "400 blocks of 512 bytes, at most 256 per command, 16 outstanding commands, in a file\n")
        self.assertEqual(self.bytes_of(config, "write", "77", given=content), b"")
        self.succeed(self.initiator(config, "flush"))
        target.kill()
        self.finish(target)
        self.start_target(target_config, "--file", disk, "--blocks", "400")
        self.assertEqual(self.bytes_of(config, "read", "77", "300"), content)
        self.assert_failed(self.initiator(config, "read", "399", "2"), 1, "beyond the end of the disk")

    def test_invalid_tcp_connections_do_not_affect_initiators(self):
        target_config, config = self.network(2, faults=False)
        target = self.start_target(target_config, "--initiators", "2")
        with socket.create_connection(("127.0.0.1", int(self.tcp_port))) as silent:
            with socket.create_connection(("127.0.0.1", int(self.tcp_port))) as loud:
                loud.sendall(b"GET / HTTP/1.1\r\n\r\n" * 8)
                self.expect_line(target, "connection failed")
            self.assertIn("65536 blocks", self.succeed(self.initiator(config, "identify")))
            silent.sendall(b"half")
        self.assertIsNone(target.poll())

    def test_target_without_free_descriptors_serves_connected_initiators(self):
        target_config, config, later = self.network(3, faults=False)
        target = self.start_target(target_config)
        long = self.exercise(config, 0, 2000)
        self.expect_line(long, "seed")
        sockets = self.exhaust_descriptors(target)
        self.assertIsNone(target.poll())
        self.assertIn("all data is correct", self.succeed(long))
        for tcp in sockets:
            tcp.close()
        self.assertIn("all data is correct", self.succeed(self.exercise(later, 1000, 100)))
        target.kill()
        self.finish(target)
        self.assertIn("cannot accept initiators: Too many open files; trying again", target.err)
        self.assertLess(target.err.count("cannot accept"), 12, target.err)

    def test_rejects_invalid_options(self):
        for options in (["--blocks", "0"], ["--depth", "65"], ["--block", "1"], ["--port"], ["word"]):
            with self.subTest(options):
                self.assert_failed(self.start([self.programs["block-target"], *options],
                                              env=self.verbs_environment("none")), 2, "block-target")
        self.assert_failed(self.start([self.programs["block-target"], "--device", "none"],
                                      env=self.verbs_environment("none")), 1, "no device")
        self.assert_failed(self.start([self.programs["block-target"], "--file", self.folder],
                                      env=self.verbs_environment("none")), 1, "Is a directory")


if __name__ == "__main__":
    example_harness.main("block-target", "block-initiator", "hostile-initiator", "libibverbs", "roci-switch")
