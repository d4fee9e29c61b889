"""perftest over kernel interfaces, veth0 and veth1 of tests/tools/netns.sh. Each process uses one of them."""

import subprocess
import sys
import unittest

from programs import LIMIT, Programs, free_port

Programs.run_program = sys.argv.pop(1)

DEVICE = """
device:
  name: roci0
  port: {{device: "net_{driver}{end},iface=veth{end}{more}", mtu: {mtu}}}
  addresses: [10.66.0.{host}/24]
"""


class KernelInterfaces(Programs):
    @classmethod
    def stop_net(cls):
        pass  # roci-run starts no switch for a configured device

    def run_pair(self, driver, mtu, more, *command):
        files = []
        for end in (0, 1):
            file = self.folder / f"{driver}{end}.yaml"
            file.write_text(DEVICE.format(driver=driver, end=end, more=more, mtu=mtu, host=end + 1), encoding="ascii")
            files.append(file)
        port = free_port()
        command = [*command, "-p", port]
        server = self.start(*command, where=("--config", files[0]))
        self.wait_for_server(server, port)
        client = self.start(*command, "127.0.0.1", where=("--config", files[1]))
        for process in (client, server):
            end = self.wait(process)
            self.assertEqual(end.status, 0, f"{process.args}:\n{end.text}")
            self.assertTrue(self.result_lines(end.text), end.text)

    def test_perftest_transfers_data_over_af_packet(self):
        for tool in ("ib_write_bw", "ib_send_lat", "ib_read_bw"):
            with self.subTest(tool):
                self.run_pair("af_packet", 1500, "", tool, "-d", "roci0", "-c", "RC", "-n", "100", "-s", "4096")

    def test_perftest_transfers_data_over_af_xdp(self):
        for tool in ("ib_write_bw", "ib_send_lat", "ib_read_bw"):
            with self.subTest(tool):
                self.run_pair("af_xdp", 1500, ",start_queue=0", tool, "-d", "roci0", "-c", "RC", "-n", "100", "-s", "4096")

    def test_device_files_name_the_interface_with_an_address_of_the_device(self):
        subprocess.run(["ip", "addr", "add", "10.66.9.9/24", "dev", "veth1"], check=True)
        self.addCleanup(subprocess.run, ["ip", "addr", "del", "10.66.9.9/24", "dev", "veth1"], check=True)
        file = self.folder / "named.yaml"
        for addresses, interface in (("10.66.9.9/24", "veth1"), ('"fd66::1/64", 10.66.9.9/16', "veth1"), ("10.66.9.8/24", "lo")):
            file.write_text(f"device:\n  port: {{device: net_null0}}\n  addresses: [{addresses}]\n", encoding="ascii")
            sysfs = "/sys/class/infiniband/roci0"
            done = subprocess.run([self.run_program, "--config", file, "sh", "-c",
                                   f"cat {sysfs}/ports/1/gid_attrs/ndevs/[01] {sysfs}/device/class; readlink -f {sysfs}/device"],
                                  env=self.environment, capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual((done.stdout, done.stderr), (f"{interface}\n{interface}\n0x020000\n"
                                                          "/sys/devices/pciffff:00/ffff:00:00.0\n", ""), addresses)

    def refused(self, driver, interface, mtu=1500, command=()):
        file = self.folder / "refused.yaml"
        file.write_text(f"device:\n  port: {{device: 'net_{driver}0,iface={interface}', mtu: {mtu}}}\n"
                        "  addresses: [10.66.0.1/24]\n", encoding="ascii")
        file.chmod(0o644)
        end = subprocess.run([*command, self.run_program, "--config", file, "ibv_devinfo"], env=self.environment,
                             capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertNotEqual(end.returncode, 0, end.stdout)
        errors = [line for line in end.stderr.splitlines() if line.startswith("roci: error: ")]
        self.assertEqual(len(errors), 1, end.stderr)
        return errors[0]

    def test_rejects_missing_down_small_mtu_or_unprivileged_interface(self):
        subprocess.run(["ip", "link", "add", "down0", "type", "veth", "peer", "name", "down1"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", "down0"], check=True)
        for driver in ("af_packet", "af_xdp"):
            with self.subTest(driver):
                device = f"roci: error: net_{driver}0: network interface"
                self.assertEqual(self.refused(driver, "veth7"),
                                 f'{device} "veth7" does not exist; ip link lists the interfaces')
                self.assertEqual(self.refused(driver, "down0"), f'{device} "down0" is down; ip link set down0 up')
                self.assertEqual(self.refused(driver, "veth0", mtu=2000),
                                 f'{device} "veth0" has MTU 1500, and the port 2000; configure a smaller MTU, or '
                                 "ip link set veth0 mtu 2000")
                self.assertEqual(self.refused(driver, "veth0", command=("setpriv", "--bounding-set=-net_raw",
                                                                        "--inh-caps=-net_raw")),
                                 f'{device} "veth0": raw sockets: Operation not permitted; root or CAP_NET_RAW is required')


if __name__ == "__main__":
    unittest.main(verbosity=2)
