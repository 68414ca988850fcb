"""A project that includes Tilewright by add_subdirectory() gets the libraries, under the same target name, and no tests
or programs. It is only configured, because the libraries are built in other tests.
"""

from conftest import ROOT
from consumer import FIND, PROJECT, configure, imposed_flags, write_project


def test_a_subproject_is_the_libraries_alone(tmp_path):
    project = write_project(tmp_path / "your_program", PROJECT.replace(FIND, "add_subdirectory(tilewright)"))
    (project / "tilewright").symlink_to(ROOT)
    rooms = {f"tilewright_{path.name}" for path in (ROOT / "tilewright").iterdir() if path.is_dir()}
    rooms.add("tilewright_nvrtc_process")  # the program that the library embeds
    assert configure(project) == {"your_program", *rooms}
    assert imposed_flags(project) == []
    assert not list((project / "build").rglob("CTestTestfile.cmake"))
