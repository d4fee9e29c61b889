"""Makes the portable archive from a build with ROCI_PORTABLE.

usage: pack.py BUILD NAME

Writes BUILD/NAME.tar.xz with the files that `cmake --install` installs, in the folder NAME, and the copyright files of the
Debian packages whose code is part of the programs. The same build makes the same archive: files are sorted, belong to
root and have the time SOURCE_DATE_EPOCH [0]."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

# Packages of the static libraries and of the headers with code.
LINKED = ("libaec-dev libbsd-dev libcli11-dev libdpdk-dev libexpected-dev libfmt-dev libhdf5-dev libjs-chart.js libmd-dev "
          "libpcap0.8-dev libspdlog-dev libstdc++-12-dev libyaml-cpp-dev nlohmann-json3-dev zlib1g-dev").split()


def add_copyright_files(folder):
    folder.mkdir(parents=True)
    for package in LINKED:
        file = pathlib.Path("/usr/share/doc", package, "copyright")
        if not file.exists():
            sys.exit(f"pack.py: the copyright file of the package {package} is missing: {file}")
        shutil.copyfile(file, folder / f"{package}.txt")  # follows links


def main():
    build, name = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    stage = build / "portable-stage"
    shutil.rmtree(stage, ignore_errors=True)
    subprocess.run(["cmake", "--install", build, "--prefix", stage / name, "--strip"], check=True, stdout=subprocess.DEVNULL)

    add_copyright_files(stage / name / "share/doc/rocinante/third-party")

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
