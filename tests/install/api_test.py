"""Tests that external programs can be built against the installed C++ API, with CMake and with pkg-config, and open a
device."""
import re

import installed
from installed import Installed, run

PROGRAMS = "tests/install/programs"
SAID = "the configuration:1: device.port.mtv is an unknown key, did you mean 'mtu'?"


class Api(Installed):
    def setUp(self):
        super().setUp()
        found = list(self.prefix.glob("lib*/**/librocinante.so"))
        self.assertEqual(len(found), 1, found)
        self.libraries = found[0].parent
        self.environment = installed.clean_environment(LD_LIBRARY_PATH=str(self.libraries),
                                                       PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"))

    def built_with_pkg_config(self, *flags, modules=("rocinante",)):
        program = self.new_folder() / "program"
        words = self.pipe("pkg-config", "--cflags", "--libs", *modules, env=self.environment).split()
        self.pipe("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", *flags, installed.SOURCE / PROGRAMS / "program.cpp", "-o",
                  program, *words, env=self.environment)
        return program

    def test_program_builds_with_cmake_and_opens_device(self):
        build = self.new_folder()
        self.pipe(installed.CMAKE, "-S", installed.SOURCE / PROGRAMS, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  env=self.environment)
        self.pipe(installed.CMAKE, "--build", build, env=self.environment)
        said = self.pipe(build / "program", env=installed.clean_environment())  # CMake sets an RPATH.
        self.assertIn(SAID, said)
        self.assertRegex(said, r"(?m)^roci0: 2 GIDs, queue pair of Rocinante \d+\.\d+\.\d+$")
        self.assertIn("\nown\nport silent1: only silent0 exists\n", said)  # ports of the program

    def test_program_builds_with_pkg_config_and_reads_configuration_file(self):
        program = self.built_with_pkg_config()
        file = self.new_folder() / "host.yaml"
        file.write_text("eal: {memory: 128MiB}\ndevice:\n  name: here\n  port: {device: net_null7, mtu: 4200}\n"
                        '  addresses: [10.0.0.1/24, "fd00::1/64"]\n')
        self.assertIn("here: 3 GIDs", self.pipe(program, file, env=self.environment))
        missing = run(program, file.parent / "none.yaml", env=self.environment)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("none.yaml' cannot be read: No such file or directory", missing.stdout)

    def test_program_runs_with_system_libibverbs_linked(self):
        program = self.built_with_pkg_config("-DWITH_VERBS", modules=("rocinante", "libibverbs"))
        needed = self.pipe("readelf", "-d", program)
        self.assertIn("[libibverbs.so.1]", needed)
        said = self.pipe(program, env=self.environment)
        self.assertIn("success\n", said)
        self.assertIn("roci0: 2 GIDs", said)

    def test_find_package_rejects_unknown_component(self):
        source = self.new_folder()
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(none LANGUAGES CXX)\n"
                                               "find_package(rocinante REQUIRED COMPONENTS wings)\n")
        done = run(installed.CMAKE, "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   env=self.environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rocinante has no component 'wings'; allowed are cc and library", done.stdout)

    def test_exported_names_match_public_headers(self):
        names = self.pipe("nm", "-DC", "--defined-only", self.libraries / "librocinante.so").splitlines()
        exported = [re.sub(r"\(.*|\[abi:.*", "", line.split(" ", 2)[2]) for line in names]
        headers = "\n".join(path.read_text() for path in (self.prefix / "include/roci").glob("*.hpp"))
        classes = set(re.findall(r"(?m)^class (\w+) \{", headers))
        self.assertGreater(len(classes), 5)
        functions = re.findall(r"(?m)^(?:\[\[nodiscard\]\] )?(?:Status|Result<.*>) (\w+)\(", headers)
        self.assertLessEqual({"destroy", "open_device", "open_device_from_text"}, set(functions))
        allowed = re.compile(rf"roci::(({'|'.join(classes)})::~?\w+|{'|'.join(functions)})$")
        self.assertEqual([name for name in exported if not allowed.match(name)], [])
        destroyed = {f"roci::{name}::~{name}" for name in classes if f"~{name}();" in headers}
        self.assertEqual(destroyed - set(exported), set())
        for name in functions:  # Every overload is exported.
            self.assertEqual(exported.count(f"roci::{name}"), functions.count(name), name)

    def test_soname_contains_minor_version_while_major_is_0(self):
        major, minor, _ = installed.version()
        self.assertEqual(major, "0")
        self.assertIn(f"Library soname: [librocinante.so.0.{minor}]",
                      self.pipe("readelf", "-d", self.libraries / "librocinante.so"))
