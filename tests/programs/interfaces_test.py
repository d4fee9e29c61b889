"""perftest over kernel interfaces, veth0 and veth1 of tests/tools/netns.sh. Each process uses one of them."""

import sys
import unittest

from programs import Programs, free_port

Programs.run_program = sys.argv.pop(1)

DEVICE = """
device:
  name: roci0
  port: {{device: "net_{driver}{end},iface=veth{end}{more}", mtu: {mtu}}}
  addresses: [10.66.0.{host}/24]
"""


class Interfaces(Programs):
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

    def test_packet_sockets(self):
        for tool in ("ib_write_bw", "ib_send_lat", "ib_read_bw"):
            with self.subTest(tool):
                self.run_pair("af_packet", 1500, "", tool, "-d", "roci0", "-c", "RC", "-n", "100", "-s", "4096")

    def test_xdp_sockets(self):
        for tool in ("ib_write_bw", "ib_send_lat", "ib_read_bw"):
            with self.subTest(tool):
                self.run_pair("af_xdp", 1500, ",start_queue=0", tool, "-d", "roci0", "-c", "RC", "-n", "100", "-s", "4096")


if __name__ == "__main__":
    unittest.main(verbosity=2)
