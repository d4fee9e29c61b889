"""Tests that every program and library of the build and of the installation is hardened."""
import subprocess
import unittest

import hardening
import installed
from installed import Installed


class Hardening(Installed):
    def check(self, files, minimum):
        files = [file for file in files if hardening.is_elf(file)]
        self.assertGreaterEqual(len(files), minimum, files)
        self.assertEqual({str(file): hardening.problems(file) for file in files if hardening.problems(file)}, {})
        # The path shim replaces the fortified functions.
        plain = {file.name for file in files if not hardening.is_fortified(file)}
        self.assertEqual(plain - {"libroci-paths.so"}, set())

    def test_installed_programs_and_libraries(self):
        self.check(self.prefix.rglob("*"), len(installed.PROGRAMS) + 4)

    def test_programs_and_libraries_of_build(self):
        programs = [installed.BUILD / "bin" / name for name in installed.PROGRAMS]
        self.check([*programs, *(installed.BUILD / "lib").rglob("*.so*")], len(installed.PROGRAMS) + 4)

    def built(self, *flags):
        """Builds a program with the flags and returns its problems."""
        file = self.new_folder() / "program"
        subprocess.run(["cc", "-x", "c", "-", "-o", str(file), *flags], check=True, text=True,
                       input="#include <string.h>\nint main(int c, char** v) { char a[64]; return c > 1 && *strcpy(a, v[1]); }")
        return hardening.problems(file), hardening.is_fortified(file)

    def test_problems_of_programs_that_are_not_hardened_are_found(self):
        good = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fPIE", "-pie",
                "-Wl,-z,relro,-z,now,-z,noexecstack"]
        self.assertEqual(self.built(*good), ([], True))
        for flags, expected in ((["-no-pie", "-fno-PIE"], "is not position-independent"),
                                (["-Wl,-z,norelro"], "has no read-only relocations"),
                                (["-Wl,-z,lazy"], "binds symbols lazily"),
                                (["-Wl,-z,execstack"], "has an executable stack"),
                                (["-Wl,-rpath,/usr/lib:"], "searches libraries in ''"),
                                (["-fno-stack-protector"], "has no stack protector")):
            with self.subTest(expected):
                self.assertIn(expected, self.built(*good, *flags)[0])
        self.assertFalse(self.built(*good, "-U_FORTIFY_SOURCE")[1])


if __name__ == "__main__":
    unittest.main()
