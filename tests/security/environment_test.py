"""Checks that the product reads environment variables with secure_getenv(3) only, which ignores them in a program with
elevated privileges."""

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CALL = re.compile(r"(?<!secure_)\bgetenv\s*\(|\benviron\b\s*\[")


class Environment(unittest.TestCase):
    def test_product_calls_no_getenv(self):
        files = [file for folder in ("lib", "apps", "switch", "cc", "include") for file in (SOURCE / folder).rglob("*")
                 if file.suffix in (".c", ".h", ".cpp", ".hpp")]
        self.assertGreater(len(files), 200)
        found = [f"{file.relative_to(SOURCE)}: {match[0]}" for file in files for match in CALL.finditer(file.read_text())]
        self.assertEqual(found, [])

    def test_pattern_finds_calls(self):
        self.assertTrue(CALL.search('value = std::getenv("X");'))
        self.assertFalse(CALL.search('value = secure_getenv("X");'))


if __name__ == "__main__":
    unittest.main()
