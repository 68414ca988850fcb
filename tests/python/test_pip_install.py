"""The wheel that pip builds from the sources: in a clean environment, and in a root file system without compilers."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "wheel"))
from tutorial_session import run_tutorial  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_NETWORK = re.compile("Temporary failure in name resolution|Name or service not known|Network is unreachable")


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CMAKE_GENERATOR")}


def run(*command: str | pathlib.Path, cwd: pathlib.Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    finished = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert not check or finished.returncode == 0, finished.stdout + finished.stderr
    return finished


def copy_sources(folder: pathlib.Path) -> pathlib.Path:
    """The files that git tracks or would add."""
    listed = run("git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The wheel, with the shared libraries that it needs."""
    sources = copy_sources(tmp_path_factory.mktemp("sources"))
    folder = tmp_path_factory.mktemp("wheels")
    made = run(sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "-w", folder / "raw", cwd=sources, check=False)
    if made.returncode != 0 and NO_NETWORK.search(made.stdout + made.stderr):
        pytest.skip("pip reaches no package index")
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.rmtree(sources)  # what is installed needs no sources
    (raw,) = (folder / "raw").glob("tilewright-*.whl")
    run("env", f"PATH={pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "auditwheel", "repair", "-w", folder,
        raw, cwd=folder)
    (repaired,) = folder.glob("tilewright-*.whl")
    return repaired


@pytest.fixture(scope="module")
def environment(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of programs of the environment into which pip installed the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    run(folder / "bin/pip", "install", f"{wheel}[cuda]", cwd=folder)
    return folder / "bin"


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_the_tutorial_runs_without_compilers_and_apt(wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ran = run_tutorial(tmp_path / "root", wheel)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "gemm A(64,64):f16" in ran.stdout
    assert (tmp_path / "root/root/report.html").is_file()


def test_the_package_is_imported_from_where_it_was_installed(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    program = "import tilewright, tilewright._tilewright as e; print(tilewright.__version__, e.__file__)"
    printed = run(environment / "python", "-c", program, cwd=tmp_path).stdout
    assert str(environment.parent) in printed and printed.endswith("_tilewright.abi3.so\n")


def test_the_command_is_installed_too(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    printed = run(
        environment / "tilewright", "layout", "eval", "zipped_divide((8,8):(8,1), (2,4))", cwd=tmp_path
    ).stdout
    assert printed == "((2,4),(4,2)):((8,1),(16,4))\n"


def test_the_wheel_compiles_mlir_if_mlir_was_there(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    findings = json.loads(run(environment / "tilewright", "doctor", "--json", cwd=tmp_path).stdout)
    (mlir,) = [finding for finding in findings if finding["what"] == "MLIR"]
    assert mlir["found"] == pathlib.Path("/usr/lib/llvm-22/include/mlir").is_dir()
    if mlir["found"]:
        assert mlir["detail"].startswith(str(environment.parent.resolve()))


def test_the_licence_is_in_the_wheel(environment: pathlib.Path) -> None:
    licences = list(environment.parent.glob("lib/python*/site-packages/tilewright-*.dist-info/licenses/LICENSE"))
    assert [licence.read_text() for licence in licences] == [(ROOT / "LICENSE").read_text()]


def test_the_readmes_python_runs(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    section = (ROOT / "README.md").read_text().split("## From Python")[1].split("\n## ")[0]
    scripts = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len(scripts) == 4
    for script in scripts:
        (tmp_path / "script.py").write_text(script)
        run("env", f"TILEWRIGHT_CACHE_DIR={tmp_path}/cache", environment / "python", "script.py", cwd=tmp_path)


LAYOUT = """
from tilewright.layout import Layout, zipped_divide

tiles = zipped_divide(Layout((8, 8), (8, 1)), (2, 4))
offset: int = tiles((0, 0), (1, 0))
print(tiles, offset)
"""


def test_layouts_work_as_installed(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert run(environment / "python", "-c", LAYOUT, cwd=tmp_path).stdout == "((2,4),(4,2)):((8,1),(16,4)) 16\n"


def test_the_installed_package_is_typed(environment: pathlib.Path, tmp_path: pathlib.Path) -> None:
    python = environment / "python"
    run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "-c", LAYOUT, cwd=tmp_path)
