"""Drawings on the terminal, in notebooks and in files."""

import pathlib
import xml.etree.ElementTree

import pytest

from tilewright import InvalidArgument
from tilewright.layout import ComposedLayout, Drawing, Layout, Swizzle

ROWS = Layout((2, 4), (4, 1))


def is_svg(text: str | None) -> bool:
    return text is not None and xml.etree.ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_terminal_shows_offsets() -> None:
    lines = str(ROWS.draw()).splitlines()
    assert lines[0] == "(2,4):(4,1)"
    assert "| 4 | 5 | 6 | 7 |" in str(ROWS.draw())
    assert repr(ROWS.draw()) == str(ROWS.draw())


def test_notebooks_show_layouts_and_drawings() -> None:
    swizzled = ComposedLayout(Swizzle(2, 0, 3), 0, Layout((8, 4), (4, 1)))
    for shown in (ROWS, swizzled, ROWS.draw(), swizzled.draw(banks=32)):
        assert is_svg(shown._repr_svg_())
    assert "overflow-x" in ROWS.draw()._repr_html_()


def test_a_notebook_shows_text_of_what_is_too_large() -> None:
    large = Layout((1024, 1024))
    assert large._repr_svg_() is None
    with pytest.raises(InvalidArgument, match="1048576"):
        large.draw()


def test_latex_is_a_document() -> None:
    for latex in (ROWS.to_latex(), ROWS.draw().to_latex()):
        assert latex.startswith("\\documentclass") and latex.rstrip().endswith("\\end{document}")


@pytest.mark.parametrize(
    "drawing",
    [
        ROWS.draw(title="rows"),
        Layout((8, 32), (32, 1)).draw(banks=32),
        Layout((8, 8), (8, 1)).draw(tile=(2, 4)),
        Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))).draw(thread_values=(16, 8)),
        ROWS.draw() + ROWS.draw(title="again"),
    ],
)
def test_drawings_are_saved(drawing: Drawing, tmp_path: pathlib.Path) -> None:
    drawing.save(tmp_path / "drawing.svg")
    drawing.save(str(tmp_path / "drawing.tex"))
    assert is_svg((tmp_path / "drawing.svg").read_text())
    assert (tmp_path / "drawing.svg").read_text() == drawing.to_svg()
    assert (tmp_path / "drawing.tex").read_text() == drawing.to_latex()


def test_what_cannot_be_drawn_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidArgument, match="exclude each other"):
        ROWS.draw(banks=32, tile=(1, 2))
    with pytest.raises(InvalidArgument):
        ROWS.draw(tile=(3, 1))
    with pytest.raises(InvalidArgument):
        ROWS.draw(thread_values=(1, 2))
    with pytest.raises(InvalidArgument):
        ROWS.draw(banks=0)
    with pytest.raises(InvalidArgument, match=".svg or .tex"):
        ROWS.draw().save(tmp_path / "drawing.png")
    with pytest.raises(OSError):
        ROWS.draw().save(tmp_path / "missing" / "drawing.svg")
