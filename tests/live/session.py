"""Shared setup of the programs of this folder: requirements, network namespace, and device configuration."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import guest
import guest_image

SKIPPED = 77  # Exit status.
NETNS = pathlib.Path(__file__).resolve().parent.parent / "tools" / "netns.sh"
INSIDE = "ROCI_LIVE_NAMESPACE"  # Set if the program runs in the namespace.


def add_arguments(parser):
    parser.add_argument("bin", type=pathlib.Path, help="folder with roci-run")
    parser.add_argument("--kernel", choices=guest_image.KERNELS, default=guest_image.KERNELS[0], help="series of the guest's kernel")


def skip(reason):
    if os.environ.get("ROCI_REQUIRE_ALL"):
        print(f"FAILED: {reason}, and ROCI_REQUIRE_ALL is set")
        return 1
    print(f"SKIPPED: {reason}")
    return SKIPPED


@contextlib.contextmanager
def session(options, mtu, vlan=0):
    """Creates the guest and the network in a new namespace. Sets `bin`, `folder` and `config` (of the device) of the
    options. The program runs a second time, in the namespace. If a requirement is not met, it exits with the status
    of skip()."""
    if shutil.which("qemu-system-x86_64") is None:
        sys.exit(skip("qemu-system-x86_64 is not installed"))
    try:
        kernel, initramfs = guest_image.build(options.kernel)
    except guest_image.Missing as missing:
        sys.exit(skip(str(missing)))
    if os.environ.pop(INSIDE, None) is None:  # Packages can be downloaded only outside the namespace.
        os.environ[INSIDE] = "1"
        status = subprocess.run([NETNS, "--mtu", str(mtu + 4), sys.executable, *sys.argv], check=False).returncode
        sys.exit(skip("no network namespace can be made") if status == SKIPPED else status)
    options.bin = options.bin.resolve()
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        options.folder = folder
        options.config = pathlib.Path(folder) / "device.yaml"
        addresses = f"{guest.address(guest.DEVICE)}/24, {guest.address(guest.DEVICE, 6)}/64"
        options.config.write_text(f"device:\n  name: roci0\n  port: {{device: \"net_af_packet0,iface={guest.PORT}\", mtu: {mtu + 4}}}\n"
                                  f"  addresses: [{addresses}]\n  vlan: {vlan}\n", encoding="utf-8")
        os.environ["ROCI_RUNTIME"] = folder
        network = guest.Network(mtu, vlan)
        peer = guest.Guest(kernel, initramfs, folder, mtu, vlan)
        try:
            yield peer, network
        finally:
            network.close()
            peer.close()
