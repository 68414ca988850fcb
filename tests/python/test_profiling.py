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
from tilewright import InvalidArgument, Profile, ShapeOnly, peers


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


def test_the_emulator_counts_what_was_executed(found: Profile) -> None:
    for problem in found:
        for kernel in problem["kernels"]:
            counts = kernel["counts"]
            total, kinds, lines = counts["total"], counts["instructions"], counts["lines"]
            assert total["instructions"] > 50 and kernel["ctas_per_sm"] >= 1
            for field, count in total.items():
                assert sum(kind.get(field, 0) for kind in kinds) == count
                assert sum(line.get(field, 0) for line in lines) == count
            assert total.get("global_bytes", 0) <= 32 * total.get("global_sectors", 0)
            assert total.get("global_bytes", 0) + total.get("bulk_load_bytes", 0) >= problem["bytes"] / 2
            assert 0 < kernel["occupancy"] <= 1
    header, first = (line.split(",")[-9:] for line in found.to_csv().splitlines()[:2])
    assert header[0] == "emulated_instructions"
    assert int(first[0]) == found[0]["kernels"][0]["counts"]["total"]["instructions"]
    assert "Counted on the emulator" in found.to_html()
    unverified = tilewright.profile(shapes(), verify=False)
    assert unverified[0]["kernels"][0]["counts"] is None and "Counted on" not in unverified.to_html()


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


def test_absent_peers_are_named_with_the_reason(tmp_path: pathlib.Path) -> None:
    found = tilewright.profile([shapes(), shapes(40)], peers=("torch", "cublaslt", "cudnn"))
    for problem in found:
        assert [each["peer"] for each in problem["peers"]] == ["torch", "cublaslt", "cudnn"]
        for each in problem["peers"]:
            assert each["disposition"] == "not_run" and each["times"] is None
            assert each["reason"].startswith("PyTorch is not installed") or "no GPU" in each["reason"]
    reason = found[0]["peers"][0]["reason"]
    assert str(found).count(f"peer torch: {reason}") == 2
    assert found.to_csv().count(",peer cublaslt,") == 2
    assert found.to_junit().count(f'name="peer cudnn" time="0.000000000"><skipped message="{reason}"/>') == 2
    assert found.to_html().count(reason) == 6 and '<table id="peers"' in found.to_html()
    found.save(tmp_path / "profile.json")
    assert Profile.load(tmp_path / "profile.json").to_csv() == found.to_csv()


def test_a_timed_peer_has_a_ratio(found: Profile) -> None:
    report = json.loads(found.to_json())
    times = {"samples": 9, "median_us": 20.0, "p05_us": 19.0, "p95_us": 22.0, "tflops": 1.0, "gbytes_per_s": 2.0}
    peer = {"peer": "torch", "disposition": "passed", "reason": "", "times": times, "own_median_us": 16.0, "ratio": 1.25}
    report["problems"][0]["peers"] = [peer]
    profile = Profile(report)
    assert "20.00" in str(profile) and "peer torch: 1.250 times the time of Tilewright" in str(profile)
    assert profile.to_csv().count(",peer torch,,,passed,") == 1
    report["problems"][1]["peers"] = [{**peer, "ratio": 0.8}]
    by_class = Profile(report).to_html().partition('id="peer_classes"')[2].partition("</table>")[0]
    assert ">gemm f32</td>" in by_class and ">2</td>" in by_class  # two problems
    assert ">1.000</td>" in by_class and ">0.800</td>" in by_class  # the geometric mean, and the worst
    assert 'name="peer torch" time="0.000020000"' in profile.to_junit() and ">1.250<" in profile.to_html()


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


def tensor(*shape: int) -> dict[str, Any]:
    return {"shape": shape, "dtype": "f16", "stride": tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))}


GEMM = {"A": tensor(6, 8), "B": tensor(8, 4), "out": tensor(6, 4)}
DESCRIBED: dict[str, dict[str, Any]] = {
    "gemm": GEMM,
    "contraction": {**GEMM, "expression": "ak,kb->ab"},
    "grouped_gemm": {**GEMM, "B": tensor(2, 8, 4), "mode": "ragged_m", "groups": 2},
    "conv2d": {
        **{"x": tensor(1, 6, 6, 8), "w": tensor(4, 3, 3, 8), "y": tensor(1, 3, 3, 4), "kind": "wgrad"},
        **{"stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "mode": "cross_correlation"},
    },
}  # as the command describes problems to tilewright.peers, in tests/cli/peers_test.cpp too


@pytest.mark.parametrize("operation", DESCRIBED)
def test_problems_that_the_command_describes(operation: str) -> None:
    common = {"operation": operation, "accumulator_type": "f32", "math": "multiply_add", "is_plain": True}
    args = peers._described_arguments({**DESCRIBED[operation], **common})
    assert args.operation == operation
    result = args.y if operation == "conv2d" else args.out  # type: ignore[attr-defined]
    assert tuple(result.shape) == DESCRIBED[operation]["y" if operation == "conv2d" else "out"]["shape"]
    (entry,) = peers.compare_described({**DESCRIBED[operation], **common, "is_plain": False}, ["torch"], 0.1)
    assert (entry["disposition"], entry["reason"]) == ("not_run", peers._NOT_PLAIN)


def test_the_command_calls_the_module(tmp_path: pathlib.Path) -> None:
    asked = {"peers": ["torch", "cudnn"], "seconds": 0.1, "problems": [{"operation": "reduce_split_k"}]}
    (tmp_path / "question").write_text(json.dumps(asked))
    peers._main(str(tmp_path / "question"), str(tmp_path / "answer"))
    (entries,) = json.loads((tmp_path / "answer").read_text())
    assert [each["reason"] for each in entries] == ["the peers have no reduce_split_k"] * 2


def test_benchmark_and_tune() -> None:
    kernel = tilewright.benchmark(shapes())
    assert kernel["disposition"] == "passed" and kernel["times"] is None
    report = tilewright.tune(shapes(), top=2, verify_only=True)
    assert [each["status"] for each in report["candidates"]] == ["sound", "sound"] and json.dumps(report)
    with pytest.raises(tilewright.Error, match="tune on a GPU"):
        tilewright.tune(shapes())


SOURCE = """
extern "C" __global__ void add_up(const float* a, const float* b, float* out, int n, int k) {
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[blockIdx.x * k + i] * b[i * n + threadIdx.x];
  out[blockIdx.x * n + threadIdx.x] = sum;
}"""


class AddUp(tilewright.Kernel):
    @staticmethod
    def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[AddUp]:
        row = tilewright.TensorAttributes("float32", "row")
        operands = tilewright.GemmOperandsMetadata(row, row, row, "float32")
        return [AddUp(tilewright.KernelMetadata("add_up", AddUp, operands))]

    def _source(self) -> str:
        return SOURCE

    def _launch(self, args: Any) -> tilewright.Launch:
        return tilewright.Launch(
            args.m, args.n, [args.A, args.B, args.out, tilewright.i32(args.n), tilewright.i32(args.k)]
        )


def test_a_kernel_of_ones_own_beside_a_family() -> None:
    tilewright.register(AddUp)
    try:
        (problem,) = tilewright.profile(shapes(), providers=["simt_gemm", "AddUp", "simt_gemm"])
        builtin, mine = problem["kernels"]
        assert (builtin["provider"], mine["provider"]) == ("simt_gemm", "AddUp")
        assert mine["kernel"] == "add_up" and mine["disposition"] == "passed" and mine["counts"]
        # Its author states no design, so that none is shown.
        assert mine["design"] == "" and mine["tile"] == [0, 0, 0] and mine["l2_bytes"] is None
        assert builtin["design"] and builtin["l2_bytes"] > 0
        assert tilewright.benchmark(shapes(), providers=["AddUp"])["kernel"] == "add_up"
        report = str(tilewright.explain(shapes()))
        assert report.partition("add_up")[2].splitlines()[1].endswith(" refused")
    finally:
        tilewright.unregister(AddUp)
    with pytest.raises(InvalidArgument, match="unknown provider 'AddUp': the registered ones are "):
        tilewright.profile(shapes(), providers=["AddUp"])
    with pytest.raises(InvalidArgument, match="no kernel of stem_conv can compute gemm A"):
        tilewright.benchmark(shapes(), providers=["stem_conv"])


def test_operations_of_every_kind() -> None:
    gemm = tilewright.GemmArguments(*(np.ones(s, np.float16) for s in ((16, 96), (96, 24), (16, 24))))
    gemms, reduction = tilewright.split_k(gemm, 4, np.empty(tilewright.split_k_workspace(gemm, 4)[0], np.float32))
    lists = [[np.ones(s, np.float32) for s in ((9, 8), (5, 8))], [np.ones((8, 7), np.float32)] * 2]
    outputs = [np.empty(s, np.float32) for s in ((9, 7), (5, 7))]
    problems = [
        *gemms,
        reduction,
        tilewright.ContractionArguments("abk,kc->abc", *(np.ones(s, np.float32) for s in ((2, 3, 4), (4, 5), (2, 3, 5)))),
        tilewright.GroupedGemmArguments(*lists, outputs),
    ]
    packed = tilewright.pack_weights(np.ones((64, 256), np.int8), np.ones((2, 64), np.float16), "s4", group=128)
    if tilewright.device_target() == "sm_90a":
        problems.append(packed.arguments(np.ones((3, 256), np.float16), np.empty((3, 64), np.float16)))
    for problem in tilewright.profile(problems):
        assert [kernel["disposition"] for kernel in problem["kernels"]] == ["passed"], problem["problem"]


def test_all_kernels_can_be_asked_for() -> None:
    found = tilewright.profile(shapes(), top=10**30, verify=False)  # more than an int of C++ can have
    assert len(found[0]["kernels"]) == len(tilewright.find_kernels(shapes()))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"problems\[1\] must be the arguments of an operation, .* got ndarray"):
        tilewright.profile([shapes(), np.ones(3)])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="problems is empty"):
        tilewright.profile([])
    with pytest.raises(TypeError, match="seconds must be a number, got '1'"):
        tilewright.profile(shapes(), seconds="1")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="a profile needs at least 1 kernel, got 0"):
        tilewright.profile(shapes(), top=0)
