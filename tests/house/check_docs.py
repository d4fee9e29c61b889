#!/usr/bin/env python3
"""Checks that the documents match the sources: subcommands, presets, folders, links.

Prints one line per mismatch, `file: what`, and exits with 1 if any is found.
"""

import json
import pathlib
import re
import sys
import urllib.parse

from findings import report

LINK = re.compile(r"""\]\(\s*<?([^)\s>]+)>?[^)]*\)|<(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=["']([^"']+)["']""")
SKIPPED_FOLDERS = {"build", ".git", ".cache"}


def without_code(text):
    """Returns the Markdown text without code blocks and code spans, in which nothing is a link."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """Returns the link fragments of the headings of a Markdown text."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", text, flags=re.MULTILINE):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def check_links(root):
    for page in sorted(root.rglob("*.md")):
        where = page.relative_to(root)
        if SKIPPED_FOLDERS & set(where.parts):
            continue
        for match in LINK.finditer(without_code(page.read_text())):
            link = match.group(1) or match.group(2)
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue  # External link.
            path, _, fragment = urllib.parse.unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.is_relative_to(root):
                yield f"{where}: the link {link} leads out of the repository"
            elif not target.exists():
                yield f"{where}: the link {link} leads nowhere"
            elif fragment and target.suffix == ".md" and fragment not in anchors(target.read_text()):
                yield f"{where}: the link {link} names no heading of its page"


def check_subcommands(root):
    script = (root / "roci").read_text()
    readme = (root / "README.md").read_text()
    commands = set(re.findall(r"^cmd_([a-z]+)\(\)", script, flags=re.MULTILINE))
    if not commands:
        yield "roci: no subcommand found"
    for command in sorted(commands):
        if not re.search(rf"\./roci {command}\b", readme):
            yield f"README.md: './roci {command}' is not mentioned"
        if f"\nhelp_{command}() {{" not in script:
            yield f"roci: '{command}' has no --help"
    for command in sorted(set(re.findall(r"\./roci ([a-z]+)", readme)) - commands):
        yield f"README.md: there is no './roci {command}'"


def check_presets(root):
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    real = {preset["name"] for preset in presets if not preset.get("hidden")}
    script = (root / "roci").read_text()
    listed = re.search(r"^readonly PRESETS=\(([^)]*)\)", script, flags=re.MULTILINE)
    if set(listed.group(1).split() if listed else ()) != real:
        yield f"roci: PRESETS are not those of CMakePresets.json: {', '.join(sorted(real))}"


def check_folders(root):
    text = (root / "docs/architecture.md").read_text()
    for folder in sorted((root / "lib").iterdir()):
        if folder.is_dir() and any(folder.rglob("*.*pp")) and f"`lib/{folder.name}/`" not in text:
            yield f"docs/architecture.md: `lib/{folder.name}/` is not described"


def check_program_tests(root):
    for page in sorted((root / "docs").rglob("*.md")):
        for name in sorted(set(re.findall(r"`programs_(\w+)`", page.read_text()))):
            if not (root / f"tests/programs/{name}_test.py").is_file():
                yield f"{page.relative_to(root)}: there is no test programs_{name}"


NEEDED = ("README.md", "docs/architecture.md", "roci", "CMakePresets.json")


def check(root):
    root = pathlib.Path(root).resolve()
    missing = [name for name in NEEDED if not (root / name).is_file()]
    if missing:
        yield from (f"{name}: is missing" for name in missing)
        return
    for part in (check_links, check_subcommands, check_presets, check_folders, check_program_tests):
        yield from part(root)


def main():
    return report(check(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]))


if __name__ == "__main__":
    sys.exit(main())
