"""Description of the measuring machine."""

import os
import pathlib
import platform
import re
import subprocess

from harness.run import ROOT


def first_match(path, pattern, default):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        return default
    return found.group(1).strip() if found else default


def revision():
    """Returns the commit, with "+" appended if the tree differs from it; empty outside a checkout."""
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode != 0:
        return ""
    clean = subprocess.run([*git, "diff", "--quiet", "HEAD"], capture_output=True, check=False).returncode == 0
    return head.stdout.strip() + ("" if clean else "+")


def hugepages():
    return int(first_match("/proc/meminfo", r"^HugePages_Total: +(\d+)", "0"))


def describe():
    return {
        "cpu": first_match("/proc/cpuinfo", r"^model name\s*: (.*)$", "unknown CPU"),
        "cpus": len(os.sched_getaffinity(0)),
        "mhz": float(first_match("/proc/cpuinfo", r"^cpu MHz\s*: (.*)$", "0")),
        "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', "unknown system"),
        "kernel": platform.release(),
        "hugepages": hugepages(),
        "revision": revision(),
    }


def load():
    return tuple(round(value, 2) for value in os.getloadavg())


def sentence(machine):
    return (f"{machine['cpu']}, {machine['cpus']} CPUs at {machine['mhz']:.0f} MHz, {machine['system']}, Linux "
            f"{machine['kernel']}, {machine['hugepages'] or 'no'} hugepages, revision {machine['revision'] or 'unknown'}")
