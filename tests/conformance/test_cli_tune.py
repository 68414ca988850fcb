"""`tilewright tune` on the emulator, which checks kernels and does not time them; the list of records, also if the file
of records is damaged."""

import json
import sqlite3

import pytest
from conftest import Tilewright

SMALL = ("--m", 40, "--n", 24, "--k", 16, "--device", "emulator:sm_80")


@pytest.fixture
def here(tmp_path):
    return Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")})


def test_check_runs_every_candidate(here):
    finished = here("tune", *SMALL, "--verify-candidates", "--top", 2, "--json")
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert [candidate["status"] for candidate in report["candidates"]] == ["sound", "sound"]
    assert report["winner"] is None and report["warnings"] == []
    assert report["device"].startswith("emulator:sm_80, ")
    assert report["problem"].startswith("40x24x16 gemm a=f32:row:4 ")
    found = json.loads(here("find", *SMALL, "--json").stdout)
    assert [kernel["name"] for kernel in found["kernels"][:2]] == [each["kernel"] for each in report["candidates"]]
    text = here("tune", *SMALL, "--verify-candidates", "--top", 2).stdout
    assert text.count(" sound ") == 2


@pytest.mark.parametrize("device", ["emulator:sm_80", "emulator:sm_90a"])
def test_an_epilogue_with_tensors_is_checked(here, device):
    epilogue = "let t = acc + row(bias) * column(scale) + row_index; D = gelu(t) + residual; aux = t"
    problem = ("--m", 40, "--n", 24, "--k", 16, "--dtype", "f16", "--device", device)
    finished = here(
        "tune", *problem, "--epilogue", epilogue, "--epilogue-dtype", "aux=bf16",
        "--verify-candidates", "--top", 3, "--json",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert [candidate["status"] for candidate in report["candidates"]] == ["sound"] * 3
    tensors = " tensors=f32:columns:4 f32:rows:4 f32:columns:4 bf16:columns:8"
    assert report["problem"].endswith(tensors), report["problem"]


def test_a_batch_is_checked(here):
    finished = here("tune", *SMALL, "--batch", 3, "--verify-candidates", "--top", 2, "--json")
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert [candidate["status"] for candidate in report["candidates"]] == ["sound", "sound"]
    assert report["problem"].startswith("3 of 40x24x16 ")


def test_an_emulator_is_not_timed(here):
    finished = here("tune", *SMALL)
    assert finished.returncode == 3
    assert finished.stderr == "tilewright: kernels cannot be timed on emulator:sm_80: tune on a GPU\n"
    assert finished.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (*SMALL, "--top", 0),
        (*SMALL, "--seconds", -1),
        (*SMALL, "--seconds", "nan"),
        ("--list", "--forget"),
        ("--m", 0, "--n", 24, "--k", 16, "--verify-candidates", "--device", "emulator:sm_80"),
        ("--m", 40, "--n", 24, "--k", 0, "--verify-candidates", "--device", "emulator:sm_80"),
    ],
)
def test_bad_input(here, arguments):
    finished = here("tune", *arguments)
    assert finished.returncode == 2, finished.stderr
    assert len(finished.stderr.splitlines()) == 1
    assert finished.stdout == ""


def test_nothing_to_list_or_forget(here):
    assert here("tune", "--list").stdout.startswith("0 choices, 0 faults, in ")
    assert json.loads(here("tune", "--forget", "--json").stdout) == {"forgotten": 0}


def test_a_damaged_file_of_records_is_reported_once_and_replaced(here, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "tuning_records.db").write_bytes(b"x" * 5000)
    finished = here("tune", "--list")
    assert finished.returncode == 3
    assert "damaged and set aside" in finished.stderr
    assert here("tune", "--list").returncode == 0
    assert here("find", *SMALL).returncode == 0


def test_a_report_that_is_too_deep_is_left_out(here, tmp_path):
    assert here("tune", "--forget").returncode == 0
    with sqlite3.connect(tmp_path / "cache/tuning_records.db") as database:
        deep = "[" * 300000 + "]" * 300000
        database.execute("INSERT INTO choices VALUES ('d', 'l', 'p', 'k', 'w', 1.0, 1, ?)", (deep,))
    finished = here("tune", "--list", "--json")
    assert finished.returncode == 0, finished.stderr
    assert len(finished.stdout) < 2000
    assert json.loads(finished.stdout)["choices"][0]["winner"] == "w"
