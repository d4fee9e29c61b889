#!/usr/bin/env python3
"""Checks that texts and identifiers contain none of the words in words.txt, and prints the replacement of each.

Texts are Markdown pages, manual pages, comments and string literals of C, C++ and Lua, comments and docstrings of Python,
comments of configuration, build and shell files. Names in them (paths, code spans, words with `_`) are not checked.
Identifiers are those of C and C++, split at underscores and capitals.

Prints one line per finding, `file:line: "word": replacement`, and exits with 1 if any is found.
"""

import ast
import bisect
import functools
import io
import pathlib
import re
import subprocess
import sys
import tokenize

from findings import report

HERE = pathlib.Path(__file__).parent
WORDS = "tests/house/words.txt"
GLOSSARY = "docs/glossary.md"
SCOPES = ("prose", "identifier", "both")

# Folders whose C and C++ files are checked. Tests are not: many of their names are the data of other checks.
CODE_FOLDERS = ("include", "lib", "apps", "switch", "cc", "bench", "examples")
# Folders whose Python strings are checked. In tests, strings are often expected output.
MESSAGE_FOLDERS = (".ci", "bench", "packaging")
# Files that contain the listed words as data.
SKIPPED = ("tests/house/words", "tests/house/check_words")

# Names in texts: code spans, text in braces (placeholders, flow mappings), link targets, paths, options, identifiers
# with `_`, `::` or `()`, file names.
NAMES = re.compile(r"`[^`\n]*`|\{[^{}\n]*\}|\]\([^)\s]*\)|https?://\S+|<[^<>\s]+@[^<>\s]+>|"
                   r"[\w.*{}$~-]*/[\w.{}$-][\w./*{}$-]*|(?<!\w)--?[a-zA-Z][\w-]*|\w*_\w*|\w+::[\w:]+|\w+\(\)|"
                   r"\w+\.(?:hpp|cpp|h|c|py|md|yaml|txt|lua|sh|so|json|html|svg|csv)\b")
CODE = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R"(?P<tag>\w*)\(.*?\)(?P=tag)")|"""
                  r"""(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'|(?P<include>^[ \t]*\#[ \t]*include[^\n]*)|"""
                  r"""(?P<word>\b[A-Za-z_]\w*)|\b\d[\w'.]*""", re.DOTALL | re.MULTILINE)
LUA = re.compile(r"""(?P<comment>--[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""")
# Here documents, and double-quoted strings with more than one word.
SHELL_TEXT = re.compile(r"<<'?END'?$.*?^END$|\"[^\"\n]*[A-Za-z,;] [^\"\n]*\"", re.MULTILINE | re.DOTALL)
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Lines:
    """Line numbers of the offsets in a text."""

    def __init__(self, content):
        self.starts = [match.end() for match in re.finditer("\n", content)]

    def of(self, offset):
        return bisect.bisect_right(self.starts, offset) + 1


def blank(match):
    return re.sub(r"[^\n]", "\0", match.group())


def prose(parts, content):
    """Returns `content` with everything blanked except the parts, which are (start, end) pairs and may overlap."""
    out, at = [], 0
    for start, end in sorted(parts):
        if end > at:
            out.append(re.sub(r"[^\n]", " ", content[at:max(at, start)]))
            out.append(content[max(at, start):end])
            at = end
    return "".join(out)


def is_sentence(literal):
    """A literal without a space is a key, a name or a format."""
    return re.search(r"[A-Za-z] +[A-Za-z]", literal) is not None


def sentences(literals, content):
    """Returns the literals that are sentences, or parts of one that consists of consecutive literals."""
    groups = []
    for start, end in literals:
        if groups and not content[groups[-1][-1][1]:start].strip():
            groups[-1].append((start, end))
        else:
            groups.append([(start, end)])
    return [part for group in groups if any(is_sentence(content[slice(*part)]) for part in group) for part in group]


def code_parts(content, pattern):
    comments, literals, words = [], [], []
    for match in pattern.finditer(content):
        kind = match.lastgroup if match.lastgroup != "tag" else "raw"
        if kind == "comment":
            comments.append(match.span())
        elif kind in ("string", "raw"):
            literals.append(match.span())
        elif kind == "word":
            words.append((match.group(), match.start()))
    return comments, sentences(literals, content), words


def python_parts(content, messages):
    lines = [0] + [match.end() for match in re.finditer("\n", content)]
    encoded = content.splitlines(keepends=True)

    def at(line, column):
        return lines[line - 1] + len(encoded[line - 1].encode()[:column].decode()) if line <= len(encoded) else len(content)

    def span(node):
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    def is_string(node):
        return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))

    parts = []
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            parts.append((lines[token.start[0] - 1] + token.start[1], lines[token.end[0] - 1] + token.end[1]))
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Expr) and is_string(node.value):
            parts.append(span(node.value))
        elif isinstance(node, ast.keyword) and node.arg in ("help", "description", "epilog", "usage"):
            parts += [span(part) for part in ast.walk(node.value) if is_string(part)]
        elif messages and is_string(node) and is_sentence(content[slice(*span(node))]):
            parts.append(span(node))
    return parts


def markdown(content):
    content = re.sub(r"^(```|~~~).*?^\1", blank, content, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--|-->", blank, content)


def manual(content):
    content = content.replace("\\-", "-\0").replace("\\", "\0")
    content = re.sub(r"\n\.B[^\n]*", blank, content)
    return re.sub(r"^\.[A-Z]+", blank, content, flags=re.MULTILINE)


def hash_comments(content):
    return prose([match.span() for match in re.finditer(r"(?:^|(?<=\s))#[^\n]*", content)], content)


def texts(name, content):
    """Returns the texts of a file, and its identifiers as (identifier, offset)."""
    path = pathlib.PurePath(name)
    if path.suffix == ".md":
        return [markdown(content)], []
    if name.startswith("packaging/man/"):
        return [manual(content)], []
    if path.suffix in (".hpp", ".cpp", ".h", ".c"):
        comments, literals, words = code_parts(content, CODE)
        return [prose(comments, content), prose(literals, content)], words
    if path.suffix == ".lua":
        comments, literals, _ = code_parts(content, LUA)
        return [prose(comments, content), prose(literals, content)], []
    if path.suffix == ".py":
        return [prose(python_parts(content, path.parts[0] in MESSAGE_FOLDERS), content)], []
    if name == "roci":
        return [hash_comments(content), prose([match.span() for match in SHELL_TEXT.finditer(content)], content)], []
    return [hash_comments(content)], []


def is_checked(name):
    if name.startswith(SKIPPED):
        return False
    path = pathlib.PurePath(name)
    if path.suffix in (".hpp", ".cpp", ".h", ".c"):
        return path.parts[0] in CODE_FOLDERS
    return (path.suffix in (".md", ".py", ".lua", ".yaml", ".cmake", ".sh", ".in") or path.name in ("CMakeLists.txt", "roci", "run")
            or name.startswith("packaging/man/"))


def plain(text):
    """Returns the text in lower case, without quotes and the characters that start comments."""
    return re.sub(r"(?:[\s*#\"]|//)+", " ", text.lower()).strip()


class Words:
    """Table of words.txt."""

    def __init__(self, text):
        self.replacement, self.prose, self.identifier = {}, [], set()
        self.allowed = []  # exceptions: (line, folder or file, phrase)
        self.used = set()  # lines of the exceptions that occur
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split("|")]
            if fields[0] == "allow":
                if len(fields) != 4 or not all(fields):
                    raise ValueError(f"{WORDS}:{number}: an exception is: allow | file or folder | phrase | reason")
                self.allowed.append((number, fields[1], plain(fields[2])))
                continue
            if len(fields) != 3 or not all(fields) or fields[2] not in SCOPES:
                raise ValueError(f"{WORDS}:{number}: a line is: term | replacement | {', '.join(SCOPES)}")
            term, replacement, scope = fields[0].lower(), fields[1], fields[2]
            if term in self.replacement:
                raise ValueError(f"{WORDS}:{number}: '{term}' is there twice")
            self.replacement[term] = replacement
            if scope != "identifier":
                self.prose.append(term)
            if scope != "prose":
                self.identifier.add(tuple(term.split()))
        # Between the words of a phrase may be line ends with the start of a comment or literal.
        gap = r"(?:[\s*#\"]|//)+"
        terms = sorted(self.prose, key=len, reverse=True)
        self.pattern = re.compile(r"(?<![\w-])(?:" + "|".join(gap.join(map(re.escape, term.split())) for term in terms) +
                                  r")(?![\w-])")

    def find(self, text):
        for match in self.pattern.finditer(NAMES.sub(blank, text).lower()):
            yield match.start(), " ".join(re.findall(r"[\w'-]+(?:/\w+)?", match.group()))

    @functools.lru_cache(maxsize=None)
    def in_identifier(self, name, identifier):
        parts = [part.lower() for part in PARTS.findall(identifier)]
        for length in {len(term) for term in self.identifier}:
            for at in range(len(parts) - length + 1):
                term = tuple(parts[at:at + length])
                if term in self.identifier and not self.is_allowed(name, " ".join(parts), 0, " ".join(term)):
                    return " ".join(term)
        return None

    def is_allowed(self, name, text, offset, term):
        around = plain(text[max(0, offset - 60):offset + 80])
        found = {line for line, where, phrase in self.allowed
                 if (where in ("*", name) or name.startswith(where + "/")) and term in phrase and phrase in around}
        self.used |= found
        return bool(found)


def tracked(root):
    """Returns the names of the files under version control, or of all files where there is no git."""
    listed = subprocess.run(["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, capture_output=True, check=False)
    if listed.returncode == 0:
        return sorted(set(listed.stdout.decode().split("\0")[:-1]))
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")
                  if path.is_file() and not {"build", ".git", ".cache"} & set(path.relative_to(root).parts))


def check(root):
    """Yields one line per finding; an identifier is reported at its first use only."""
    root = pathlib.Path(root).resolve()
    words = Words((root / WORDS).read_text(encoding="utf-8"))
    seen = set()
    for name in tracked(root):
        path = root / name
        if not is_checked(name) or not path.is_file():
            continue
        content = path.read_text(encoding="utf-8")
        lines = Lines(content)
        found, identifiers = texts(name, content)
        for text in found:
            for offset, term in words.find(text):
                if not words.is_allowed(name, text, offset, term):
                    yield f'{name}:{lines.of(offset)}: "{term}": {words.replacement[term]}'
        for identifier, offset in identifiers:
            term = words.in_identifier(name, identifier)
            if term is not None and identifier not in seen:
                seen.add(identifier)
                yield f'{name}:{lines.of(offset)}: identifier {identifier}: "{term}": {words.replacement[term]}'
    for line, where, phrase in words.allowed:
        if line not in words.used:
            yield f"{WORDS}:{line}: the exception '{phrase}' no longer occurs in {where}; remove it"
    glossary = root / GLOSSARY
    for term in re.findall(r"^\| ([^|]+?) \|", glossary.read_text(encoding="utf-8") if glossary.is_file() else "", re.MULTILINE):
        for part in term.lower().split(", "):
            if part in words.replacement:
                yield f"{WORDS}: {GLOSSARY} defines '{part}'; a defined term cannot be listed"


def main():
    try:
        return report(check(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1]))
    except ValueError as error:
        return report([str(error)])


if __name__ == "__main__":
    sys.exit(main())
