#!/usr/bin/env python3
"""Tests of seed_archive.py, and of the archives in the source tree."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import seed_archive

HERE = pathlib.Path(__file__).parent
CORPUS = HERE / "corpus"
INPUTS = [b"", b"\0" * 100, b"frame", bytes(range(256))]
EXPECTED_SHA256 = "6797798da790583f99809670a1a2360078091e57faac98da343bf53083d46837"  # of the archive of INPUTS


def name_of(data):
    return hashlib.sha1(data).hexdigest()


def write_inputs(folder, inputs):
    folder.mkdir()
    for data in inputs:
        (folder / name_of(data)).write_bytes(data)
    return folder


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class SeedArchive(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.archive = self.folder / "frame_seed_corpus.zip"

    def test_unpacked_inputs_equal_the_packed_inputs(self):
        self.assertEqual(seed_archive.pack(self.archive, write_inputs(self.folder / "in", INPUTS)), len(INPUTS))
        self.assertEqual(seed_archive.unpack(self.archive, self.folder / "out"), len(INPUTS))
        self.assertEqual(files_in(self.folder / "out"), {name_of(data): data for data in INPUTS})

    def test_same_inputs_give_the_same_bytes(self):
        # The second folder differs in the order of creation, the time stamps and the permissions.
        first = write_inputs(self.folder / "first", INPUTS)
        second = write_inputs(self.folder / "second", reversed(INPUTS))
        for path in second.iterdir():
            os.utime(path, (10**9, 10**9))
            path.chmod(0o600)
        other = self.folder / "other.zip"
        seed_archive.pack(self.archive, first)
        seed_archive.pack(other, second)
        self.assertEqual(self.archive.read_bytes(), other.read_bytes())
        self.assertEqual(hashlib.sha256(other.read_bytes()).hexdigest(), EXPECTED_SHA256)

    def test_named_files_are_not_packed(self):
        folder = write_inputs(self.folder / "in", INPUTS)
        (folder / "length-field-exceeds-the-frame").write_bytes(b"x")
        seed_archive.pack(self.archive, folder)
        self.assertEqual(sorted(seed_archive.contents(self.archive)), sorted(name_of(data) for data in INPUTS))

    def test_folder_without_inputs_gives_an_empty_archive(self):
        seed_archive.pack(self.archive, write_inputs(self.folder / "in", []))
        self.assertEqual(seed_archive.unpack(self.archive, self.folder / "out"), 0)

    def test_unpack_removes_inputs_that_are_not_in_the_archive_and_no_other_files(self):
        seed_archive.pack(self.archive, write_inputs(self.folder / "in", INPUTS[:2]))
        out = write_inputs(self.folder / "out", INPUTS[1:])
        (out / "notes.txt").write_bytes(b"x")
        (out / name_of(INPUTS[1])).write_bytes(b"changed")
        seed_archive.unpack(self.archive, out)
        self.assertEqual(files_in(out), {name_of(data): data for data in INPUTS[:2]} | {"notes.txt": b"x"})

    def fails(self, command, archive, folder):
        """Runs the program, which must fail with one line. Returns the line."""
        run = subprocess.run([sys.executable, HERE / "seed_archive.py", command, archive, folder], capture_output=True,
                             text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        return run.stderr.strip()

    def test_unpack_reports_damaged_archive_and_leaves_folder_unchanged(self):
        seed_archive.pack(self.archive, write_inputs(self.folder / "in", INPUTS))
        good = self.archive.read_bytes()
        out = write_inputs(self.folder / "out", INPUTS[:1])
        flipped = bytearray(good)
        flipped[good.index(b"frame")] ^= 1
        for damaged in (b"", b"no archive", good[:-30], good[: len(good) // 2], bytes(flipped)):
            self.archive.write_bytes(damaged)
            line = self.fails("unpack", self.archive, out)
            self.assertRegex(line, r"^seed_archive: .*frame_seed_corpus\.zip: damaged archive \(.+\); restore the file")
            self.assertEqual(files_in(out), {name_of(INPUTS[0]): INPUTS[0]})

    def test_single_damaged_byte_is_rejected_or_leaves_contents_unchanged(self):
        seed_archive.pack(self.archive, write_inputs(self.folder / "in", [b"", b"frame"]))
        good = self.archive.read_bytes()
        right = seed_archive.contents(self.archive)
        for at in range(len(good)):
            damaged = bytearray(good)
            damaged[at] ^= 0xFF
            self.archive.write_bytes(damaged)
            try:
                found = seed_archive.contents(self.archive)
            except seed_archive.ArchiveError:
                continue
            self.assertEqual(found, right, f"byte {at}")

    def test_unpack_rejects_entry_outside_of_the_folder(self):
        with zipfile.ZipFile(self.archive, "w") as file:
            file.writestr("../" + name_of(b""), b"")
        line = self.fails("unpack", self.archive, self.folder / "out")
        self.assertIn("is not an unnamed input; allowed: names of 40 hex digits", line)

    def test_reports_missing_archive_or_folder_in_one_line(self):
        self.assertIn("frame_seed_corpus.zip: No such file", self.fails("unpack", self.archive, self.folder / "out"))
        self.assertIn("in: No such file", self.fails("pack", self.archive, self.folder / "in"))
        self.assertFalse(self.archive.exists())


class SourceTreeArchives(unittest.TestCase):
    def test_archives_equal_the_output_of_pack(self):
        archives = sorted(CORPUS.glob("*_seed_corpus.zip"))
        self.assertTrue(archives)
        for archive in archives:
            inputs = seed_archive.contents(archive)
            self.assertEqual(hashlib.sha256(seed_archive.archive_of(inputs)).digest(),
                             hashlib.sha256(archive.read_bytes()).digest(), archive.name)
            self.assertEqual([name for name, data in inputs.items() if name != name_of(data)], [], archive.name)

    def test_unnamed_inputs_are_in_the_archives_only(self):
        loose = [path.relative_to(CORPUS) for path in CORPUS.rglob("*") if seed_archive.UNNAMED.fullmatch(path.name)]
        self.assertEqual(loose, [], "name them, or move them to build/fuzz/corpus/NAME and run './roci fuzz NAME --keep'")


if __name__ == "__main__":
    unittest.main()
