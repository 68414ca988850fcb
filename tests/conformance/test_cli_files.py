"""The files that commands read and write: a FIFO is refused and not waited for; an output never overwrites an input or
another output."""

import os
import socket
import subprocess

import numpy as np
import pytest
from test_cli_commands import SMALL, expect_refusal

EPILOGUE = ("--epilogue", "D = acc; aux = acc")


def same(tmp_path):
    return tmp_path / "x.npy"


def other_spelling(tmp_path):
    (tmp_path / "folder").mkdir()
    return f"{tmp_path}/folder/.././x.npy"


def symbolic_link(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"before")
    (tmp_path / "link.npy").symlink_to("x.npy")
    return tmp_path / "link.npy"


def linked_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    return tmp_path / "link" / "x.npy"


def hard_link(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"before")
    os.link(tmp_path / "x.npy", tmp_path / "link.npy")
    return tmp_path / "link.npy"


@pytest.mark.parametrize("other", [same, other_spelling, symbolic_link, linked_folder, hard_link])
def test_two_outputs_that_are_the_same_file(tilewright, tmp_path, other):
    path = other(tmp_path)
    finished = tilewright("gemm", *SMALL, *EPILOGUE, "--out", tmp_path / "x.npy", "--epilogue-output", f"aux={path}")
    expect_refusal(finished, f"--epilogue-output aux {path} would overwrite {tmp_path / 'x.npy'}, which --out writes")
    x = tmp_path / "x.npy"
    assert not x.exists() or x.read_bytes() == b"before"


def test_two_spellings_in_the_working_folder(tilewright, tmp_path):
    finished = tilewright("gemm", *SMALL, *EPILOGUE, "--out", "x.npy", "--epilogue-output", "aux=./x.npy", cwd=tmp_path)
    expect_refusal(finished, "--epilogue-output aux ./x.npy would overwrite x.npy, which --out writes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--a", "--b", "--c", "--epilogue-input bias"])
def test_an_output_that_is_an_input(tilewright, save, tmp_path, option):
    files = {name: save(name.strip("-").replace(" ", "_"), np.ones((4, 4), np.float32)) for name in ("--a", "--b", "--c")}
    files["--epilogue-input bias"] = save("bias", np.ones(4, np.float32))
    before = files[option].read_bytes()
    link = tmp_path / "link.npy"
    link.symlink_to(files[option])
    arguments = [text for name in ("--a", "--b", "--c") for text in (name, files[name])]
    epilogue = ("--epilogue", "D = acc + row(bias) + C", "--epilogue-input", f"bias={files['--epilogue-input bias']}")
    for out in (files[option], link):
        finished = tilewright("gemm", *arguments, *epilogue, "--out", out, "--device", "emulator:sm_80")
        expect_refusal(finished, f"--out {out} would overwrite {files[option]}, which {option} reads")
    finished = tilewright("emit", *arguments, *epilogue, "--cubin", link, "--device", "emulator:sm_80")
    expect_refusal(finished, f"--cubin {link} would overwrite {files[option]}, which {option} reads")
    assert files[option].read_bytes() == before


def test_two_pictures_that_are_the_same_file(tilewright, tmp_path):
    picture = tmp_path / "picture"
    finished = tilewright("layout", "draw", "(4,4)", "--svg", picture, "--latex", f"{tmp_path}/./picture")
    expect_refusal(finished, f"--latex {tmp_path}/./picture would overwrite {picture}, which --svg writes")
    assert not picture.exists()


def fifo(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def a_socket(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(path))  # the address of a Unix socket has at most 107 characters
    server.close()


@pytest.mark.parametrize("make, says", [(fifo, "is a FIFO"), (folder, "is a folder"), (a_socket, "is a socket")])
def test_inputs_that_are_not_regular_files_are_refused_at_once(tilewright, save, tmp_path, make, says):
    good = save("good", np.zeros((4, 4), np.float32))
    bad = tmp_path / "bad.npy"
    make(bad)
    for files in (("--a", bad, "--b", good), ("--a", good, "--b", bad), ("--a", good, "--b", good, "--c", bad)):
        finished = tilewright("gemm", *files, "--out", tmp_path / "d.npy")
        expect_refusal(finished, f"{bad}: cannot be opened: it {says}, not a regular file")
    finished = tilewright("gemm", *SMALL, "--epilogue", "D = acc + row(bias)", "--epilogue-input", f"bias={bad}")
    expect_refusal(finished, f"{bad}: cannot be opened: it {says}, not a regular file")


def test_a_device_and_a_pipe_are_refused(tilewright, save):
    good = save("good", np.zeros((4, 4), np.float32))
    expect_refusal(tilewright("gemm", "--a", "/dev/zero", "--b", good), "/dev/zero: cannot be opened: it is a device, not a regular file")
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w"):
        finished = subprocess.run([tilewright.program, "gemm", "--a", f"/dev/fd/{reader}", "--b", good],
                                  capture_output=True, text=True, pass_fds=[reader], timeout=60)
    expect_refusal(finished, f"/dev/fd/{reader}: cannot be opened: it is a FIFO, not a regular file")


def test_the_mode_of_an_output_follows_the_umask(tilewright, tmp_path):
    out = tmp_path / "d.npy"
    finished = subprocess.run([tilewright.program, "gemm", *map(str, SMALL), "--out", out], umask=0o027, timeout=300)
    assert finished.returncode == 0
    assert out.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [out]
