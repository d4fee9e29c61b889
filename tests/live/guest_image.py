#!/usr/bin/env python3
"""Builds the guest of the live tests: a Debian kernel, and an initramfs with rdma_rxe and the programs of this machine.

    tests/live/guest_image.py                 kernel 6.12, into build/guest
    tests/live/guest_image.py --kernel 6.1

The kernel and busybox are downloaded as Debian packages and unpacked below the folder; nothing is installed. All other
programs are those of this machine (perftest, ibverbs-utils, rdmacm-utils, iproute2), with the shared libraries that they
need. Takes about 10 s; a second call returns at once. The files are built again when a file of this folder has changed; remove
build/guest after an update of the programs."""

import argparse
import fcntl
import gzip
import lzma
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / "build" / "guest"
KERNELS = ("6.12", "6.1")
MODULES = ("virtio_pci", "virtio_net", "8021q", "sch_netem", "crc32_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm")
OPTIONAL_MODULES = {"crc32_generic"}  # Not in all kernels.
PROGRAMS = ("dash", "ip", "rdma", "tc",
            *(f"ib_{operation}_{what}" for operation in ("send", "write", "read", "atomic") for what in ("bw", "lat")),
            "ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong",
            "rping", "ucmatose", "udaddy", "mckey", "rstream", "fio")
# Loaded by name: the verbs provider, and a library that glibc needs to end a thread.
LIBRARIES = ("libibverbs/librxe-rdmav*.so", "libgcc_s.so.1")
LIBRARY_FOLDER = "/usr/lib/x86_64-linux-gnu"


class Missing(Exception):
    """A package or a program of the guest is not available on this machine."""


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernel_package(series):
    """Returns the newest generic kernel of the series that apt can download. Only generic kernels include rdma_rxe."""
    names = output_of("apt-cache", "search", "--names-only", rf"^linux-image-{re.escape(series)}[.+0-9a-z-]*-amd64(-unsigned)?$")
    found = []
    for name in (line.split()[0] for line in names.splitlines()):
        version = re.fullmatch(rf"linux-image-({re.escape(series)}\.[0-9.+~a-z-]*?)-amd64(-unsigned)?", name)
        if version is None or re.search("cloud|rt|dbg", version[1]):
            continue
        if "\nFilename:" in output_of("apt-cache", "show", name):
            found.append(([int(number) for number in re.findall(r"\d+", version[1])], name))
    if not found:
        raise Missing(f"apt knows no package linux-image-{series}.*-amd64 (apt-get update?)")
    return max(found)[1]


def unpacked(package, folder):
    """Returns the folder with the files of a Debian package. Downloads the package once."""
    tree = folder / "packages" / package
    if tree.is_dir():
        return tree
    part = tree.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], cwd=part, check=True,
                       capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise Missing(f"apt-get cannot download {package}: {error.stderr.strip()}") from error
    archive = next(part.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", archive, part], check=True)
    archive.unlink()
    part.rename(tree)
    return tree


def write_elf(image, target):
    """Writes the uncompressed kernel: with emulation, QEMU needs seconds to decompress it."""
    data = image.read_bytes()

    def zstd(compressed):
        return subprocess.run(["zstd", "-dc"], input=compressed, capture_output=True, check=False).stdout

    formats = ((b"\xfd7zXZ\x00", lambda part: lzma.LZMADecompressor().decompress(part)),
               (b"\x1f\x8b\x08", gzip.decompress), (b"\x28\xb5\x2f\xfd", zstd))
    for magic, decompress in formats:
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            try:
                kernel = decompress(data[at:])
            except (lzma.LZMAError, OSError, EOFError):
                continue
            if kernel.startswith(b"\x7fELF"):
                target.write_bytes(kernel)
                return
    raise Missing(f"{image} contains no compressed ELF file")


class Modules:
    """Kernel modules and those they depend on, in the order in which insmod takes them."""

    def __init__(self, tree, root):
        self.files = {path.name.split(".")[0].replace("-", "_"): path for path in tree.rglob("*.ko*")}
        self.builtin = {pathlib.Path(line).stem.replace("-", "_")
                        for line in next(tree.rglob("modules.builtin")).read_text().splitlines()}
        self.root, self.order = root, []

    def add(self, name):
        name = name.replace("-", "_")
        if f"{name}.ko" in self.order or name in self.builtin:
            return
        if name not in self.files:
            if name in OPTIONAL_MODULES:
                return
            raise Missing(f"the kernel has no module {name}")
        content = self.files[name].read_bytes()
        if self.files[name].suffix == ".xz":
            content = lzma.decompress(content)
        needed = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in filter(None, needed[1].decode().split(",") if needed else ()):
            self.add(other)
        (self.root / f"{name}.ko").write_bytes(content)
        self.order.append(f"{name}.ko")


def copy_with_libraries(source, target, root):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    for library in re.findall(r"(/\S+\.so\S*)", output_of("ldd", source)):
        place = root / "lib" / pathlib.Path(library).name
        if not place.exists():
            shutil.copy(library, place)


def make_root(root, tree, busybox):
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "lib", "lib64", "modules", "proc", "sys", "dev", "tmp", "run", "etc/libibverbs.d", "www/cgi-bin"):
        (root / name).mkdir(parents=True)
    modules = Modules(tree, root / "modules")
    for name in MODULES:
        modules.add(name)
    (root / "modules" / "order").write_text("".join(f"{name}\n" for name in modules.order))

    shutil.copy(busybox, root / "bin" / "busybox")
    for name in output_of(busybox, "--list").split():
        if name not in ("busybox", "sh", *PROGRAMS):
            (root / "bin" / name).symlink_to("busybox")
    for name in PROGRAMS:
        path = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
        if path is None:
            raise Missing(f"{name} is not installed (./roci deps installs it)")
        copy_with_libraries(path, root / "bin" / name, root)
    (root / "bin" / "sh").symlink_to("dash")  # the shell of busybox would prefer busybox's own commands
    for pattern in LIBRARIES:
        for path in pathlib.Path(LIBRARY_FOLDER).glob(pattern):
            place = root / "usr/lib/x86_64-linux-gnu" / path.relative_to(LIBRARY_FOLDER)
            copy_with_libraries(path, place, root)
    (root / "lib64" / "ld-linux-x86-64.so.2").symlink_to("../lib/ld-linux-x86-64.so.2")
    shutil.copy("/etc/libibverbs.d/rxe.driver", root / "etc/libibverbs.d")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    shutil.copy(HERE / "guest" / "init", root / "init")
    shutil.copy(HERE / "guest" / "run", root / "www/cgi-bin/run")


def build(series=KERNELS[0], folder=FOLDER):
    """Builds what is missing or older than the files of this folder. Returns the paths of the kernel and of the initramfs."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kernel, initramfs = folder / f"vmlinux-{series}", folder / f"initramfs-{series}"
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [HERE / "guest_image.py", HERE / "guest" / "init", HERE / "guest" / "run"]
        changed = max(path.stat().st_mtime for path in sources)
        if all(path.exists() and path.stat().st_mtime > changed for path in (kernel, initramfs)):
            return kernel, initramfs
        tree = unpacked(kernel_package(series), folder)
        busybox = next(unpacked("busybox-static", folder).glob("**/bin/busybox"))
        write_elf(next(tree.glob("boot/vmlinuz-*")), kernel)
        root = folder / f"root-{series}"
        make_root(root, tree, busybox)
        names = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
        with open(initramfs.with_suffix(".part"), "wb") as archive:
            subprocess.run([busybox, "cpio", "-o", "-H", "newc"], input=names.encode(), cwd=root, stdout=archive,
                           stderr=subprocess.DEVNULL, check=True)
        initramfs.with_suffix(".part").rename(initramfs)
        shutil.rmtree(root)
    return kernel, initramfs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", choices=KERNELS, default=KERNELS[0], help="series of the kernel")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="build/guest")
    options = parser.parse_args()
    try:
        for path in build(options.kernel, options.folder):
            print(f"{path} {path.stat().st_size / 2**20:.0f} MiB")
    except Missing as reason:
        sys.exit(f"guest_image.py: {reason}")


if __name__ == "__main__":
    main()
