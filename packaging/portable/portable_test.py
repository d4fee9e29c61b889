"""Tests of the portable archive: its files, the versions and libraries that they require, and its programs and libraries as
an ordinary user, in a folder that is mounted read-only. Uses no file of the build.

usage: portable_test.py ARCHIVE [unittest arguments]

Requires root, to mount the folder read-only and to change the user; perftest, rdmacm-utils and ibverbs-utils; a compiler
and DPDK's headers, for a program that links DPDK itself."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ARCHIVE = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parent
MAX_BYTES = 25_000_000
MAX_GLIBC = (2, 34)
SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
PROGRAMS = ("roci-perf", "roci-switch", "roci-run", "roci-top", "roci-pcap", "roci-cc", "roci-lab")
USER = 65534  # an ordinary user
LIMIT = 120   # seconds that a program may take, including on a busy machine


def is_elf(file):
    if not file.is_file() or file.is_symlink():
        return False
    with open(file, "rb") as start:
        return start.read(4) == b"\x7fELF"


def read_elf(option, file):
    return subprocess.run(["readelf", "-W", option, str(file)], capture_output=True, text=True, check=True).stdout


def glibc_versions(file):
    """The versions of glibc's symbols that the file requires, as pairs of numbers."""
    return {tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", read_elf("-V", file))}


class Archive(unittest.TestCase):
    """Unpacks the archive once, into a folder that is then mounted read-only."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="portable-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        unpacked = cls.folder / "place"
        unpacked.mkdir()
        with tarfile.open(ARCHIVE) as archive:
            cls.members = archive.getmembers()
            archive.extractall(unpacked)
        subprocess.run(["mount", "--bind", unpacked, unpacked], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", "--lazy", unpacked], check=False)
        subprocess.run(["mount", "-o", "remount,bind,ro", unpacked], check=True)
        (cls.top,) = unpacked.iterdir()
        cls.home = cls.folder / "home"
        cls.home.mkdir()
        os.chown(cls.home, USER, USER)
        cls.files = sorted(file for file in cls.top.rglob("*") if is_elf(file))

    def command(self, *words):
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
                "--inh-caps=-all", "--bounding-set=-all", "env", "-i", "PATH=/usr/bin:/bin", f"HOME={self.home}",
                f"TMPDIR={self.home}", f"ROCI_RUNTIME={self.home}/r", *map(str, words)]

    def run_program(self, *words):
        return subprocess.run(self.command(*words), cwd=self.home, capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, check=False)


class Files(Archive):
    def test_archive_has_at_most_25_megabytes(self):
        self.assertLessEqual(ARCHIVE.stat().st_size, MAX_BYTES)

    def test_archive_has_one_folder_named_as_the_archive(self):
        name = ARCHIVE.name.removesuffix(".tar.xz")
        self.assertRegex(name, r"^rocinante-\d+\.\d+\.\d+-linux-x86_64$")
        self.assertEqual({member.name.split("/")[0] for member in self.members}, {name})

    def test_archive_contains_programs_libraries_headers_pages_and_configurations(self):
        expected = [f"bin/{name}" for name in PROGRAMS]
        expected += [f"share/man/man1/{name}.1" for name in PROGRAMS]
        expected += [f"lib/rocinante/{name}" for name in ("libibverbs.so.1", "librdmacm.so.1", "libibverbs.so",
                                                          "librdmacm.so", "libroci-paths.so")]
        expected += ["lib/librocinante.so", "include/roci/device.hpp", "include/roci/cc.h", "share/man/man7/rocinante.7",
                     "share/rocinante/config/net-default.yaml", "share/rocinante/config/lab/incast.yaml",
                     "share/doc/rocinante/LICENSE", "share/doc/rocinante/copyright",
                     "share/doc/rocinante/third-party/libdpdk-dev.txt"]
        self.assertEqual([name for name in expected if not (self.top / name).exists()], [])

    def test_files_belong_to_root_and_are_not_writable_by_others(self):
        self.assertEqual([member.name for member in self.members
                          if member.uid != 0 or (not member.issym() and member.mode & 0o022)], [])

    def test_elf_files_require_only_the_c_library(self):
        self.assertGreaterEqual(len(self.files), len(PROGRAMS) + 4)
        for file in self.files:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf("-d", file)))
            allowed = SYSTEM | ({"libibverbs.so.1"} if file.name == "librdmacm.so.1" else set())
            with self.subTest(file.name):
                self.assertLessEqual(needed, allowed)

    def test_elf_files_require_at_most_glibc_2_34(self):
        for file in self.files:
            versions = glibc_versions(file)
            with self.subTest(file.name):
                self.assertTrue(versions, "no version was read")
                newer = sorted(set(re.findall(r"\S+@GLIBC_2\.\d+", read_elf("--dyn-syms", file))))
                self.assertLessEqual(max(versions), MAX_GLIBC, [
                    symbol for symbol in newer if int(symbol.rpartition(".")[2]) > MAX_GLIBC[1]])

    def test_libraries_export_no_symbol_of_a_linked_library(self):
        foreign = re.compile(r"\b(rte_\w+|H5\w+|pcap_\w+|numa_\w+|bpf_\w+|xsk_\w+|_ZSt\w+|_ZNSt\w+|_ZNKSt\w+|_ZN4YAML\w+"
                             r"|_ZN6spdlog\w+|_ZN3fmt\w+|__cxa_\w+|__gxx_\w+|_Unwind_\w+|arc4random|_dl_find_object)\b")
        for file in self.files:
            if file.parent.name == "bin":
                continue
            exported = [line.split()[7] for line in read_elf("--dyn-syms", file).splitlines()
                        if len(line.split()) > 7 and line.split()[6] not in ("UND", "Ndx")]
            with self.subTest(file.name):
                self.assertTrue(exported, "no symbol was read")
                self.assertEqual([name for name in exported if foreign.match(name)], [])


class Programs(Archive):
    def test_folder_is_read_only(self):
        written = self.run_program("touch", self.top / "written")
        self.assertNotEqual(written.returncode, 0)
        with self.assertRaises(OSError):
            (self.top / "written").touch()

    def test_programs_print_version_and_help(self):
        version = re.match(r"rocinante-([\d.]+)-", ARCHIVE.name)[1]
        for name in PROGRAMS:
            with self.subTest(name):
                done = self.run_program(self.top / "bin" / name, "--version")
                self.assertEqual((done.returncode, done.stdout), (0, f"{name} {version}\n"), done.stderr)
                done = self.run_program(self.top / "bin" / name, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("sage:", done.stdout)

    def test_verified_transfer_in_one_process(self):
        done = self.run_program(self.top / "bin/roci-perf", "write", "bw", "--loopback", "--verify", "-n", "1000")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_experiment_with_one_and_with_two_threads_has_the_same_result(self):
        for threads in (1, 2):
            done = self.run_program(self.top / "bin/roci-lab", "run", self.top / "share/rocinante/config/lab/incast.yaml",
                                    "--out", self.home / f"lab{threads}", "--threads", threads)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        one, two = ({file.parent.name: file.read_bytes() for file in (self.home / f"lab{threads}").rglob("summary.json")}
                    for threads in (1, 2))
        self.assertTrue(one, "no summary was written")
        self.assertEqual(one, two)


    def built_with_dpdk(self, compiler, source, *more):
        """A program that links the distribution's DPDK and a library of the archive."""
        program = self.folder / pathlib.Path(source).stem
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.top / "lib/pkgconfig")}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", *more, "libdpdk"], capture_output=True, text=True,
                               check=True, env=environment).stdout.split()
        subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE / source,
                        f"-L{self.top}/lib/rocinante", "-libverbs", *flags], check=True)
        self.assertIn("[librte_eal.so", read_elf("-d", program))
        return program

    def test_program_with_dpdk_keeps_its_eal_and_opens_device(self):
        program = self.built_with_dpdk(["cc"], "own_eal.c")
        done = self.run_program(self.top / "bin/roci-run", "--net", "own", program)
        self.assertEqual((done.returncode, done.stdout), (0, "roci0 opened, 1 pool in the EAL of the program\n"),
                         done.stdout + done.stderr)

    def test_program_with_dpdk_and_cpp_api_keeps_its_eal_and_has_no_own_ports(self):
        program = self.built_with_dpdk(["c++", "-std=c++20", "-Wno-volatile"], "own_eal_api.cpp", "rocinante")
        done = self.run_program("env", f"LD_LIBRARY_PATH={self.top}/lib", program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        opened, refused = done.stdout.splitlines()
        self.assertEqual(opened, "roci0 opened, 1 pool in the EAL of the program")
        self.assertIn("port own: this build contains a DPDK of its own", refused)


class BetweenProcesses(Archive):
    """Unmodified programs: a server and its client, each under the archive's roci-run."""

    def start(self, *words):
        output = tempfile.TemporaryFile(dir=self.folder)
        process = subprocess.Popen(self.command(self.top / "bin/roci-run", "--net", "portable", *words), cwd=self.home,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        process.output = output
        self.addCleanup(output.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        process.wait(LIMIT)
        process.output.seek(0)
        return process.returncode, process.output.read().decode(errors="replace")

    def pair(self, server, client):
        """Runs the client until the server listens. Returns the outputs of both, which must exit with status 0."""
        running = self.start(*server)
        self.assert_maps_only_the_archive(running)
        deadline = time.monotonic() + LIMIT
        while True:
            status, text = self.finish(self.start(*client))
            if status == 0 and "REJECTED" not in text or time.monotonic() > deadline or running.poll() is not None:
                break
            time.sleep(0.5)
        self.assertEqual(status, 0, text)
        served, server_text = self.finish(running)
        self.assertEqual(served, 0, server_text)
        return server_text, text

    def assert_maps_only_the_archive(self, process):
        """The verbs libraries of the process are those of the archive."""
        deadline = time.monotonic() + LIMIT
        mapped = set()
        while time.monotonic() < deadline and process.poll() is None:
            maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
            mapped = set(re.findall(r"(/\S*/lib(?:ibverbs|rdmacm)\.so\S*)", maps))
            if mapped:
                break
            time.sleep(0.05)
        self.assertTrue(mapped, "no verbs library is mapped")
        self.assertEqual([file for file in mapped if not file.startswith(str(self.top))], [])

    def test_ib_write_bw(self):
        _, text = self.pair(("ib_write_bw", "-d", "roci0", "-n", "1000", "-F"),
                            ("ib_write_bw", "-d", "roci0", "-n", "1000", "-F", "127.0.0.1"))
        self.assertRegex(text, r"(?m)^\s*65536\s+1000\s")

    def test_rping_validates_the_data(self):
        server, client = self.pair(("rping", "-s", "-a", "10.77.0.1", "-C", "20", "-V", "-v"),
                                   ("rping", "-c", "-a", "10.77.0.1", "-C", "20", "-V", "-v"))
        self.assertEqual(len(re.findall("ping data: rdma-ping", client)), 20, server + client)

    def test_ibv_rc_pingpong_validates_the_data(self):
        server, client = self.pair(("ibv_rc_pingpong", "-d", "roci0", "-g", "1", "-c"),
                                   ("ibv_rc_pingpong", "-d", "roci0", "-g", "1", "-c", "127.0.0.1"))
        for text in (server, client):
            self.assertIn("iters in", text)
            self.assertNotIn("invalid data", text)


if __name__ == "__main__":
    missing = [name for name in ("ib_write_bw", "rping", "ibv_rc_pingpong", "setpriv", "readelf", "cc", "c++", "pkg-config")
               if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        sys.exit("portable_test: requires root and these programs: " + " ".join(missing))
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
