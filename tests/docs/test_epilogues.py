"""docs/epilogues.md: its commands run and verify, its C++ is in examples/, its links lead somewhere."""

from conftest import ROOT
from documents import Document, run_in

GUIDE = Document("docs/epilogues.md")


def test_commands_run(tmp_path):
    commands = [command for command, _ in GUIDE.sessions()]
    assert commands
    for command in commands:
        finished = run_in(tmp_path, command)
        assert finished.returncode == 0, f"{command}\n{finished.stderr}"
        assert "verify    " in finished.stdout


def test_cpp_is_quoted_from_an_example_that_runs():
    programs = [path.read_text() for path in (ROOT / "examples").glob("*.cpp")]
    assert GUIDE.blocks("cpp")
    for block in GUIDE.blocks("cpp"):
        assert any(block in program for program in programs), block


def test_links_lead_somewhere():
    assert list(GUIDE.missing_links()) == []
