"""Reads a document's blocks of code, its console sessions (commands with their output) and its links."""

import re
import shutil
import subprocess

from conftest import BINARIES, ROOT


class Document:
    """A document, or the section below one of its headings of the second level."""

    def __init__(self, path, section=None):
        self.path = ROOT / path
        self.text = self.path.read_text()
        if section:
            (self.text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", self.text, re.M | re.S)

    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)

    def sessions(self):
        """Yields (command, output) for each line `$ build/bin/...` of the console blocks."""
        for block in self.blocks("console"):
            for session in re.findall(r"^\$ (build/bin/(?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                yield session

    def missing_links(self):
        for link in re.findall(r"\]\(([^)#:]+)\)", self.text):
            if not (self.path.parent / link).exists():
                yield link


def run_in(folder, command):
    """Runs a command of a document in the folder, where build/bin is a link to the binaries under test."""
    (folder / "build").mkdir(exist_ok=True)
    if not (folder / "build/bin").exists():
        (folder / "build/bin").symlink_to(BINARIES)
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        executable=shutil.which("bash"),
    )
