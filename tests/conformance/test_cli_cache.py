"""The cache's commands: kernels carried from machine to machine, signed or not, and disks that refuse."""

import os
import sqlite3
import subprocess

import numpy as np
import pytest

PROBLEM = ("--m", 24, "--n", 16, "--k", 8, "--device", "emulator:sm_80")


@pytest.fixture
def at(tmp_path):
    """The environment with a cache folder of that name, and what else a test sets."""
    return lambda folder, **variables: {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / folder), **variables}


@pytest.fixture
def bundle(tilewright, at, tmp_path):
    path = tmp_path / "kernels.db"
    assert tilewright("gemm", *PROBLEM, "--verify", env=at("here")).returncode == 0
    exported = tilewright("cache", "export", path, env=at("here"))
    assert exported.stdout == f"1 kernels written to {path}\n"
    return path


@pytest.fixture
def keys(tmp_path):
    def make(name):
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        return private, public

    return make


def test_a_bundle_runs_without_a_compiler(tilewright, at, bundle, tmp_path):
    there = at("there", TILEWRIGHT_COMPILER="none")
    refused = tilewright("gemm", *PROBLEM, env=there)
    assert refused.returncode == 3
    assert "compiling is switched off" in refused.stderr
    assert tilewright("cache", "import", bundle, env=there).stdout == f"1 kernels taken from {bundle}\n"
    run = tilewright("gemm", *PROBLEM, "--verify", "--out", tmp_path / "d.npy", env=there)
    assert run.returncode == 0, run.stderr
    assert "found in the cache" in run.stdout
    assert np.isfinite(np.load(tmp_path / "d.npy")).all()


def test_a_shared_folder_serves_and_is_not_written(tilewright, at, bundle, tmp_path):
    before = sorted(path for path in (tmp_path / "here").rglob("*"))
    layered = at("mine", TILEWRIGHT_COMPILER="none", TILEWRIGHT_CACHE_SHARED=str(tmp_path / "here"))
    assert tilewright("gemm", *PROBLEM, "--verify", env=layered).returncode == 0
    assert sorted(path for path in (tmp_path / "here").rglob("*")) == before


def test_signed_bundles(tilewright, at, bundle, keys, tmp_path):
    (private, public), (_, other) = keys("ours"), keys("theirs")
    signed = tmp_path / "signed.db"
    assert tilewright("cache", "export", signed, "--sign", private, env=at("here")).returncode == 0
    for path, key, says in ((bundle, public, "is not signed"), (signed, other, "no trusted key made its signature")):
        refused = tilewright("cache", "import", path, "--trust", key, env=at("there"))
        assert refused.returncode == 1
        assert says in refused.stdout
    assert tilewright("cache", "import", signed, "--trust", other, "--trust", public, env=at("there")).returncode == 0
    not_a_key = tilewright("cache", "import", signed, "--trust", private, env=at("there"))
    assert not_a_key.returncode == 2
    assert "is not a PEM file with an Ed25519 public key" in not_a_key.stderr


def test_a_row_of_another_kernel_is_refused(tilewright, at, bundle):
    assert tilewright("gemm", *PROBLEM, "--dtype", "f16", env=at("here")).returncode == 0
    assert tilewright("cache", "export", bundle, env=at("here")).returncode == 0
    with sqlite3.connect(bundle) as database:
        (one, first), (other, second) = database.execute("SELECT source, artifact FROM kernels").fetchall()
        database.execute("UPDATE kernels SET artifact = ? WHERE source = ?", (second, one))
        database.execute("UPDATE kernels SET artifact = ? WHERE source = ?", (first, other))
    imported = tilewright("cache", "import", bundle, env=at("there"))
    assert imported.returncode == 1
    assert imported.stdout.count("was compiled from another source") == 2
    assert "compiled in" in tilewright("gemm", *PROBLEM, "--verify", env=at("there")).stdout


def test_damage_is_said_and_set_aside(tilewright, at, bundle, tmp_path):
    (entry,) = (tmp_path / "here" / "entries").rglob("*.twk")
    entry.write_bytes(entry.read_bytes()[:-1])
    verified = tilewright("cache", "verify", env=at("here"))
    assert verified.returncode == 1
    assert "0 sound, 1 damaged and set aside" in verified.stdout
    assert entry.with_suffix(".bad").exists()
    entry.with_suffix(".bad").rename(entry)
    run = tilewright("gemm", *PROBLEM, env=at("here"))
    assert run.returncode == 0
    assert "warning" in run.stderr
    assert "is damaged" in run.stderr


def test_a_folder_of_somebody_elses_is_refused_and_said(tilewright, at, tmp_path):
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "tmp" / "notes").write_text("a user's own")
    os.utime(home / "tmp" / "notes", (0, 0))
    run = tilewright("gemm", *PROBLEM, env=at("home"))
    assert run.returncode == 0
    assert "it is not empty and not a cache of Tilewright" in run.stderr
    assert tilewright("cache", "clear", env=at("home")).returncode == 0
    assert (home / "tmp" / "notes").read_text() == "a user's own"
    assert [path.name for path in home.iterdir()] == ["tmp"]
