"""docs/reliability.md: every fault has a row in the table, and every test that the table names exists."""

import re

from conftest import ROOT
from documents import Document

DOCUMENT = "docs/reliability.md"


def rows(section):
    """The rows of the section's table as lists of cells, without the two header lines."""
    lines = [line for line in Document(DOCUMENT, section).text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def cpp_tests():
    macro = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
    texts = [file.read_text() for file in (ROOT / "tests").rglob("*.cpp")]
    return {f"{suite}.{test}" for text in texts for suite, test in macro.findall(text)}


def named_tests(text):
    """The names of tests in backquotes. `.Test` belongs to the suite that was named last, `::test` to the file."""
    named, last = [], {".": "", "::": ""}
    for word in re.findall(r"`([^`]+)`", text):
        for mark in ("::", "."):
            pattern = rf"(\w+\.py)?{mark}(test_\w+)" if mark == "::" else r"([A-Z]\w+)?\.([A-Z]\w+)"
            if match := re.fullmatch(pattern, word):
                last[mark] = match[1] or last[mark]
                named.append(f"{last[mark]}{mark}{match[2]}")
                break
    return named


def test_every_fault_has_a_row():
    assert [row[0] for row in rows("Faults")] == [str(number) for number in range(1, 45)] + ["+", "+", "+"]
    assert all(len(row) == 5 and all(row[:4]) for row in rows("Faults"))


def test_the_tests_exist():
    known, named = cpp_tests(), named_tests(Document(DOCUMENT).text)
    assert len(named) > 80
    for name in named:
        if "::" in name:
            file, _, test = name.partition("::")
            found = [path for path in (ROOT / "tests").rglob(file) if f"def {test}(" in path.read_text()]
            assert found, name
        else:
            assert name in known, name
