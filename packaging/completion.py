#!/usr/bin/env python3
"""Generates the bash completion of a program from its --help: subcommands, options, and values that are files, algorithms or
fixed words. Usage: completion.py OUT PROGRAM"""

import pathlib
import sys

import help_text

# Completions of values: by option or positional, otherwise by the name of the value.
BY_OPTION = {"--cc": "algorithms", "--extensions": "words auto on off", "--recovery": "words go-back-n selective",
             "--mtu": "words 256 512 1024 2048 4096", "--index": "files", "--out": "files", "--base": "files"}
BY_VALUE = {"FILE": "files", "FILE.so": "files", "PATH": "files", "TRACE": "files", "file": "files", "folder": "files"}
BY_POSITIONAL = {("roci-cc", "show"): "algorithms", ("roci-run",): "program"}

SCRIPT = """\
# Bash completion of {name}, generated from its --help.

_{function}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} path='' value='' first=0 i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ -n $value ]]; then
      value=''
      continue
    fi
    case ${{COMP_WORDS[i]}} in
{values}
    -*) ;;
    *)
      case "$path ${{COMP_WORDS[i]}}" in
{paths}
      *) ((first > 0)) || first=$i ;;
      esac
      ;;
    esac
  done

  local options='' words='' kind=''
  case $path in
{commands}
  esac
  if [[ -n $value ]]; then
    kind=''
    case $prev in
{kinds}
    esac
  elif [[ $kind == program && $first -gt 0 ]]; then
    if declare -F _command_offset >/dev/null; then
      _command_offset "$first"
      return
    fi
    kind=files
  elif [[ $cur == -* ]]; then
    kind="words $options"
  elif [[ -n $words ]]; then
    kind="words $words"
  fi

  case $kind in
  files)
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    ;;
  program) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
  algorithms)
    mapfile -t COMPREPLY < <(compgen -W "none $(roci-cc list 2>/dev/null | sed -n 's/^\\([a-z][a-z0-9_]*\\) .*/\\1/p')" -- "$cur")
    ;;
  words\\ *) mapfile -t COMPREPLY < <(compgen -W "${{kind#words }}" -- "$cur") ;;
  esac
}}
complete -F _{function} {name}
"""


def kind_of(option):
    for name in option.names:
        if name in BY_OPTION:
            return BY_OPTION[name]
    return BY_VALUE.get(option.value, "")


def positional_kind(command):
    chosen = BY_POSITIONAL.get(tuple(command.words))
    if chosen or not command.positionals:
        return chosen or ""
    one = command.positionals[0]
    return BY_VALUE.get(one.names[0], "")


def script(root):
    commands, paths, with_value, kinds = [], [], [], {}
    for command in root.every():
        below = " ".join(command.words[1:])
        path = f" {below}" if below else ""
        if path:
            paths.append(f'      "{path}") path="{path}" ;;')
        options = " ".join(name for option in command.options() for name in option.names)
        words = " ".join(one.words[-1] for one in command.subcommands)
        commands.append(f"  '{path}') options='{options}' words='{words}' kind='{positional_kind(command)}' ;;")
        for option in command.options():
            if option.value:
                with_value += [name for name in option.names if name not in with_value]
                kinds.update({name: kind_of(option) for name in option.names if kind_of(option)})
    values = f"    {' | '.join(with_value)}) value=1 ;;" if with_value else "    --) ;;"
    if not root.subcommands:
        paths = ["      ' ') ;;"]
    return SCRIPT.format(
        name=root.words[0], function=root.words[0].replace("-", "_"), values=values, paths="\n".join(paths),
        commands="\n".join(commands), kinds="\n".join(f"    {name}) kind='{kind}' ;;" for name, kind in kinds.items()) or "    *) ;;")


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(script(help_text.read(sys.argv[2])))
