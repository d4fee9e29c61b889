"""Tests that the Debian package is complete, declares its dependencies, and works where it is unpacked."""
import functools
import pathlib
import re
import unittest

import installed
from installed import run


@functools.cache
def package():
    """Packs the build into a temporary folder; returns (result of the command, path of the package)."""
    folder = installed.folder() / "package"
    done = run(pathlib.Path(installed.CMAKE).with_name("cpack"), "--config", installed.BUILD / "CPackConfig.cmake", "-G", "DEB", "-B",
               folder)
    return done, next(folder.glob("*.deb"), None)


class Package(unittest.TestCase):
    def setUp(self):
        done, self.file = package()
        self.assertEqual(done.returncode, 0, done.stdout)

    def said(self, *words):
        done = run("dpkg-deb", *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def field(self, name):
        return self.said("-f", self.file, name).strip()

    def test_control_fields_describe_package(self):
        text = (installed.SOURCE / "include/roci/version.h").read_text()
        version = ".".join(re.findall(r"#define ROCI_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))
        architecture = run("dpkg", "--print-architecture").stdout.strip()
        self.assertEqual(self.file.name, f"rocinante_{version}_{architecture}.deb")
        self.assertEqual([self.field(name) for name in ("Package", "Version", "Architecture", "Section", "Priority")],
                         ["rocinante", version, architecture, "net", "optional"])
        self.assertRegex(self.field("Maintainer"), r"^[\w ]+ <\S+@\S+>$")
        description = self.field("Description").splitlines()
        self.assertEqual(description[0], "RDMA without RDMA hardware")
        self.assertGreater(len(description), 3)
        self.assertEqual(len(description), len(set(description)))

    def test_depends_on_linked_libraries_and_dpdk_drivers(self):
        needed = {re.split(r"[ (:]", one)[0] for one in self.field("Depends").split(", ")}
        for library in (r"libc6", r"libstdc\+\+6", r"librte-eal\d+", r"librte-ethdev\d+", r"libyaml-cpp\d.*", r"libisal\d+",
                        r"librte-net-memif\d+", r"librte-mempool-ring\d+", r"librte-bus-vdev\d+", r"libxdp\d+"):
            self.assertTrue(any(re.fullmatch(library, name) for name in needed), f"{library} in {sorted(needed)}")
        self.assertEqual(needed & {"libibverbs1", "librdmacm1"}, set())

    def test_shlibs_lists_only_librocinante_and_postinst_runs_ldconfig(self):
        self.said("-e", self.file, self.control())
        self.assertRegex((self.control() / "shlibs").read_text(), r"\Alibrocinante 0\.\d+ rocinante \(>= [\d.]+\)\n\Z")
        self.assertIn("ldconfig", (self.control() / "postinst").read_text())

    def control(self):
        return self.file.parent / "control"

    def test_files_are_below_usr_and_owned_by_root(self):
        lines = [line.split(None, 5) for line in self.said("-c", self.file).splitlines()]
        paths = {line[5].split(" -> ")[0].rstrip("/") for line in lines}
        self.assertEqual({line[1] for line in lines}, {"root/root"})
        self.assertEqual([line for line in lines if line[0][0] == "-" and "w" in line[0][4:]], [])
        self.assertEqual([path for path in paths if path not in (".", "./usr") and not path.startswith("./usr/")], [])
        wanted = {"include/roci/open.hpp", "share/man/man7/rocinante.7", "share/doc/rocinante/copyright",
                  "share/rocinante/config/switch-memif.yaml"}
        for program in installed.PROGRAMS:
            wanted |= {f"bin/{program}", f"share/man/man1/{program}.1", f"share/bash-completion/completions/{program}"}
        self.assertEqual({f"./usr/{path}" for path in wanted} - paths, set())
        for library in (r"librocinante\.so", r"librocinante\.so\.\d+\.\d+\.\d+", r"rocinante/libibverbs\.so\.1",
                        r"rocinante/librdmacm\.so\.1",
                        r"pkgconfig/rocinante\.pc", r"cmake/rocinante/rocinanteConfig\.cmake"):
            self.assertTrue(any(re.fullmatch(rf"\./usr/lib/([\w-]+/)?{library}", path) for path in paths), library)

    def test_unpacked_programs_run_and_have_no_debug_information(self):
        folder = installed.folder() / "unpacked"
        self.said("-x", self.file, folder)
        listed = run(folder / "usr/bin/roci-cc", "list")
        self.assertEqual(listed.returncode, 0, listed.stdout)
        self.assertIn("dcqcn", listed.stdout)
        sections = run("readelf", "-SW", folder / "usr/bin/roci-perf").stdout
        self.assertIn(".text", sections)
        self.assertNotIn(".debug_info", sections)
