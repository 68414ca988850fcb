"""The command `tilewright cache`: bundles, signed and unsigned; damaged entries; folders that are refused."""

import os
import sqlite3
import subprocess

import numpy as np
import pytest
from conftest import Tilewright

PROBLEM = ("--m", 24, "--n", 16, "--k", 8, "--device", "emulator:sm_80")


@pytest.fixture
def at(tmp_path):
    """Returns the command with a cache folder of the given name and with further environment variables."""
    return lambda folder, **variables: Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / folder), **variables})


@pytest.fixture
def bundle(at, tmp_path):
    path = tmp_path / "kernels.db"
    assert at("here")("gemm", *PROBLEM, "--verify").returncode == 0
    exported = at("here")("cache", "export", path)
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


def test_a_bundle_runs_without_a_compiler(at, bundle, tmp_path):
    there = at("there", TILEWRIGHT_COMPILER="none")
    refused = there("gemm", *PROBLEM)
    assert refused.returncode == 3
    assert "compiling is disabled" in refused.stderr
    assert there("cache", "import", bundle).stdout == f"1 kernels taken from {bundle}\n"
    run = there("gemm", *PROBLEM, "--verify", "--out", tmp_path / "d.npy")
    assert run.returncode == 0, run.stderr
    assert "found in the cache" in run.stdout
    assert np.isfinite(np.load(tmp_path / "d.npy")).all()


def test_a_shared_folder_is_read_and_never_written(at, bundle, tmp_path):
    before = sorted(path for path in (tmp_path / "here").rglob("*"))
    layered = at("mine", TILEWRIGHT_COMPILER="none", TILEWRIGHT_CACHE_SHARED=str(tmp_path / "here"))
    assert layered("gemm", *PROBLEM, "--verify").returncode == 0
    assert sorted(path for path in (tmp_path / "here").rglob("*")) == before


def test_signed_bundles(at, bundle, keys, tmp_path):
    (private, public), (_, other) = keys("ours"), keys("theirs")
    signed = tmp_path / "signed.db"
    assert at("here")("cache", "export", signed, "--sign", private).returncode == 0
    for path, key, says in ((bundle, public, "is not signed"), (signed, other, "no trusted key made its signature")):
        refused = at("there")("cache", "import", path, "--trust", key)
        assert refused.returncode == 1
        assert says in refused.stdout
    assert at("there")("cache", "import", signed, "--trust", other, "--trust", public).returncode == 0
    not_a_key = at("there")("cache", "import", signed, "--trust", private)
    assert not_a_key.returncode == 2
    assert "is not a PEM file with an Ed25519 public key" in not_a_key.stderr


def test_artifacts_in_the_rows_of_other_kernels_are_refused(at, bundle):
    assert at("here")("gemm", *PROBLEM, "--dtype", "f16").returncode == 0
    assert at("here")("cache", "export", bundle).returncode == 0
    with sqlite3.connect(bundle) as database:
        (one, first), (other, second) = database.execute("SELECT source, artifact FROM kernels").fetchall()
        database.execute("UPDATE kernels SET artifact = ? WHERE source = ?", (second, one))
        database.execute("UPDATE kernels SET artifact = ? WHERE source = ?", (first, other))
    imported = at("there")("cache", "import", bundle)
    assert imported.returncode == 1
    assert imported.stdout.count("was compiled from another source") == 2
    assert "compiled in" in at("there")("gemm", *PROBLEM, "--verify").stdout


def test_a_damaged_entry_is_reported_and_set_aside(at, bundle, tmp_path):
    (entry,) = (tmp_path / "here" / "entries").rglob("*.twk")
    entry.write_bytes(entry.read_bytes()[:-1])
    verified = at("here")("cache", "verify")
    assert verified.returncode == 1
    assert "0 intact, 1 damaged and set aside" in verified.stdout
    assert entry.with_suffix(".bad").exists()
    entry.with_suffix(".bad").rename(entry)
    run = at("here")("gemm", *PROBLEM)
    assert run.returncode == 0
    assert "warning" in run.stderr
    assert "is damaged" in run.stderr


def test_a_folder_that_is_not_a_cache_is_refused_with_a_warning(at, tmp_path):
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "tmp" / "notes").write_text("a user's own")
    os.utime(home / "tmp" / "notes", (0, 0))
    run = at("home")("gemm", *PROBLEM)
    assert run.returncode == 0
    assert "it is not empty and not a cache of Tilewright" in run.stderr
    assert at("home")("cache", "clear").returncode == 0
    assert (home / "tmp" / "notes").read_text() == "a user's own"
    assert [path.name for path in home.iterdir()] == ["tmp"]
