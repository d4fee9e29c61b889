"""Checks of the hardening of ELF programs and libraries, by readelf."""
import re
import subprocess


def read(option, file):
    return subprocess.run(["readelf", "-W", option, str(file)], capture_output=True, text=True, check=True).stdout


def is_elf(file):
    if not file.is_file() or file.is_symlink():
        return False
    with open(file, "rb") as start:
        return start.read(4) == b"\x7fELF"


def problems(file):
    """Returns what the file lacks, as sentences."""
    header, segments, dynamic, symbols = (read(option, file) for option in ("-h", "-l", "-d", "--dyn-syms"))
    found = []
    if not re.search(r"Type:\s+DYN", header):
        found.append("is not position-independent")
    if "GNU_RELRO" not in segments:
        found.append("has no read-only relocations")
    if not re.search(r"\((?:FLAGS_1\).*\bNOW\b|FLAGS\).*\bBIND_NOW\b)", dynamic):
        found.append("binds symbols lazily")
    stack = re.search(r"GNU_STACK\s.*\s([R ][W ][E ])\s", segments)
    if not stack or "E" in stack[1]:
        found.append("has an executable stack")
    if re.search(r"^\s*LOAD\s.*\s(RWE)\s", segments, re.MULTILINE):
        found.append("has a segment that is writable and executable")
    if "(TEXTREL)" in dynamic:
        found.append("has relocations in its code")
    for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        found += [f"searches libraries in '{folder}'" for folder in path.split(":")
                  if not folder.startswith(("/", "$ORIGIN"))]
    if "__stack_chk_fail" not in symbols:
        found.append("has no stack protector")
    return found


def is_fortified(file):
    return re.search(r"\b__\w+_chk\b(?!_fail)", read("--dyn-syms", file)) is not None
