"""docs/layouts.md: the output of each command is the text below it, and the pictures are those that the commands draw.

After an intended change, rewrite both with: pytest tests/docs --update-docs.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import ROOT
from documents import Document, run_in

GUIDE = Document("docs/layouts.md")
PICTURES = "docs/images/layouts"
SESSIONS = list(GUIDE.sessions())


def run_all(folder):
    """Runs the sessions of the guide, with the pictures below the folder, and yields (command, expected, output)."""
    (folder / PICTURES).mkdir(parents=True)
    for command, expected in SESSIONS:
        finished = run_in(folder, command)
        yield command, expected, finished.stdout + finished.stderr


def update(folder):
    text = GUIDE.text
    for command, expected, printed in run_all(folder):
        text = text.replace(f"$ {command}\n{expected}", f"$ {command}\n{printed}")
    GUIDE.path.write_text(text)
    for drawn in (folder / PICTURES).iterdir():
        (ROOT / PICTURES / drawn.name).write_bytes(drawn.read_bytes())


def test_commands_print_and_draw_what_the_guide_shows(tmp_path, request):
    if request.config.getoption("--update-docs"):
        return update(tmp_path)
    for command, expected, printed in run_all(tmp_path):
        assert printed == expected, command
    drawn = {path.name: path.read_text() for path in (tmp_path / PICTURES).iterdir()}
    kept = {path.name: path.read_text() for path in (ROOT / PICTURES).iterdir()}
    assert drawn.keys() == kept.keys()
    stale = [name for name in drawn if drawn[name] != kept[name]]
    assert stale == [], "redraw with: pytest tests/docs --update-docs"


def test_python_runs(tmp_path):
    pytest.importorskip("tilewright._tilewright", reason="the Python package is not built")
    assert GUIDE.blocks("python")
    for script in GUIDE.blocks("python"):
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=120)


def test_pictures_are_svg_and_shown():
    for path in (ROOT / PICTURES).iterdir():
        assert xml.etree.ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert f"](images/layouts/{path.name})" in GUIDE.text


def test_linked_files_exist():
    assert list(GUIDE.missing_links()) == []


def test_functions_named_in_the_guide_exist(tilewright):
    table = tilewright("layout", "functions").stdout
    named = set(re.findall(r"`(\w{3,})\(", GUIDE.text))
    assert named
    assert {name for name in named if not re.search(rf"^{name}\(", table, re.M)} == set()
