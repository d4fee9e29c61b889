#!/usr/bin/env python3
"""Generates a manual page from a troff template. Replaces @VERSION@, and @SYNOPSIS@ and @OPTIONS@ with the contents of the
program's --help. Usage: man_page.py TEMPLATE OUT VERSION [PROGRAM]"""

import itertools
import pathlib
import re
import sys

import help_text


def troff(text):
    """Escapes text for troff, so that it appears unchanged and its hyphens can be copied to a command line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    text = text.replace("'", "\\(aq").replace("…", "...")
    return re.sub(r"(?m)^\.", r"\\&.", text)


def sentence(text):
    text = text[0].upper() + text[1:]
    return troff(text if text.endswith((".", "]", ":")) else text + ".")


def entry(option):
    names = ", ".join(f"\\fB{troff(name)}\\fP" for name in option.names)
    value = f" \\fI{troff(option.value)}\\fP" if option.value else ""
    return f".TP\n{names}{value}\n{sentence(option.text) if option.text else chr(92) + '&'}\n"


def synopsis_of(command):
    usage = re.sub(r"[A-Za-z.]{2,}", lambda word: f"\\fI{word[0]}\\fP", troff(command.usage))
    return f"\\fB{troff(' '.join(command.words))}\\fP {usage}"


def synopsis(root):
    return ".nf\n" + "\n".join(synopsis_of(leaf) for leaf in root.leaves()) + "\n.fi\n"


def paragraph(text):
    """Indented lines are kept verbatim."""
    out = ".PP\n"
    for plain, lines in itertools.groupby(text.split("\n"), lambda line: not line.startswith(" ")):
        block = "\n".join(lines)
        out += (sentence(block) if plain else f".RS\n.nf\n{troff(block)}\n.fi\n.RE") + "\n"
    return out


def is_said_elsewhere(text):
    return text.startswith(("Exit status", "Examples:", " "))


def options(root):
    leaves = root.leaves()
    common = [option for option in leaves[0].options() if all(option in leaf.options() for leaf in leaves)]
    out = ""
    for heading, entries in leaves[0].groups.items():
        shown = [option for option in entries if option in common and "--help" not in option.names]
        if shown and heading != "Options":
            out += f'.SS "{troff(heading)}"\n'
        out += "".join(map(entry, shown))
    out += "".join(entry(option) for option in root.options() if option not in common and "--help" not in option.names)
    out += ".TP\n\\fB\\-h\\fP, \\fB\\-\\-help\\fP\nPrint the options" + (
        "; after a subcommand, those of the subcommand.\n" if root.subcommands else ".\n")
    for leaf in leaves if root.subcommands else []:
        heading = " ".join([*leaf.words, leaf.usage.replace("[OPTIONS]", "").strip()]).strip()
        out += f'.SS "{troff(heading)}"\n'
        out += "".join(paragraph(text) for text in leaf.about + leaf.more if not is_said_elsewhere(text))
        own = [option for option in leaf.options() if option not in common and "--help" not in option.names]
        out += "".join(entry(option) for option in [*named(leaf.positionals), *own])
    return out


def named(positionals):
    """Positionals that have a description."""
    return [help_text.Entry(one.names, "", one.text) for one in positionals if one.text]


def page(template, version, root):
    text = template.replace("@VERSION@", version)
    if root is not None:
        text = text.replace("@SYNOPSIS@\n", synopsis(root)).replace("@OPTIONS@\n", options(root))
    missing = re.findall(r"@[A-Z]+@", text)
    if missing:
        raise SystemExit(f"man_page: {missing[0]}: no replacement is known")
    return text


def main(template, out, version, program=None):
    root = help_text.read(program) if program else None
    pathlib.Path(out).write_text(page(pathlib.Path(template).read_text(), version, root))


if __name__ == "__main__":
    main(*sys.argv[1:])
