"""A project that uses Tilewright, made of the files and commands that README.md shows."""

import json
import os
import re
import shlex
import subprocess

from conftest import ROOT
from documents import Document

PROGRAM = Document("README.md", section="From C++").blocks("cpp")[0]
SECTION = Document("README.md", section="In your own project")
(PROJECT,) = SECTION.blocks("cmake")
FIND = re.search(r"^find_package\(tilewright.*\)$", PROJECT, re.M).group()


def run(command, folder, **environment):
    """Runs a bash command and returns its output. Fails the test if the command fails."""
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        # NVRTC may be in .venv, which must be named to programs elsewhere. CXXFLAGS of this shell must not be used.
        env={**os.environ, "VIRTUAL_ENV": str(ROOT / ".venv"), "CXXFLAGS": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}"
    return finished.stdout


def write_project(folder, project=PROJECT):
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(project)
    (folder / "main.cpp").write_text(PROGRAM)
    return folder


def configure(folder, *definitions):
    """Configures a project and returns the names of its targets."""
    query = folder / "build/.cmake/api/v1/query"
    query.mkdir(parents=True)
    (query / "codemodel-v2").touch()
    run(shlex.join(["cmake", "-B", "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *definitions]), folder)
    (codemodel,) = (folder / "build/.cmake/api/v1/reply").glob("codemodel-v2-*.json")
    (configuration,) = json.loads(codemodel.read_text())["configurations"]
    return {target["name"] for target in configuration["targets"]}


def imposed_flags(folder):
    """The flags for warnings, optimization and code generation with which a project's main.cpp is compiled."""
    entries = json.loads((folder / "build/compile_commands.json").read_text())
    (command,) = [entry["command"] for entry in entries if entry["file"] == str(folder / "main.cpp")]
    return [word for word in shlex.split(command) if word.startswith(("-W", "-O", "-f", "-m", "-g"))]
