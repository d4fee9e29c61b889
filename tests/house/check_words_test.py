#!/usr/bin/env python3
"""Tests that check_words.py can fail: each test makes a small, correct tree and plants a word or an identifier."""

import pathlib
import tempfile
import unittest

import check_words

WORDS = """# comment
stranger | unknown peer | both
turn the wheel | run the poll loop | prose
begin | start | prose
room | space | both
allow | docs/style.md | who is a stranger here | example of a word to avoid
allow | lib | data room | term of DPDK
"""
CORRECT = {
    check_words.WORDS: WORDS,
    "README.md": "# Title\nThe `stranger` key, [a link](docs/stranger.md) and last_stranger are names.\n```\nstranger\n```\n",
    "docs/style.md": "Avoid: who is a stranger here.\n",
    "docs/glossary.md": "| Term | Definition |\n|---|---|\n| slot | the resources of a process |\n",
    "lib/a.cpp": "// Comment on iterators, v.begin() and stranger_count. The data room of an mbuf.\n"
                 "bool is_unknown(int data_room) { return f(\"stranger\", data_room); }\n",
    "tests/x/a_test.cpp": "// A stranger: C++ of tests is not checked.\n",
    "config/a.yaml": "stranger: 1  # comment\n",
    "bench/a.py": '"""Docstring."""\nstranger = "stranger"\n',
}


class CheckWords(unittest.TestCase):
    def findings(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CORRECT, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return list(check_words.check(folder))

    def changed(self, name, addition):
        return self.findings({name: CORRECT.get(name, "") + addition})

    def test_accepts_correct_tree(self):
        self.assertEqual(self.findings({}), [])

    def test_reports_word_with_line_and_replacement(self):
        self.assertEqual(self.changed("README.md", "A Stranger sends.\n"), ['README.md:6: "stranger": unknown peer'])

    def test_checks_all_kinds_of_text(self):
        for name, text in (
                ("docs/sub/page.md", "a stranger\n"),
                (".github/PULL_REQUEST_TEMPLATE.md", "a stranger\n"),
                ("packaging/man/roci.1.in", ".TH X\nA stranger sends.\n"),
                ("lib/b.hpp", "// of a stranger\n"),
                ("include/roci/b.h", "/* of a\n * stranger */\n"),
                ("apps/p/b.cpp", 'auto text = "of a stranger";\n'),
                ("examples/e/b.c", 'const char* text = "of a stranger";\n'),
                ("config/b.yaml", "key: 1  # of a stranger\n"),
                ("config/wireshark/b.lua", 'local a = 1 -- of a stranger\n'),
                ("config/wireshark/b.lua", 'local text = "of a stranger"\n'),
                ("cmake/b.cmake", "# of a stranger\n"),
                ("roci", 'note "of a stranger"\n'),
                ("roci", "cat <<'END'\nstranger\nEND\n"),
                ("bench/b.py", "# of a stranger\n"),
                ("bench/b.py", 'print("of a stranger")\n'),
                ("tests/x/b.py", 'def f():\n    """Of a stranger."""\n'),
                ("tests/x/b.py", 'options.add_argument("-x", help="of a stranger")\n')):
            self.assertEqual(len(self.findings({name: text})), 1, (name, text))

    def test_reports_phrase_across_lines(self):
        self.assertEqual(self.changed("lib/a.cpp", "// Then turn\n// the wheel.\n"),
                         ['lib/a.cpp:3: "turn the wheel": run the poll loop'])
        self.assertEqual(len(self.findings({"lib/b.cpp": 'auto text = "turn the "\n    "wheel";\n'})), 1)

    def test_ignores_part_of_longer_word(self):
        self.assertEqual(self.changed("README.md", "Headroom, beginning, strangers-only.\n"), [])

    def test_limits_exception_to_its_file_and_phrase(self):
        self.assertEqual(len(self.changed("README.md", "who is a stranger here\n")), 1)
        self.assertEqual(len(self.changed("docs/style.md", " ".join(["word"] * 40) + " a stranger\n")), 1)

    def test_reports_unused_exception(self):
        self.assertEqual(self.findings({"docs/style.md": "Nothing.\n"}), [
            f"{check_words.WORDS}:6: the exception 'who is a stranger here' no longer occurs in docs/style.md; remove it"])

    def test_reports_identifier_with_listed_word_once(self):
        for identifier in ("stranger_count", "kStranger", "StrangerTable", "find_stranger_"):
            self.assertEqual(self.changed("lib/a.cpp", f"int {identifier};\nint* p = &{identifier};\n"),
                             [f'lib/a.cpp:3: identifier {identifier}: "stranger": unknown peer'], identifier)

    def test_allows_prose_words_in_identifiers(self):
        self.assertEqual(self.changed("lib/a.cpp", "int begin, begin_at;\n"), [])

    def test_rejects_glossary_term_in_word_list(self):
        self.assertEqual(self.findings({check_words.WORDS: WORDS + "slot | place | identifier\n"}), [
            f"{check_words.WORDS}: docs/glossary.md defines 'slot'; a defined term cannot be listed"])

    def test_rejects_invalid_line_of_word_list(self):
        for line in ("stranger2 | unknown peer", "a | b | everywhere", "stranger | again | both", "allow | lib | phrase"):
            with self.assertRaises(ValueError, msg=line):
                self.findings({check_words.WORDS: WORDS + line + "\n"})


if __name__ == "__main__":
    unittest.main()
