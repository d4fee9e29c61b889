"""Makes the portable archive from a build with ROCI_PORTABLE.

usage: pack.py BUILD NAME

Writes BUILD/NAME.tar.xz with the files that `cmake --install` installs, in the folder NAME. The same build makes the same
archive: files are sorted, belong to root and have the time SOURCE_DATE_EPOCH [0]."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile


def main():
    build, name = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    stage = build / "portable-stage"
    shutil.rmtree(stage, ignore_errors=True)
    subprocess.run(["cmake", "--install", build, "--prefix", stage / name, "--strip"], check=True, stdout=subprocess.DEVNULL)

    def normalized(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
        member.mode &= ~0o022
        return member

    archive = build / f"{name}.tar"
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as packed:
        for file in sorted(stage.rglob("*")):
            packed.add(file, file.relative_to(stage), recursive=False, filter=normalized)
    shutil.rmtree(stage)
    # One thread: blocks of several threads compress less.
    subprocess.run(["xz", "-9e", "--force", archive], check=True)
    print(f"{archive}.xz")


main()
