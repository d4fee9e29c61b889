#!/usr/bin/env python3
"""Tests that Rocinante's libibverbs.so.1 exports the names of the installed one, and that every program of this machine
finds the symbols it needs.

usage: symbols_test.py BUILT INSTALLED [unittest …]
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import unittest

OURS = INSTALLED = pathlib.Path()

# PROGRAMS and LIBRARIES must be installed; the others are checked if they are. All are from Debian.
PROGRAMS = ["/usr/bin/ib_send_bw", "/usr/bin/ib_write_bw", "/usr/bin/ib_read_lat", "/usr/bin/ib_atomic_bw",
            "/usr/bin/ibv_devices", "/usr/bin/ibv_devinfo", "/usr/bin/ibv_rc_pingpong", "/usr/bin/ibv_ud_pingpong"]
LIBRARIES = ["libmlx5.so.1", "libefa.so.1"]
PERHAPS = ["/usr/bin/ib_*", "/usr/bin/ibv_*", "/usr/bin/rping", "/usr/bin/ucmatose", "/usr/bin/fio", "/usr/bin/qperf"]
PERHAPS_LIBRARIES = ["libmlx4.so.1", "libmana.so.1", "librdmacm.so.1", "libibverbs/*.so", "ucx/libuct_ib.so.0",
                     "ucx/libuct_rdmacm.so.0", "libfabric.so.1", "librte_net_mlx4.so.23", "librte_net_mlx5.so.23"]

OUR_NODE = "ROCI_PRIVATE"  # For Rocinante's librdmacm.so.1.

# Symbols that rdma-core 56 added to a node of version 44. libmlx5 of that version, which perftest and UCX load, requires the
# first one.
NEWER = {("ibv_cmd_create_cq_ex2", "IBVERBS_PRIVATE_34", True), ("ibv_wr_opcode_str", "IBVERBS_PRIVATE_34", True)}

# Symbols that only the installed library exports: 33 duplicates at IBVERBS_1.0 of names that new programs get at 1.1,
# for programs from before 2006 with other structs, and the registration of providers of that time.
def is_left_out(symbol):
    name, version, default = symbol
    return not default and (version == "IBVERBS_1.0" or (name, version) == ("ibv_register_driver", "IBVERBS_1.1"))


def output_of(*command, **how):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


def defined(library):
    """Returns the symbols that a library exports, without version nodes: (name, version, whether it is the default)."""
    found = set()
    for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, symbol = line.split()[-2:]
        if kind != "A":
            name, at, version = symbol.partition("@")
            found.add((name, version.lstrip("@"), version.startswith("@") or not at))
    return found


def needed(path):
    """Returns the symbols of libibverbs.so.1 that a program or library needs: {(name, version)}."""
    found = set()
    for line in output_of("nm", "-D", "--undefined-only", "--with-symbol-versions", path).splitlines():
        name, _, version = line.split()[-1].partition("@")
        if version.lstrip("@").startswith("IBVERBS_"):
            found.add((name, version.lstrip("@")))
    return found


def version_nodes(library):
    """Returns the version nodes that a library defines, in order, each with its parents: [(name, [parent])]."""
    text = output_of("readelf", "--wide", "--version-info", library, env={**os.environ, "LC_ALL": "C"})
    definitions = re.search(r"^Version definition section.*?(?=^\S|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    nodes = []
    for line in definitions.group(0).splitlines():
        if name := re.search(r"Name: (\S+)", line):
            nodes.append((name.group(1), []))
        elif parent := re.search(r"Parent \d+: (\S+)", line):
            nodes[-1][1].append(parent.group(1))
    return nodes


def dynamic(library, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", output_of("readelf", "--wide", "-d", library))


def consumers():
    """Returns the required programs and libraries, and the optional ones that exist."""
    folder = INSTALLED.parent
    paths = {*PROGRAMS, *(str(folder / name) for name in LIBRARIES)}
    for pattern in PERHAPS + [str(folder / name) for name in PERHAPS_LIBRARIES]:
        paths.update(path for path in glob.glob(pattern) if is_elf(path))
    return sorted(paths)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


class Symbols(unittest.TestCase):
    def test_soname_equals_installed_library(self):
        self.assertEqual(dynamic(OURS, "SONAME"), ["libibverbs.so.1"])
        self.assertEqual(dynamic(OURS, "SONAME"), dynamic(INSTALLED, "SONAME"))

    def test_version_nodes_and_parents_equal_installed_library(self):
        ours = version_nodes(OURS)
        self.assertIn(("IBVERBS_PRIVATE_34", []), ours)
        self.assertIn(("IBVERBS_1.5", ["IBVERBS_1.1"]), ours)
        self.assertEqual([node for node in ours if node != (OUR_NODE, [])], version_nodes(INSTALLED))

    def test_exports_equal_installed_library_except_obsolete_symbols(self):
        installed = defined(INSTALLED)
        self.assertGreater(len(installed), 140)
        self.assertEqual(sum(map(is_left_out, installed)), 34)
        ours = defined(OURS)
        self.assertEqual([symbol for symbol in ours if symbol[1] == OUR_NODE], [("roci_cm_service", OUR_NODE, True)])
        self.assertLessEqual(NEWER, ours)
        self.assertEqual(sorted(symbol for symbol in ours - NEWER if symbol[1] != OUR_NODE),
                         sorted(symbol for symbol in installed - NEWER if not is_left_out(symbol)))

    def test_data_symbol_has_object_type(self):
        # A function instead of data would be read as the value.
        for library in (OURS, INSTALLED):
            table = output_of("readelf", "--wide", "--dyn-syms", library)
            row = next(line.split() for line in table.splitlines() if "verbs_allow_disassociate_destroy" in line)
            self.assertEqual((row[2], row[3]), ("1", "OBJECT"), library)

    def test_exports_every_symbol_that_installed_programs_require(self):
        here = {(name, version) for name, version, _ in defined(OURS)}
        all_needed = set()
        for path in consumers():
            with self.subTest(path):
                wanted = needed(path)
                all_needed |= wanted
                if path in PROGRAMS:
                    self.assertGreater(len(wanted), 2)
                self.assertEqual(sorted(wanted - here), [])
        self.assertGreater(len(all_needed), 50)

    def test_programs_load_without_loader_warnings(self):
        for path in PROGRAMS:
            with self.subTest(path):
                loaded = output_of("ldd", "-r", path, env={**os.environ, "LD_LIBRARY_PATH": str(OURS.parent)})
                self.assertIn(f"libibverbs.so.1 => {OURS} ", loaded)
                self.assertNotRegex(loaded, "undefined|not defined|version information|not found")

    def test_library_does_not_link_dpdk_or_rdma_libraries(self):
        loaded = output_of("ldd", OURS)
        self.assertNotRegex(loaded, r"librte_|libibverbs|libmlx|librdmacm")


if __name__ == "__main__":
    OURS, INSTALLED = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
