"""Tests that all files are installed, that manual pages render without warnings, and that completion matches --help."""
import os
import re
import shutil
import subprocess
import unittest

import installed
from installed import Installed, run

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]


def options_of(text):
    """Returns the option names at the line starts of a --help text."""
    return {name for names in re.findall(r"(?m)^  (-\S+)", text) for name in names.split(",")}


class Files(Installed):
    def names(self, folder):
        return sorted(path.name for path in (self.prefix / folder).iterdir())

    def help_of(self, *words):
        return self.pipe(self.prefix / "bin" / words[0], *words[1:], "--help")

    def commands(self, *words):
        """Returns a command and its subcommands, as --help lists them: ("roci-perf",), ("roci-perf", "write") …"""
        below = re.search(r"(?ms)^Subcommands:\n(.*)", self.help_of(*words))
        found = [words]
        for word in re.findall(r"(?m)^  (\w+) ", below[1].split("\n\n\n")[0] if below else ""):
            found += self.commands(*words, word)
        return found

    def test_installs_programs_headers_and_libraries(self):
        self.assertEqual(self.names("bin"), ["roci-cc", "roci-lab", "roci-pcap", "roci-perf", "roci-run", "roci-switch",
                                             "roci-top"])
        headers = sorted(path.name for path in (installed.SOURCE / "include/roci").iterdir())
        self.assertEqual(self.names("include/roci"), headers)
        libraries = {path.name for path in self.prefix.glob("lib*/**/rocinante/*.so*")}
        self.assertEqual(libraries, {"libibverbs.so", "libibverbs.so.1", "librdmacm.so", "librdmacm.so.1", "libroci-paths.so"})

    def test_installs_examples_and_documents(self):
        there = sorted(str(path.relative_to(installed.SOURCE)) for path in (installed.SOURCE / "config").rglob("*"))
        share = self.prefix / "share/rocinante"
        self.assertEqual(sorted(str(path.relative_to(share)) for path in (share / "config").rglob("*")), there)
        self.assertEqual(self.names("share/doc/rocinante"), ["LICENSE", "README.md", "copyright"])
        self.pipe(self.prefix / "bin/roci-switch", "--check", "--config", share / "config/switch-memif.yaml")

    def run_paths(self, file):
        """Returns the folders of the file's RPATH and RUNPATH; none if it is not a program or library."""
        text = run("readelf", "-dW", file).stdout
        return [folder for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text) for folder in path.split(":")]

    def test_libraries_are_not_searched_in_current_folder(self):
        build = [installed.BUILD / "bin" / name for name in installed.PROGRAMS] + list((installed.BUILD / "lib").rglob("*.so*"))
        files = [*build, *(self.prefix / "bin").iterdir(), *self.prefix.glob("lib*/**/*.so*")]
        self.assertGreaterEqual(len(files), 2 * (len(installed.PROGRAMS) + 4))
        self.assertIn("$ORIGIN", self.run_paths(installed.BUILD / "lib/rocinante/librdmacm.so.1"))
        wrong = {str(file): self.run_paths(file) for file in files
                 if any(not folder.startswith(("/", "$ORIGIN")) for folder in self.run_paths(file))}
        self.assertEqual(wrong, {})

    def test_installed_programs_run(self):
        listed = self.pipe(self.prefix / "bin/roci-lab", "list", self.prefix / "share/rocinante/config/lab")
        self.assertIn("incast", listed)
        self.pipe(self.prefix / "bin/roci-perf", "write", "bw", "--loopback", "--direct", "-n", "50", "-s", "4096")

    def test_manual_pages_refer_to_installed_pages(self):
        pages = {path.name for folder in ("man1", "man7") for path in (self.prefix / "share/man" / folder).iterdir()}
        self.assertEqual(pages, {f"{program}.1" for program in installed.PROGRAMS} | {"rocinante.7"})
        for page in sorted(pages):
            text = (self.prefix / f"share/man/man{page[-1]}" / page).read_text()
            named = {f"{name}.{section}" for name, section in re.findall(r"(?m)^\.BR (ro\S+) \((\d)\)", text.replace("\\-", "-"))}
            self.assertTrue(named, page)
            self.assertEqual(named - pages, set(), page)

    def require(self, program):
        """Skips the test if the program is missing, or fails it with ROCI_REQUIRE_ALL, as in CI."""
        if shutil.which(program) is not None:
            return
        if os.environ.get("ROCI_REQUIRE_ALL"):
            self.fail(f"requires {program}, and ROCI_REQUIRE_ALL is set")
        self.skipTest(f"requires {program}")

    def test_manual_pages_render_without_warnings_and_list_every_option(self):
        self.require("man")
        environment = installed.clean_environment(MANWIDTH="300", MANPAGER="cat")
        for path in sorted((self.prefix / "share/man").rglob("*.[17]")):
            with self.subTest(path.name):
                shown = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, timeout=60,
                                       check=True, env=environment)
                self.assertEqual(shown.stderr, "")
                headings = [line for line in shown.stdout.splitlines() if re.fullmatch(r"[A-Z][A-Z ]+", line)]
                if path.suffix == ".7":
                    self.assertEqual(headings, ["NAME", "DESCRIPTION", "FILES", "ENVIRONMENT", "SEE ALSO"])
                    continue
                self.assertEqual([heading for heading in headings if heading != "ENVIRONMENT"], SECTIONS)
                in_page = set(re.findall(r"(?<![\w-])--?[\w-]+", shown.stdout.split("\nFILES\n")[0]))
                for words in self.commands(path.stem):
                    self.assertEqual(options_of(self.help_of(*words)) - in_page, set(), words)
                    if "Subcommands:" not in self.help_of(*words):
                        self.assertRegex(shown.stdout, rf"(?m)^ +{' '.join(words)} \[OPTIONS\]")

    def completed(self, *words):
        """Returns the completions that bash offers for the last word."""
        program = words[0]
        script = ('. "$1"; shift; function=$(complete -p "$1" | sed "s/.*-F \\([^ ]*\\).*/\\1/"); COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); "$function" "$1"; [[ ${#COMPREPLY[@]} -eq 0 ]] || printf "%s\\n" "${COMPREPLY[@]}"')
        path = f"{self.prefix / 'bin'}:{os.environ['PATH']}"
        file = self.prefix / "share/bash-completion/completions" / program
        said = self.pipe("bash", "--norc", "-uc", script, "bash", file, *words, cwd=self.prefix,
                         env=installed.clean_environment(PATH=path))
        return said.split("\n")[:-1]

    def test_completion_offers_every_option_of_help(self):
        self.assertEqual(self.names("share/bash-completion/completions"), sorted(installed.PROGRAMS))
        for program in installed.PROGRAMS:
            for words in self.commands(program):
                with self.subTest(" ".join(words)):
                    wanted = options_of(self.help_of(*words))
                    self.assertGreaterEqual(wanted, {"-h", "--help"})
                    self.assertEqual(set(self.completed(*words, "-")), wanted)

    def test_completion_offers_subcommands(self):
        self.assertEqual(self.completed("roci-perf", ""), ["write", "read", "send"])
        self.assertEqual(self.completed("roci-perf", "write", "l"), ["lat"])
        self.assertEqual(set(self.completed("roci-cc", "")), {"list", "show", "check", "replay", "csv"})

    def test_completion_offers_algorithms(self):
        listed = self.pipe(self.prefix / "bin/roci-cc", "list")
        algorithms = set(re.findall(r"(?m)^([a-z]\w*) ", listed))
        self.assertGreaterEqual(algorithms, {"dcqcn", "hpcc"})
        self.assertEqual(set(self.completed("roci-perf", "write", "bw", "-s", "64", "--cc", "")), algorithms | {"none"})
        self.assertEqual(self.completed("roci-cc", "show", "dcq"), ["dcqcn"])

    def test_completion_offers_files_words_or_nothing_for_other_values(self):
        self.assertEqual(self.completed("roci-perf", "read", "lat", "--config", "sh"), ["share"])
        self.assertEqual(self.completed("roci-switch", "--config", "share/ma"), ["share/man"])
        self.assertEqual(self.completed("roci-lab", "run", "inc"), ["include"])
        self.assertEqual(self.completed("roci-perf", "write", "bw", "--recovery", "s"), ["selective"])
        self.assertEqual(self.completed("roci-perf", "write", "bw", "--iters", ""), [])

    def test_completion_passes_shellcheck(self):
        self.require("shellcheck")
        for path in (self.prefix / "share/bash-completion/completions").iterdir():
            self.assertEqual(run("shellcheck", "--shell=bash", path).stdout, "", path.name)
