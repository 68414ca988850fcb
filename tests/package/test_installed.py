"""`cmake --install` installs a relocatable package that CMake and pkg-config find, as README.md says."""

import re

import pytest
from conftest import BINARIES, ROOT
from consumer import FIND, PROJECT, SECTION, configure, imposed_flags, run, write_project

BUILD = BINARIES.parent


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation that was moved to another folder."""
    folder = tmp_path_factory.mktemp("installed")
    run(f"cmake --install '{BUILD}' --prefix before", folder)
    return (folder / "before").rename(folder / "after")


def test_readme(tmp_path):
    """Runs the commands of README.md in order: the first in Tilewright's tree, the others in the project it shows."""
    in_tilewright, *in_project = [
        "\n".join(re.findall(r"^\$ (.*)$", block, re.M)) for block in SECTION.blocks("console")
    ]
    assert "cmake --install build" in in_tilewright
    (tmp_path / "build").symlink_to(BUILD)
    run(in_tilewright, tmp_path, HOME=str(tmp_path))
    project = write_project(tmp_path / "your_program")
    for commands in in_project:
        printed = run(commands, project, HOME=str(tmp_path))
        assert re.search(r"^\S.*: D\[0,0\] = 320$", printed, re.M), printed
    assert len(in_project) == 2


def test_every_header_is_installed_and_compiles_under_strict_warnings(prefix, tmp_path):
    headers = {str(path.relative_to(ROOT)) for path in (ROOT / "tilewright").rglob("*.hpp")}
    installed = [path for path in (prefix / "include").rglob("*") if path.is_file()]
    assert {str(path.relative_to(prefix / "include")) for path in installed} == headers
    (tmp_path / "all.cpp").write_text("".join(f'#include "{header}"\n' for header in sorted(headers)))
    warnings = "-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror"
    run(f"g++ -std=c++20 {warnings} -fsyntax-only all.cpp $(pkg-config --cflags tilewright)", tmp_path,
        PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))


MLIR_PROGRAM = r"""
#include <cstdio>

#include "tilewright/tilewright.hpp"

int main() {
  using namespace tilewright;
  compile::Source source;
  source.name = source.symbol = "nothing";
  source.language = compile::Language::mlir;
  source.text = "llvm.func @nothing() attributes {nvvm.kernel} { llvm.return }";
  source.target = kSm90a;
  source.outputs = {.cubin = false, .ptx = true};
  std::printf("%s\n", compile::make_compiler({})->compile(source).compiler.c_str());
}
"""


def test_a_program_compiles_mlir(prefix, tmp_path):
    if not (prefix / "lib/libtilewright_mlir.so").exists():
        pytest.skip("built without MLIR")
    run("bin/tilewright doctor --json | grep -F \"$PWD/lib/libtilewright_mlir.so (LLVM 22\"", prefix)
    (tmp_path / "main.cpp").write_text(MLIR_PROGRAM)
    pkg_config = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    run("g++ -std=c++20 main.cpp $(pkg-config --cflags --libs tilewright) -o program", tmp_path, **pkg_config)
    assert run("./program", tmp_path).startswith("mlir LLVM 22.")


def test_the_licence_is_installed(prefix):
    assert (prefix / "share/doc/tilewright/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_it_does_not_remember_where_it_was(prefix):
    described = [path for path in (prefix / "lib").rglob("*") if path.suffix in (".cmake", ".pc")]
    assert len(described) == 5
    for path in described:
        text = path.read_text()
        for place in (ROOT, BUILD, prefix.parent):
            assert str(place) not in text, path


def test_find_package_takes_the_same_minor_version_only(prefix, tmp_path):
    major, minor, patch = map(int, run("bin/tilewright --version", prefix).split()[1].split("."))
    wanted = {f"{major}.{minor}": True, f"{major}.{minor}.{patch}": True, f"{major}.{minor}.{patch + 1}": False,
              f"{major}.{minor + 1}": False, f"{major + 1}.{minor}": False}
    if minor > 0:
        wanted[f"{major}.{minor - 1}"] = False
    asked = "".join(
        f'find_package(tilewright {version} CONFIG QUIET)\nmessage(STATUS "{version}: ${{tilewright_FOUND}}")\n'
        for version in wanted
    )
    project = write_project(tmp_path / "versions", PROJECT.split("find_package")[0] + asked)
    printed = run(f"cmake -B build -DCMAKE_PREFIX_PATH='{prefix}'", project)
    assert dict(re.findall(r"^-- ([\d.]+): (\d)$", printed, re.M)) == {
        version: str(int(found)) for version, found in wanted.items()
    }
    assert f" {major}.{minor} " in FIND, "README.md asks for another version"


def test_a_program_inherits_none_of_our_flags(prefix, tmp_path):
    project = write_project(tmp_path / "flags")
    assert configure(project, f"-DCMAKE_PREFIX_PATH={prefix}") == {"your_program"}
    assert imposed_flags(project) == []


def test_the_command_runs(prefix, tmp_path):
    printed = run(f"'{prefix}/bin/tilewright' gemm --m 64 --n 48 --k 32 --verify", tmp_path)
    assert "verify    3072 elements equal the reference bit for bit" in printed
