#!/usr/bin/env python3
"""Packs the unnamed inputs of a fuzzer into its seed archive, and unpacks them.

Usage: seed_archive.py pack ARCHIVE FOLDER     Writes the unnamed inputs in FOLDER to ARCHIVE.
       seed_archive.py unpack ARCHIVE FOLDER   Writes the inputs in ARCHIVE to FOLDER, and removes other unnamed inputs.

Unnamed inputs have the names that libFuzzer gives: the SHA-1 of the content in 40 hex digits. `pack` ignores other files.
ARCHIVE is a zip file, as OSS-Fuzz expects it: NAME_seed_corpus.zip. The same inputs give the same bytes, with any version
of Python and zlib: names are sorted, time stamps are fixed and inputs are stored. Git compresses the whole archive, which
gives less than compression of each input.
"""

import io
import pathlib
import re
import sys
import zipfile
import zlib

UNNAMED = re.compile(r"[0-9a-f]{40}")
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of the zip format
UNIX, REGULAR_FILE = 3, 0o100644
LOCAL_HEADER, DIRECTORY_ENTRY, END_OF_DIRECTORY = 30, 46, 22  # bytes, without names
# Exceptions of zipfile, depending on the damaged field: offsets, flags, methods, sizes.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)


class ArchiveError(Exception):
    """An archive that cannot be used; the text is a sentence for the user."""


def unnamed_inputs(folder):
    """Returns the paths of the unnamed inputs in a folder."""
    return [path for path in pathlib.Path(folder).iterdir() if UNNAMED.fullmatch(path.name) and path.is_file()]


def archive_of(inputs):
    """Returns the bytes of the archive of inputs, which are given by name."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(inputs):
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.create_system = UNIX
            entry.external_attr = REGULAR_FILE << 16
            file.writestr(entry, inputs[name])
    return result.getvalue()


def pack(archive, folder):
    """Replaces the archive. Returns the number of inputs."""
    inputs = {path.name: path.read_bytes() for path in unnamed_inputs(folder)}
    unfinished = pathlib.Path(f"{archive}.new")
    try:
        unfinished.write_bytes(archive_of(inputs))
        unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)
    return len(inputs)


def size_of(inputs):
    """Returns the size of the archive of these inputs."""
    return END_OF_DIRECTORY + sum(LOCAL_HEADER + DIRECTORY_ENTRY + 2 * len(name) + len(data)
                                  for name, data in inputs.items())


def contents(archive):
    """Returns the inputs of an archive by name. Reading verifies their names and CRCs."""
    data = pathlib.Path(archive).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            inputs = {name: file.read(name) for name in file.namelist()}
    except DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise ArchiveError(f"{archive}: damaged archive ({reason}); restore the file from version control") from error
    for name in inputs:
        if not UNNAMED.fullmatch(name):
            raise ArchiveError(f"{archive}: entry {name!r} is not an unnamed input; allowed: names of 40 hex digits")
    # zipfile does not report entries that a damaged directory omits.
    if len(data) != size_of(inputs):
        raise ArchiveError(f"{archive}: damaged archive, or not written by this program ({len(inputs)} entries of "
                           f"{size_of(inputs)} bytes were found); restore the file from version control")
    return inputs


def unpack(archive, folder):
    """Reads the whole archive before it changes the folder. Returns the number of inputs."""
    inputs = contents(archive)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in unnamed_inputs(folder):
        if path.name not in inputs:
            path.unlink()
    for name, data in inputs.items():
        (folder / name).write_bytes(data)
    return len(inputs)


def main():
    commands = {"pack": pack, "unpack": unpack}
    if len(sys.argv) != 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    try:
        count = commands[sys.argv[1]](sys.argv[2], sys.argv[3])
    except ArchiveError as error:
        sys.exit(f"seed_archive: {error}")
    except OSError as error:
        sys.exit(f"seed_archive: {error.filename}: {error.strerror}")
    if sys.argv[1] == "pack":  # The build runs `unpack`.
        print(f"{sys.argv[2]}: {count} inputs")


if __name__ == "__main__":
    main()
