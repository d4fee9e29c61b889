#!/usr/bin/env python3
"""Tests that check_includes.py can fail: each test builds a small source tree and breaks one rule in it."""

import pathlib
import tempfile
import unittest

import check_includes

CORRECT_TREE = {
    "include/roci/cc.h": "#include <stdint.h>\n",
    "include/roci/result.hpp": "#include <tl/expected.hpp>\n",
    "include/roci/device.hpp": '#include <infiniband/verbs.h>\n#include "roci/result.hpp"\n',
    "lib/base/types.hpp": "#include <cstdint>\n",
    "lib/base/result.hpp": '#include "roci/result.hpp"\n',
    "lib/wire/icrc/icrc.hpp": '#include <rte_mbuf.h>\n#include "base/types.hpp"\n',
    "lib/telemetry/counters.hpp": '#include "base/types.hpp"\n',
    "lib/port/port.hpp": '#include "wire/icrc/icrc.hpp"\n#include "telemetry/counters.hpp"\n',
    "lib/port/dpdk/ethdev_port.hpp": '#include <rte_ethdev.h>\n#include "port/port.hpp"\n',
    "lib/memory/region.hpp": '#include "base/types.hpp"\n',
    "lib/transport/rc/requester.hpp": '#include "memory/region.hpp"\n#include "wire/icrc/icrc.hpp"\n',
    "lib/congestion/flow.hpp": '#include "base/types.hpp"\n#include <roci/cc.h>\n',
    "lib/engine/worker/worker.hpp": '#include "transport/rc/requester.hpp"\n#include "congestion/flow.hpp"\n',
    "lib/device/api/device.cpp": '#include "roci/device.hpp"\n#include "engine/worker/worker.hpp"\n',
    "cc/static_rate.c": "#include <roci/cc.h>\n#include <math.h>\n",
    "cc/plugin.hpp": "#include <span>\n#include <roci/cc.h>\n",
    "cc/reaction_point.hpp": "#include <cstdint>\n",
    "cc/qcn.cpp": '#include "cc/plugin.hpp"\n#include "cc/reaction_point.hpp"\n',
    "examples/cc-plugin/half.c": "#include <roci/cc.h>\n",
    "examples/common/tcp.h": "#include <stddef.h>\n",
    "examples/kv-store/client.cpp": '#include "../common/tcp.h"\n#include "roci/device.hpp"\n',
    "examples/block-target/target.c": '#include <infiniband/verbs.h>\n#include "../common/tcp.h"\n',
    "switch/switch.hpp": '#include "port/port.hpp"\n',
    "switch/qcn/reaction_point.hpp": '#include "cc/reaction_point.hpp"\n#include "base/types.hpp"\n',
    "apps/roci-perf/main.cpp": '#include "roci/device.hpp"\n#include "switch/switch.hpp"\n#include <CLI/CLI.hpp>\n',
    "tests/wire/icrc/icrc_test.cpp": '#include "wire/icrc/icrc.hpp"\n#include <gtest/gtest.h>\n',
}


class CheckIncludes(unittest.TestCase):
    def complaints(self, changes):
        """Returns the complaints about a correct tree with some files replaced or added."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CORRECT_TREE, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            count, bad = check_includes.check_tree(folder)
            self.assertEqual(count, len({**CORRECT_TREE, **changes}))
            return bad

    def expect_complaint(self, where, why, changes):
        bad = self.complaints(changes)
        self.assertEqual(len(bad), 1, bad)
        self.assertTrue(bad[0].startswith(where + ": "), bad[0])
        self.assertIn(why, bad[0])

    def test_accepts_correct_tree(self):
        self.assertEqual(self.complaints({}), [])

    def test_rejects_include_of_higher_layer(self):
        order = ["base/types.hpp", "wire/icrc/icrc.hpp", "port/port.hpp", "transport/rc/requester.hpp",
                 "engine/worker/worker.hpp"]
        for above in range(1, len(order)):
            for below in range(above):
                name = f"lib/{order[below].split('/')[0]}/wrong.hpp"
                self.expect_complaint(f"{name}:2", "may not include", {name: f'#pragma once\n#include "{order[above]}"\n'})

    def test_rejects_includes_between_transport_and_congestion(self):
        self.expect_complaint("lib/transport/x.cpp:1", "transport may not include congestion",
                              {"lib/transport/x.cpp": '#include "congestion/flow.hpp"\n'})
        self.expect_complaint("lib/congestion/x.cpp:1", "congestion may not include transport",
                              {"lib/congestion/x.cpp": '#include "transport/rc/requester.hpp"\n'})

    def test_rejects_ethernet_device_headers_outside_of_port(self):
        self.expect_complaint("lib/transport/x.cpp:3", "behind lib/port",
                              {"lib/transport/x.cpp": "\n\n#  include <rte_ethdev.h>\n"})
        self.expect_complaint("lib/transport/x.cpp:1", "not as Ethernet devices",
                              {"lib/transport/x.cpp": '#include "port/dpdk/ethdev_port.hpp"\n'})

    def test_rejects_stateful_dpdk_headers_in_wire_and_any_in_base(self):
        self.expect_complaint("lib/wire/x.cpp:2", "<rte_ring.h>",
                              {"lib/wire/x.cpp": "#include <rte_ip.h>\n#include <rte_ring.h>\n"})
        self.expect_complaint("lib/base/x.cpp:1", "free of DPDK", {"lib/base/x.cpp": "#include <rte_mbuf.h>\n"})

    def test_rejects_plugin_include_outside_of_its_abi(self):
        for text in ('"base/types.hpp"', '"cc/static_rate.c"', "<roci/device.hpp>", "<roci/result.hpp>",
                     "<spdlog/spdlog.h>", "<rte_mbuf.h>"):
            for name in ("cc/dcqcn.c", "examples/other/x.c"):
                self.expect_complaint(f"{name}:1", "", {name: f"#include {text}\n"})

    def test_rejects_headers_of_built_in_plugins_in_other_modules(self):
        for name, text in (("examples/other/x.c", "cc/plugin.hpp"), ("switch/x.cpp", "cc/plugin.hpp"),
                           ("lib/congestion/x.cpp", "cc/reaction_point.hpp"), ("lib/base/x.cpp", "cc/reaction_point.hpp")):
            self.expect_complaint(f"{name}:1", "may not include cc", {name: f'#include "{text}"\n'})

    def test_rejects_disallowed_headers_in_example_programs(self):
        for name, text in (("kv-store/x.cpp", '"base/types.hpp"'), ("kv-store/x.cpp", "<rte_mbuf.h>"),
                           ("kv-store/x.cpp", "<spdlog/spdlog.h>"), ("block-target/x.c", '"roci/device.hpp"'),
                           ("block-target/x.c", '"roci/result.hpp"'), ("common/x.c", "<infiniband/verbs.h>"),
                           ("common/x.c", '"roci/result.hpp"')):
            self.expect_complaint(f"examples/{name}:1", "", {f"examples/{name}": f"#include {text}\n"})

    def test_rejects_include_of_transport_in_switch(self):
        self.expect_complaint("switch/x.cpp:1", "switch may not include transport",
                              {"switch/x.cpp": '#include "transport/rc/requester.hpp"\n'})

    def test_rejects_internal_and_logging_includes_in_public_headers(self):
        self.expect_complaint("include/roci/x.hpp:1", "api may not include base",
                              {"include/roci/x.hpp": '#include "base/types.hpp"\n'})
        self.expect_complaint("include/roci/x.hpp:1", "<spdlog/spdlog.h>",
                              {"include/roci/x.hpp": "#include <spdlog/spdlog.h>\n"})

    def test_rejects_include_of_public_api_in_lower_layers(self):
        self.expect_complaint("lib/engine/x.cpp:1", "engine may not use roci/device.hpp",
                              {"lib/engine/x.cpp": '#include "roci/device.hpp"\n'})

    def test_resolves_relative_include_paths(self):
        self.expect_complaint("lib/wire/x.cpp:1", "wire may not include port",
                              {"lib/wire/x.cpp": '#include "../port/port.hpp"\n'})

    def test_reports_missing_quoted_header(self):
        self.expect_complaint("lib/wire/x.cpp:1", "no file", {"lib/wire/x.cpp": '#include "wire/gone.hpp"\n'})

    def test_reports_folder_missing_from_layer_table(self):
        self.expect_complaint("lib/attic/x.hpp:1", "not in the layer table", {"lib/attic/x.hpp": ""})


if __name__ == "__main__":
    unittest.main()
