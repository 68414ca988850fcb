"""Every document: its links lead to files and headings that exist. CONTRIBUTING.md: the files that it names exist."""

import re

import pytest
from conftest import ROOT
from documents import Document

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md"]
DOCUMENTS += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def anchors(text):
    """The anchors that a web page of the document has: its headings in lower case, without punctuation."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", prose, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_lead_somewhere(path):
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
