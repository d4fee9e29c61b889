"""Attacks of one user of a machine on another one, and on root. Runs as root in a mount namespace with an empty /tmp and
/run, and acts as users by number, without accounts. The build folder is mounted at /mnt, where every user can read it.

Exit code 77 (skipped, for CTest) if namespaces or other users are not permitted; 1 instead if ROCI_REQUIRE_ALL is 1.
"""

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import unittest

ATTACKER, VICTIM = 65534, 1
INSIDE = "ROCI_LOCAL_USERS_INSIDE"  # set in the namespace
TMP, RUN, MOUNT = pathlib.Path("/tmp"), pathlib.Path("/run"), pathlib.Path("/mnt")
QUIET = ("eal: {memory: 64MiB}\nswitch:\n  name: s\n  idle: sleep\n  ports:\n"
         "    - {name: p0, device: 'net_null0,no-rx=1'}\n    - {name: p1, device: 'net_null1,no-rx=1'}\n")


def enter_namespace():
    """Executes this script again in a mount namespace, or exits."""
    def skip(reason):
        print(f"{reason}; this test acts as several users")
        sys.exit(1 if os.environ.get("ROCI_REQUIRE_ALL") == "1" else 77)

    if os.geteuid() != 0:
        skip("root is required")
    here, build = pathlib.Path(__file__).resolve(), pathlib.Path(sys.argv[1]).resolve().parent.parent
    programs = [MOUNT / "build" / pathlib.Path(program).resolve().relative_to(build) for program in sys.argv[1:]]
    # Read-only, since the test deletes what is in /tmp and /run, where the source tree may be.
    setup = (f"mount --make-rprivate / && mount -t tmpfs -o mode=755 none {MOUNT} && mkdir {MOUNT}/build {MOUNT}/test && "
             f"mount --bind '{build}' {MOUNT}/build && mount -o remount,bind,ro {MOUNT}/build && "
             f"mount --bind '{here.parent}' {MOUNT}/test && mount -o remount,bind,ro {MOUNT}/test && "
             'mount -t tmpfs -o mode=1777 none /tmp && mount -t tmpfs -o mode=755 none /run && cd / && exec "$@"')
    if subprocess.run(["unshare", "--mount", "sh", "-c", setup, "sh", "setpriv", f"--reuid={VICTIM}", f"--regid={VICTIM}",
                       "--clear-groups", "true"], check=False).returncode != 0:
        skip("mount namespaces and changes of the user are required")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", setup, "sh", sys.executable, MOUNT / "test" / here.name, *programs])


class LocalUsers(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.clean)
        self.own = {}
        for user in (0, ATTACKER, VICTIM):
            self.own[user] = TMP / f"home-{user}"
            self.make(self.own[user], user, 0o755)

    @staticmethod
    def clean():
        for folder in (TMP, RUN):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    @staticmethod
    def make(folder, user, mode):
        folder.mkdir()
        os.chown(folder, user, user)
        folder.chmod(mode)
        return folder

    def write(self, file, user, text):
        file.write_text(text, encoding="utf-8")
        os.chown(file, user, user)
        return file

    def run_as(self, user, *command, **environment):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ROCI_", "XDG_", "RUNTIME_"))}
        return subprocess.run([str(word) for word in command], user=user, group=user, extra_groups=[], check=False,
                              capture_output=True, text=True, timeout=60, cwd="/", stdin=subprocess.DEVNULL,
                              env={**kept, **{key: str(value) for key, value in environment.items()}})

    def expect_refusal(self, done, *reasons):
        self.assertNotEqual(done.returncode, 0, done)
        for reason in reasons:
            self.assertIn(reason, done.stderr)

    # --- Runtime folder (S12)

    def test_root_does_not_use_runtime_folder_of_user(self):
        done = self.run_as(0, RUN_PROGRAM, "--list", XDG_RUNTIME_DIR=self.own[ATTACKER])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.own[ATTACKER].iterdir()), [])
        self.assertEqual(stat.S_IMODE((RUN / "rocinante").stat().st_mode), 0o700)

    def test_user_does_not_use_runtime_folder_below_folder_of_another_user(self):
        # The attacker can rename the victim's folder and put another one in its place.
        inner = self.make(self.own[ATTACKER] / "inner", VICTIM, 0o700)
        self.expect_refusal(self.run_as(VICTIM, RUN_PROGRAM, "--list", ROCI_RUNTIME=inner),
                            f"'{self.own[ATTACKER]}' belongs to another user ({ATTACKER})")
        shared = self.make(TMP / "shared", 0, 0o777)
        inner = self.make(shared / "inner", VICTIM, 0o700)
        self.expect_refusal(self.run_as(VICTIM, RUN_PROGRAM, "--list", ROCI_RUNTIME=inner),
                            f"'{shared}' is writable by other users")

    def test_folder_in_tmp_that_another_user_made_first_is_refused(self):
        folder = self.make(TMP / f"rocinante-{VICTIM}", ATTACKER, 0o777)
        self.expect_refusal(self.run_as(VICTIM, RUN_PROGRAM, "--list"), f"'{folder}' belongs to another user")
        shutil.rmtree(folder)
        folder.symlink_to(self.own[ATTACKER])
        self.expect_refusal(self.run_as(VICTIM, RUN_PROGRAM, "--list"), f"'{folder}' is not a folder")

    # --- Network of another user in the environment (S16)

    def test_root_does_not_join_network_of_user(self):
        net = self.make(TMP / "default", ATTACKER, 0o755)
        self.make(net / "slots", ATTACKER, 0o755)
        self.write(net / "net.yaml", ATTACKER, "net: {name: default}\n")
        self.write(self.own[0] / "victim", 0, "content")
        (net / "join.lock").symlink_to(self.own[0] / "victim")
        done = self.run_as(0, PERF, "write", "bw", "-n", "1", ROCI_NET=net)
        self.expect_refusal(done, f"'{net}' belongs to another user ({ATTACKER})")
        (net / "join.lock").unlink()
        done = self.run_as(0, PERF, "write", "bw", "-n", "1", ROCI_NET=net)
        self.expect_refusal(done, f"'{net}' belongs to another user ({ATTACKER})")
        self.assertEqual(sorted(path.name for path in net.rglob("*")), ["net.yaml", "slots"])

    # --- memif socket (S10)

    def host(self, user, path):
        return self.write(self.own[user] / "host.yaml", user,
                          "eal: {memory: 64MiB}\ndevice:\n  name: h\n  port:\n    connect_timeout: 500ms\n"
                          f"    device: 'net_memif0,role=client,id=0,socket={path}'\n  addresses: [10.0.0.1/24]\n")

    def test_memif_client_does_not_connect_to_server_of_another_user(self):
        path = TMP / "roci-switch.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(str(path))
            os.chown(path, ATTACKER, ATTACKER)
            path.chmod(0o777)
            server.listen()
            server.settimeout(0)
            done = self.run_as(VICTIM, PERF, "write", "bw", "--config", self.host(VICTIM, path))
            self.expect_refusal(done, f"'{TMP}' is writable by other users")
            with self.assertRaises(BlockingIOError):
                server.accept()
            inner = self.own[ATTACKER] / "m.sock"
            done = self.run_as(VICTIM, PERF, "write", "bw", "--config", self.host(VICTIM, inner))
            self.expect_refusal(done, f"'{self.own[ATTACKER]}' belongs to another user")

    def test_memif_client_accepts_private_folder(self):
        done = self.run_as(VICTIM, PERF, "write", "bw", "--config", self.host(VICTIM, self.own[VICTIM] / "m.sock"))
        self.expect_refusal(done, "the memif server does not listen")

    # --- Environment of a program with elevated privileges (S15)

    def test_set_user_id_program_ignores_environment(self):
        program = self.own[VICTIM] / "perf"
        shutil.copy(PERF, program)
        os.chown(program, VICTIM, VICTIM)
        program.chmod(0o4755)
        config = self.write(self.own[ATTACKER] / "evil.yaml", ATTACKER, "evil: 1\n")
        log = self.own[ATTACKER] / "stats"
        environment = {"ROCI_CONFIG": config, "ROCI_STATS": log, "ROCI_NET": self.own[ATTACKER], "ROCI_LOG": "evil"}
        done = self.run_as(VICTIM, program, "write", "bw", "-n", "1", **environment)
        self.expect_refusal(done, "evil.yaml")  # the same user: the variables are read
        done = self.run_as(ATTACKER, program, "write", "bw", "-n", "1", **environment)
        self.assertNotEqual(done.returncode, 0, done)
        self.assertNotIn("evil", done.stderr)
        self.assertNotIn(str(self.own[ATTACKER]), done.stderr)

    # --- Telemetry (S17)

    def test_telemetry_is_not_in_folder_of_another_user(self):
        config = self.write(self.own[VICTIM] / "s.yaml", VICTIM, QUIET)
        folder = self.make(TMP / "dpdk", ATTACKER, 0o777)
        done = self.run_as(VICTIM, SWITCH, "--config", config, "--duration", "50ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"telemetry is disabled: the folder '{folder}' belongs to another user", done.stderr)

    def test_top_does_not_query_processes_of_another_user(self):
        folder = self.make(TMP / "dpdk", ATTACKER, 0o755)
        place = self.make(folder / "roci-1", ATTACKER, 0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.bind(str(place / "dpdk_telemetry.v2"))
            (place / "dpdk_telemetry.v2").chmod(0o777)
            server.listen()
            server.settimeout(0)
            done = self.run_as(VICTIM, TOP, "--once")
            self.expect_refusal(done, f"'{folder}' belongs to another user")
            with self.assertRaises(BlockingIOError):
                server.accept()

    # --- Stop of a switch (S18)

    def test_root_does_not_stop_process_that_file_of_user_names(self):
        net = self.own[ATTACKER] / "r"
        self.make(net, ATTACKER, 0o755)
        self.make(net / "default", ATTACKER, 0o755)
        with subprocess.Popen(["sleep", "60"]) as other:
            self.write(net / "default" / "net.yaml", ATTACKER, "net: {name: default, switch: always}\n")
            self.write(net / "default" / "switch.pid", ATTACKER, f"{other.pid}\n")
            lock = self.write(net / "default" / "switch.lock", ATTACKER, "")
            with subprocess.Popen(["flock", "--no-fork", lock, "sleep", "60"], user=ATTACKER, group=ATTACKER) as holder:
                for environment in ({"ROCI_RUNTIME": net}, {"XDG_RUNTIME_DIR": self.own[ATTACKER]}):
                    self.expect_refusal(self.run_as(0, RUN_PROGRAM, "--stop", "default", **environment), "roci-run: ")
                self.assertIsNone(other.poll())
                holder.kill()
            other.kill()


if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter_namespace()
    RUN_PROGRAM, SWITCH, PERF, TOP = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(4))
    unittest.main()
