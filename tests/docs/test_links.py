"""The links of every document lead to files and headings that exist, and so do the files that CONTRIBUTING.md names."""

import re

import pytest
from conftest import ROOT
from documents import Document

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md"]
DOCUMENTS += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def anchors(text):
    """The anchors of the document's headings on GitHub: in lower case, without punctuation, with hyphens for spaces."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", prose, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_linked_files_and_headings_exist(path):
    document = Document(path)
    assert list(document.missing_links()) == []
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", document.text):
        linked = (document.path.parent / target) if target else document.path
        assert anchor in anchors(linked.read_text()), f"{target}#{anchor}"


def test_files_named_in_contributing_exist():
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:cpp|hpp|cuh|py|md|sh|txt))`", Document("CONTRIBUTING.md").text)
    assert len(named) > 40
    for path in named:
        if not re.search(r"NAME|TYPE|ROOM", path):
            assert any((ROOT / folder / path).is_file() for folder in (".", "tilewright")), path
