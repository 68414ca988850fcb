#!/usr/bin/env python3
"""Checks that the links of the site that `make site` builds lead to files of it, and that it has the references.

    test_site.py site
"""

import pathlib
import re
import sys
import urllib.parse


def missing(site: pathlib.Path) -> list[str]:
    """The links of all pages but those of Doxygen to files that the site does not have."""
    found = []
    for page in site.rglob("*.html"):
        if "cpp" in page.relative_to(site).parts[:2]:
            continue
        for link in re.findall(r'href="([^"#?]+)', page.read_text()):
            if re.match(r"[a-z]+:", link):
                continue
            path = urllib.parse.unquote(link)
            target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            if not target.exists():
                found.append(f"{page.relative_to(site)}: {link}")
    return found


def main() -> None:
    site = pathlib.Path(sys.argv[1])
    assert missing(site) == [], "\n".join(missing(site))
    reference = (site / "reference/tilewright/index.html").read_text()
    assert all(f'id="{name}"' in reference for name in ("matmul", "profile", "kernelmetadata", "shapeonly"))
    assert (site / "reference/cpp/classtilewright_1_1engine_1_1Engine.html").exists()
    print("the links of the site lead to its files")


main()
