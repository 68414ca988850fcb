"""tilewright.profile, .tune and .benchmark on the emulator: results are verified and counted, and nothing is timed."""

from __future__ import annotations

import json
import pathlib
import signal
import threading
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, Profile, ShapeOnly


def shapes(m: int = 24, n: int = 16, k: int = 8) -> tilewright.GemmArguments:
    return tilewright.GemmArguments(ShapeOnly((m, k), "f32"), ShapeOnly((k, n), "f32"), ShapeOnly((m, n), "f32"))


@pytest.fixture(scope="module")
def found() -> Profile:
    conv = tilewright.Conv2dArguments(
        *(np.ones(s, np.float16) for s in ((1, 6, 6, 8), (8, 3, 3, 8), (1, 4, 4, 8))), layout="nhwc"
    )
    return tilewright.profile([shapes(), shapes(40), conv], top=2)


def test_every_problem_is_verified_and_counted(found: Profile) -> None:
    assert len(found) == 3 and found.is_emulated and found.is_complete
    assert [each["operation"] for each in found] == ["gemm", "gemm", "conv2d"]
    assert found[1]["m"] == 40 and found[0]["flops"] == 2 * 24 * 16 * 8
    for problem in found:
        for kernel in problem["kernels"]:
            assert kernel["disposition"] == "passed" and kernel["times"] is None and kernel["predicted_us"] > 0


def test_formats(found: Profile, tmp_path: pathlib.Path) -> None:
    for ending in ("json", "csv", "xml", "html", "txt"):
        found.save(tmp_path / f"profile.{ending}")
        assert (tmp_path / f"profile.{ending}").stat().st_size > 100
    again = Profile.load(tmp_path / "profile.json")
    assert str(again) == str(found) and again.to_html() == found.to_html() and again.to_junit() == found.to_junit()
    assert found.to_csv().count("\n") == 1 + sum(len(each["kernels"]) for each in found)
    assert "No time in this report is measured" in found.to_html()
    assert found._repr_html_().startswith("<iframe") and repr(found) == f"<Profile of 3 problems on {found.device}>"
    with pytest.raises(InvalidArgument, match=r"path must end in one of \.csv, .* got 'x.pdf'"):
        found.save("x.pdf")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InvalidArgument, match="this is no profile: its schema is null, must be 1"):
        Profile.load(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError):
        Profile.load(tmp_path / "missing.json")


def test_products_of_ranges() -> None:
    all = tilewright.gemms(range(16, 49, 16), [8, 24], 32, dtype=np.float16, layouts="tn")
    assert [(each.m, each.n, each.k) for each in all] == [(m, n, 32) for n in (8, 24) for m in (16, 32, 48)]
    assert all[0].B.stride == (1, 32) and all[0].out.dtype == tilewright.DType.f16
    assert tilewright.gemms(4, 4, 4, batch=3)[0].batch == 3
    with pytest.raises(InvalidArgument, match="layouts must be two letters"):
        tilewright.gemms(4, 4, 4, layouts="row")


def test_progress_is_reported() -> None:
    steps: list[tuple[int, int, str]] = []
    tilewright.profile([shapes(), shapes(40)], verify=False, on_progress=lambda *step: steps.append(step))
    assert [step[:2] for step in steps] == [(1, 2), (2, 2)] and "A(40,8):f32" in steps[1][2]


def test_an_interruption_keeps_what_was_measured() -> None:
    def interrupt(done: int, all: int, problem: str) -> None:
        if done == 1:
            signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt) as raised:
        tilewright.profile([shapes(), shapes(40), shapes(56)], verify=False, on_progress=interrupt)
    kept: Any = getattr(raised.value, "profile")  # noqa: B009
    assert len(kept) == 1 and not kept.is_complete and "interrupted" in str(kept)


def test_benchmark_and_tune() -> None:
    kernel = tilewright.benchmark(shapes())
    assert kernel["disposition"] == "passed" and kernel["times"] is None
    report = tilewright.tune(shapes(), top=2, verify_only=True)
    assert [each["status"] for each in report["candidates"]] == ["sound", "sound"] and json.dumps(report)
    with pytest.raises(tilewright.Error, match="tune on a GPU"):
        tilewright.tune(shapes())


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"problems\[1\] must be the arguments of an operation, .* got ndarray"):
        tilewright.profile([shapes(), np.ones(3)])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="problems is empty"):
        tilewright.profile([])
    with pytest.raises(TypeError, match="seconds must be a number, got '1'"):
        tilewright.profile(shapes(), seconds="1")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a profile needs at least 1 kernel, got 0"):
        tilewright.profile(shapes(), top=0)
