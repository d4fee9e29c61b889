"""Test of the key-value store: a server and its clients are processes, on a network that drops, duplicates and reorders
frames."""

import socket
import subprocess
import threading

import example_harness
from example_harness import ExampleTest


class Client:
    """A kv-client process that answers one line for each line."""

    def __init__(self, test, process):
        self.test, self.process = test, process

    def send(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.kill()
            self.test.fail("the client ended: " + self.process.stderr.read())
        return line.rstrip("\n")

    def ask(self, line):
        self.send(line)
        return self.answer()

    def run(self, lines):
        """Sends many lines and returns the answers. A separate thread writes, so that full pipes cannot block both
        sides."""
        writer = threading.Thread(target=self.send, args=lines)
        writer.start()
        answers = [self.answer() for _ in lines]
        writer.join()
        return answers


class KvStore(ExampleTest):
    def test_help_prints_usage_and_succeeds(self):
        for name in ("kv-server", "kv-client"):
            done = subprocess.run([self.programs[name], "--help"], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(f"usage: {name} --config FILE"), done.stdout)

    def start_server(self, config, *options):
        server = self.start([self.programs["kv-server"], "--config", config, "--port", self.tcp_port, *options])
        self.expect_line(server, "serving on")
        return server

    def client_command(self, config, *options):
        return [str(word) for word in
                (self.programs["kv-client"], "--config", config, "--port", self.tcp_port, *options, "127.0.0.1")]

    def connect(self, config, *options):
        process = subprocess.Popen(self.client_command(config, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, bufsize=1, env=self.environment)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                try:
                    stream.close()
                except BrokenPipeError:  # The client exited before it had read the last line.
                    pass
        self.addCleanup(end)
        client = Client(self, process)
        self.assertEqual(client.answer(), "connected")
        return client

    def operations(self, count, keys, model):
        """Returns random lines, and the answers that a dictionary would give."""
        lines, answers = [], []
        for _ in range(count):
            key = self.random.choice(keys)
            dice = self.random.random()
            if dice < 0.35:
                value = "".join(self.random.choice("abcdefgh ") for _ in range(self.random.randrange(0, 900)))
                lines.append(f"put {key} {value}")
                answers.append("ok")
                model[key] = value
            elif dice < 0.45:
                lines.append(f"delete {key}")
                answers.append("ok" if model.pop(key, None) is not None else "missing")
            else:
                lines.append(f"get {key}")
                answers.append(f"value {model[key]}" if key in model else "missing")
        return lines, answers

    def test_clients_read_the_values_of_a_reference_dictionary(self):
        server_config, *configs = self.network(4)
        server = self.start_server(server_config)
        clients = [self.connect(config) for config in configs]
        model = {}
        # First all clients use the same keys, one request at a time.
        for line, expected in zip(*self.operations(300, [f"shared{i}" for i in range(20)], model)):
            self.assertEqual(self.random.choice(clients).ask(line), expected, line)
        # Then all clients run in parallel, each with its own keys.
        work = [self.operations(1500, [f"client{i}key{k}" for k in range(60)], model) for i in range(len(clients))]
        answers = [None] * len(clients)

        def drive(i):
            answers[i] = clients[i].run(work[i][0])
        threads = [threading.Thread(target=drive, args=(i,)) for i in range(len(clients))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, (lines, expected) in enumerate(work):
            self.assertIsNotNone(answers[i], f"client {i} did not get through")
            for line, answer, right in zip(lines, answers[i], expected):
                self.assertEqual(answer, right, line)
        # At the end, every client reads every value.
        for key, value in model.items():
            self.assertEqual(self.random.choice(clients).ask(f"get {key}"), f"value {value}")
        self.assertIsNone(server.poll())

    # The server's device has a dedicated thread, so READs take bytes while the table is written.
    def test_concurrent_reads_return_complete_values(self):
        server_config, *configs = self.network(3, more="  progress: dedicated\n")
        self.start_server(server_config)
        writer, reader = [self.connect(config) for config in configs]
        puts = [f"put key {self.random.choice('abcdefgh') * self.random.randrange(1, 937)}" for _ in range(1500)]
        self.assertEqual(writer.ask(puts[0]), "ok")
        written = {line.removeprefix("put key ") for line in puts}
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.extend(writer.run(puts)))
        thread.start()
        read = reader.run(["get key"] * 3000)
        thread.join()
        self.assertEqual(outcomes, ["ok"] * len(puts))
        for line in read:
            self.assertTrue(line.removeprefix("value ") in written, line)
        self.assertGreater(len(set(read)), 10, "the reader did not run beside the writer")

    def test_killed_client_does_not_affect_other_clients(self):
        server_config, *configs = self.network(4)
        server = self.start_server(server_config)
        stays, dies = self.connect(configs[0]), self.connect(configs[1])
        dies.send(*[f"put k{i % 40} {'v' * 900}" for i in range(60)])  # These lines fit into the pipe.
        dies.answer()
        dies.process.kill()
        model = {}
        lines, expected = self.operations(400, [f"mine{i}" for i in range(20)], model)
        self.assertEqual(stays.run(lines), expected)
        self.expect_line(server, "client ")
        comes = self.connect(configs[2])
        self.assertEqual(comes.run(lines := [f"get {key}" for key in model]), [f"value {model[k]}" for k in model], lines)
        # Every entry that the killed client wrote is complete.
        for i in range(40):
            self.assertIn(comes.ask(f"get k{i}"), (f"value {'v' * 900}", "missing"))
        self.assertIsNone(server.poll())

    def test_client_reports_error_after_server_is_killed(self):
        server_config, config = self.network(2)
        server = self.start_server(server_config)
        client = self.connect(config)
        self.assertEqual(client.ask("put key value"), "ok")
        server.kill()
        self.finish(server)
        self.assertIn("error: ", client.ask("get key"))
        self.assertEqual(client.process.wait(example_harness.perf_harness.TIMEOUT), 1)
        self.assertIn("kv-client: ", client.process.stderr.read())

    def test_rejects_invalid_requests_full_table_and_excess_clients(self):
        server_config, config, third = self.network(3, faults=False)
        self.start_server(server_config, "--buckets", "1", "--clients", "1")
        client = self.connect(config)
        self.assertEqual(client.ask("get key"), "missing")
        self.assertEqual(client.ask("delete key"), "missing")
        self.assertIn("the key has 65 bytes; at most 64", client.ask("put " + "k" * 65 + " v"))
        self.assertIn("the key has 65 bytes; at most 64", client.ask("get " + "k" * 65))
        self.assertIn("the value has 937 bytes; at most 936", client.ask("put key " + "v" * 937))
        self.assertIn("the key is empty", client.ask("get "))
        self.assertIn("unknown command 'fetch'", client.ask("fetch key"))
        for i in range(4):
            self.assertEqual(client.ask(f"put key{i} {'v' * 936}"), "ok")
        self.assertIn("error: the table is full", client.ask("put key4 v"))
        self.assertEqual(client.ask("delete key2"), "ok")
        self.assertEqual(client.ask("put key4 v"), "ok")
        self.assertEqual(client.ask("get key3"), "value " + "v" * 936)
        # Only one client is allowed.
        self.assert_failed(self.start(self.client_command(third)), 1, "rejected the client")
        self.assertEqual(client.ask("get key4"), "value v")

    def test_invalid_tcp_connections_do_not_affect_clients(self):
        server_config, config = self.network(2, faults=False)
        server = self.start_server(server_config)
        client = self.connect(config)
        with socket.create_connection(("127.0.0.1", int(self.tcp_port))) as silent:
            with socket.create_connection(("127.0.0.1", int(self.tcp_port))) as loud:
                loud.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8)
                self.expect_line(server, "not a client of this version")
            self.assertEqual(client.ask("put key value"), "ok")
            silent.sendall(b"half a hello")
        self.expect_line(server, "before its hello message")
        self.assertEqual(client.ask("get key"), "value value")

    def test_server_without_free_descriptors_serves_connected_clients(self):
        server_config, config, later = self.network(3, faults=False)
        server = self.start_server(server_config)
        client = self.connect(config)
        sockets = self.exhaust_descriptors(server)
        self.assertIsNone(server.poll())
        self.assertEqual(client.ask("put key value"), "ok")
        self.assertEqual(client.ask("get key"), "value value")
        for tcp in sockets:
            tcp.close()
        self.assertEqual(self.connect(later).ask("get key"), "value value")
        server.kill()
        self.finish(server)
        # The server accepts in intervals, and reports only the first error of each series.
        self.assertIn("cannot accept clients: Too many open files; trying again", server.err)
        self.assertLess(server.err.count("cannot accept"), 12, server.err)

    def test_rejects_invalid_options(self):
        config = self.host("host", "net_null0", "10.0.0.1")
        for options, sentence in ((["--buckets", "3"], "power of two"), (["--clients", "0"], "1 to 1024 clients"),
                                  (["--bucket", "4"], "unknown option --bucket"), (["--port"], "requires a value"),
                                  (["--timeout", "x"], "is not a number from 0 to 31")):
            with self.subTest(sentence):
                self.assert_failed(self.start([self.programs["kv-server"], "--config", config, *options]), 1, sentence)
        self.assert_failed(self.start([self.programs["kv-client"], "--config", self.folder / "none.yaml", "localhost"]), 1,
                           "none.yaml")
        self.assert_failed(self.start([self.programs["kv-client"]]), 1, "usage:")


if __name__ == "__main__":
    example_harness.main("kv-server", "kv-client", "roci-switch")
