#!/usr/bin/env python3
"""Checks that every #include follows the layers of docs/architecture.md ("Layers").

Prints one line per bad include, `file:line: why`, and exits with 1 if any is found.
"""

import pathlib
import re
import sys
from fnmatch import fnmatch

# The modules that each module may include in addition to itself. A module is a folder of lib/ or a top-level folder.
BOTTOM = ["base", "wire", "telemetry"]
MIDDLE = BOTTOM + ["port", "memory"]
PROTOCOL = MIDDLE + ["transport", "congestion"]
DEVICE = PROTOCOL + ["engine", "device", "api"]
ALL = DEVICE + ["net", "verbs", "cm", "rdmacm", "lab", "switch", "cc", "apps"]
PLUGIN_MODULES = ("cc", "examples")
# Headers that one module outside the table may include: the shapers of the switch are QCN reaction points too.
SINGLE_HEADERS = {"cc/reaction_point.hpp": {"switch"}}
# Examples that are programs may include only the C++ API and the verbs headers.
PROGRAM_EXAMPLES = {"kv-store": "kv-store", "block-target": "block-target", "common": "examples-common"}
OUTSIDE_MODULES = (*PLUGIN_MODULES, *PROGRAM_EXAMPLES.values())
MAY_INCLUDE = {
    "api": [],
    "base": [],
    "wire": ["base"],
    "telemetry": ["base", "wire"],
    "port": BOTTOM,
    "memory": BOTTOM,
    "transport": MIDDLE,
    "congestion": MIDDLE,
    "engine": PROTOCOL,
    "device": PROTOCOL + ["engine", "api"],
    "net": DEVICE,
    "paths": [],
    "cm": DEVICE,
    "verbs": DEVICE + ["net", "cm"],
    "rdmacm": ["base", "wire", "cm"],
    "lab": DEVICE + ["switch"],
    "cc": [],
    "examples": [],
    "examples-common": [],
    "kv-store": ["api", "examples-common"],
    "block-target": ["examples-common"],
    "switch": BOTTOM + ["port"],
    "apps": [module for module in ALL if module != "cc"],
    "tests": ALL + ["kv-store", "block-target"],
    "bench": ALL + ["tests"],  # Benchmarks use the test support for setups common to both.
}

# Public headers outside the device API, with the modules that may include them, and the plugin ABI.
API_FOR_MODULE = {
    "roci/version.h": set(MAY_INCLUDE),
    "roci/result.hpp": set(MAY_INCLUDE) - set(OUTSIDE_MODULES),
    "roci/poller.hpp": {"base", "port", "congestion", "engine", "switch"},
    "roci/port.hpp": {"port"},
    "roci/extension_config.hpp": {"engine"},
    "roci/telemetry_config.hpp": {"transport", "engine"},
    "roci/flow_control_config.hpp": {"engine"},
    "roci/congestion_config.hpp": {"engine"},
    "roci/congestion_control_config.hpp": {"congestion", "engine"},
    "roci/congestion_report.hpp": {"engine"},
    "roci/progress.hpp": {"port", "engine"},
    "roci/events.hpp": {"transport", "engine"},
    "roci/flush.hpp": {"memory"},
    "roci/cc.h": {"congestion", "engine", "device", "cc", "examples"},
}

# External headers, by pattern: the first matching rule applies. A header that matches no rule may be included by any
# module. The second element lists the modules that may include the header.
EXTERNAL = [
    # The other modules use lib/port, not the ethdev API of DPDK.
    (["rte_ethdev*", "rte_eth_*", "rte_dev.h", "rte_bus*", "rte_pci*", "rte_vdev*"], ["port", "tests", "bench"],
     "ethernet devices of DPDK belong behind lib/port"),
    (["rte_mbuf.h", "rte_ip.h", "rte_ether.h", "rte_byteorder.h", "rte_prefetch.h", "rte_branch_prediction.h"],
     [module for module in MAY_INCLUDE if module not in ("api", "base", *OUTSIDE_MODULES)],
     "this module is free of DPDK"),
    (["rte_*"], [module for module in MAY_INCLUDE if module not in ("api", "base", "wire", *OUTSIDE_MODULES)],
     "of DPDK, wire may include only rte_mbuf.h, rte_ip.h and stateless helpers; api, base, cc and examples nothing"),
    (["infiniband/*", "rdma/*"],
     [module for module in MAY_INCLUDE
      if module not in ("base", "wire", "port", "switch", "examples-common", *PLUGIN_MODULES)],
     "verbs types may be used only in layers above port"),
    (["gtest/*", "gmock/*"], ["tests"], "test libraries belong in tests/"),
    (["benchmark/*", "ns3/*"], ["bench"], "Google Benchmark and ns-3 belong in bench/"),
    (["CLI/*"], ["apps", "tests", "bench"], "command lines belong in apps/"),
    (["yaml-cpp/*"],
     [module for module in MAY_INCLUDE if module not in ("api", "wire", "transport", "congestion", *OUTSIDE_MODULES)],
     "configuration files are not read in this module"),
    (["spdlog/*", "tl/*", "nlohmann/*", "oneapi/*", "tbb/*", "isa-l/*", "isa-l.h"],
     [module for module in MAY_INCLUDE if module not in OUTSIDE_MODULES],
     "a plugin may include only roci/cc.h and standard headers; other examples only public headers"),
]
API_EXTRA = re.compile(r"^(spdlog|nlohmann|oneapi|tbb|isa-l|rdma)\b")

TOP_MODULES = ("cc", "examples", "switch", "apps", "tests", "bench")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def module_of(path):
    """Returns the module of a path relative to the root, or None if it belongs to none."""
    parts = path.parts
    if len(parts) > 2 and parts[0] == "lib":
        return parts[1]
    if parts[:2] == ("include", "roci"):
        return "api"
    if len(parts) > 2 and parts[0] == "examples" and parts[1] in PROGRAM_EXAMPLES:
        return PROGRAM_EXAMPLES[parts[1]]
    return parts[0] if parts[0] in TOP_MODULES else None


def resolve(root, source, text):
    """Returns the project file that an #include refers to, relative to the root, or None."""
    for base in (source.parent, root / "include", root / "lib", root, root / "apps", root / "tests",
                 root / "bench"):
        target = (base / text).resolve()
        if target.is_file() and target.is_relative_to(root):
            return target.relative_to(root)
    return None


def why_not_project(module, target):
    """Returns the reason why `module` may not include the project file `target`, or None if it may."""
    to = module_of(target)
    if module in SINGLE_HEADERS.get(str(target), ()):
        return None
    if to == module:
        if module == "cc" and target.suffix == ".hpp":
            return None  # headers that the built-in plugins share
        return "a plugin may include only roci/cc.h" if module in PLUGIN_MODULES else None
    if to == "api":
        allowed = API_FOR_MODULE.get(str(target.relative_to("include")))
        if (allowed and module in allowed) or "api" in MAY_INCLUDE[module]:
            return None
        return f"{module} may not use {target.relative_to('include')}"
    if to is None or to not in MAY_INCLUDE[module]:
        nothing = "only roci/cc.h" if module in PLUGIN_MODULES else "no project header outside roci/"
        modules = ", ".join(MAY_INCLUDE[module]) or nothing
        return f"{module} may not include {to or target}; it may include {modules}"
    may_open_ports = module in ("apps", "tests", "bench", "device", "lab", "net")
    if to == "port" and target.name.startswith("ethdev") and not may_open_ports:
        return f"{module} may use ports as port/port.hpp, not as Ethernet devices"
    return None


def why_not_external(module, header):
    """Returns the reason why `module` may not include the external `header`, or None if it may."""
    for patterns, only, why in EXTERNAL:
        if any(fnmatch(header, pattern) for pattern in patterns):
            return None if module in only else f"{module} may not include <{header}>: {why}"
    return None


def check_file(root, source):
    module = module_of(source.relative_to(root))
    where = source.relative_to(root)
    if module not in MAY_INCLUDE:
        yield f"{where}:1: the module '{module}' is not in the layer table of tests/house/check_includes.py"
        return
    for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        quoted, angled = found.groups()
        text = quoted or angled
        target = resolve(root, source, text)
        if target is not None:
            why = why_not_project(module, target)
        elif quoted:
            why = f'no file "{text}" in the project; external headers are included with <>'
        elif module == "api" and API_EXTRA.match(text):
            why = f"a public header may not make its users include <{text}>"
        else:
            why = why_not_external(module, text)
        if why:
            yield f"{where}:{number}: {why}"


def check_tree(root):
    root = pathlib.Path(root).resolve()
    bad = []
    count = 0
    for top in ("include/roci", "lib", *TOP_MODULES):
        for source in sorted((root / top).rglob("*")):
            if source.suffix in (".hpp", ".cpp", ".h", ".c"):
                count += 1
                bad.extend(check_file(root, source))
    return count, bad


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    count, bad = check_tree(root)
    for line in bad:
        print(line)
    print(f"{count} files, {len(bad)} bad includes")
    return 1 if bad or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
