"""What a document shows: its blocks of code, and its console sessions as commands with what they print."""

import re
import shutil
import subprocess

from conftest import BINARIES, ROOT


class Document:
    """A document, or what stands below one of its headings of the second level."""

    def __init__(self, path, section=None):
        self.path = ROOT / path
        self.text = self.path.read_text()
        if section:
            (self.text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", self.text, re.M | re.S)

    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)

    def sessions(self):
        """(command, output) for each line `$ build/bin/...` of its console blocks."""
        for block in self.blocks("console"):
            for session in re.findall(r"^\$ (build/bin/(?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                yield session

    def missing_links(self):
        for link in re.findall(r"\]\(([^)#:]+)\)", self.text):
            if not (self.path.parent / link).exists():
                yield link


def run_in(folder, command):
    """Runs a command as a document shows it, with the binaries under test in build/bin."""
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
