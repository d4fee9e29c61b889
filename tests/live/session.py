"""What the programs of this folder have in common: requirements, the network namespace, and the configuration of the device."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

import guest
import guest_image

SKIPPED = 77  # exit status
NETNS = pathlib.Path(__file__).resolve().parent.parent / "tools" / "netns.sh"
INSIDE = "ROCI_LIVE_NAMESPACE"  # set where the program runs in the namespace


def add_arguments(parser):
    parser.add_argument("bin", type=pathlib.Path, help="folder with roci-run")
    parser.add_argument("--kernel", choices=guest_image.KERNELS, default=guest_image.KERNELS[0], help="series of the guest's kernel")


@contextlib.contextmanager
def session(options, mtu):
    """The guest, in a namespace of its own. Sets the fields `bin`, `folder` and `config` (of the device) of the options. The program
    is executed a second time, in the namespace, and ends with exit status 77 where a requirement is not met."""
    try:
        if shutil.which("qemu-system-x86_64") is None:
            raise guest_image.Missing("qemu-system-x86_64 is not installed")
        kernel, initramfs = guest_image.build(options.kernel)
    except guest_image.Missing as missing:
        print(f"SKIPPED: {missing}")
        sys.exit(SKIPPED)
    if os.environ.pop(INSIDE, None) is None:  # packages can be downloaded only outside of the namespace
        os.environ[INSIDE] = "1"
        os.execv(NETNS, [str(NETNS), "--mtu", str(mtu), sys.executable, *sys.argv])
    options.bin = options.bin.resolve()
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        options.folder = folder
        options.config = pathlib.Path(folder) / "device.yaml"
        addresses = f"{guest.address(guest.DEVICE)}/24, {guest.address(guest.DEVICE, 6)}/64"
        options.config.write_text(f"device:\n  name: roci0\n  port: {{device: \"net_af_packet0,iface={guest.PORT}\", mtu: {mtu}}}\n"
                                  f"  addresses: [{addresses}]\n", encoding="utf-8")
        os.environ["ROCI_RUNTIME"] = folder
        guest.make_network(mtu)
        peer = guest.Guest(kernel, initramfs, folder, mtu)
        try:
            yield peer
        finally:
            peer.close()
