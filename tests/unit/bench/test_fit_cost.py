"""bench/fit_cost.py on invented candidates, whose times follow known rules."""

import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import fit_cost  # noqa: E402


def line(number, stages, measured, predicted, *, seed=1, name="decode", tile=(128, 128, 64), **more):
    design = {
        "target": "sm_90a",
        "op_class": "tensor_op",
        "instruction": [64, 128, 16],
        "threadblock_shape": list(tile),
        "warp_count": [8, 1, 1],
        "cluster_shape": [1, 1, 1],
        "schedule": "cooperative",
        "swaps_operands": False,
        "stages": stages,
        "raster": {"width": 1, "along": "m"},
        "split_k": 1,
        "repacks_operands": False,
    }
    of_problem = {
        "id": f"R{seed}-{number:03}",
        "class": name,
        "problem": f"id=R{seed}-{number:03} dtype=bf16 m=64 n=4096 k=4096 b=col",
        "gpu": "NVIDIA H200",
    }
    of_kernel = {
        "m": 64,
        "n": 4096,
        "k": 4096,
        "batch": 1,
        "kernel": f"sm90_gemm_s{stages}_{tile[0]}",
        "family": "sm90_gemm",
        "rank": 1,
        "estimate_us": predicted,
        "right": True,
        "median_us": measured,
        "samples": 5,
        "operands": {},
        "design": design,
    }
    return {**of_problem, **of_kernel, **more}


def failure(number, reason):
    return {**{key: line(number, 2, 1.0, 1.0)[key] for key in ("id", "class", "problem", "gpu")}, "kernel": "",
            "failure": reason}  # fmt: skip


def run(folder, lines, *arguments):
    path = folder / "candidates.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    command = [sys.executable, "-B", str(ROOT / "bench/fit_cost.py"), str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def by_stages(problems=20, seed=1):
    """The model is 10 % too low for each stage more, and therefore chooses 4 stages where 2 are best."""
    lines = []
    for number in range(problems):
        base = 10.0 + number
        for stages in (2, 3, 4):
            predicted = base * (1 - 0.01 * stages)
            lines.append(line(number, stages, predicted * 1.1**stages, predicted, seed=seed))
    return lines


def test_regret_and_error_are_of_the_prediction(tmp_path):
    finished = run(tmp_path, by_stages())
    assert finished.returncode == 0, finished.stderr
    row = next(text.split() for text in finished.stdout.splitlines() if text.startswith("decode "))
    regret = 0.96 * 1.1**4 / (0.98 * 1.1**2)
    assert row[:3] == ["decode", "20", "60"]
    assert row[3:5] == [f"{100 * (1.1**3 - 1):.1f}", "%"]
    assert row[-6:] == [f"{100 * (regret - 1):.1f}", "%"] * 3
    assert row[-7] == "-1.00"
    assert next(text for text in finished.stdout.splitlines() if text.startswith("all ")).split()[1:] == row[1:]


def test_residuals_name_the_feature_that_the_model_lacks(tmp_path):
    output = run(tmp_path, by_stages()).stdout
    slope = next(text.split() for text in output.splitlines() if re.match(r"stages +10\.0 %", text))
    assert slope[-1] == "+1.00"
    assert re.search(r"stages = 4 +20 +10\.0 %", output)
    assert re.search(r"stages = 2 +20 +-9\.1 %", output)
    assert "tile = 128x128x64" not in output  # all candidates have it
    assert "(5 folds): mean regret 0.0 %, 95th percentile 0.0 %. Without: 18.5 %, 18.5 %" in output


def test_the_largest_regret_names_both_kernels(tmp_path):
    lines = by_stages(2) + [line(7, 2, 30.0, 10.0), line(7, 3, 10.0, 11.0)]
    output = run(tmp_path, lines, "--worst", "1").stdout
    assert "200.0 %  decode  id=R1-007 dtype=bf16 m=64 n=4096 k=4096 b=col\n" in output
    assert re.search(r"measured +30\.00 us, predicted +10\.00 us  sm90_gemm_s2_128\n"
                     r" +measured +10\.00 us, predicted +11\.00 us  sm90_gemm_s3_128\n", output)  # fmt: skip
    assert output.count("    measured ") == 2


def test_candidates_that_cannot_be_used_are_counted(tmp_path):
    wrong = line(0, 5, None, 10.0, right=False)
    lines = [*by_stages(3), wrong, line(0, 6, 10.0, None), failure(9, "out of memory")]
    output = run(tmp_path, lines).stdout
    assert "1 candidates with a wrong result, 1 without a prediction." in output
    assert "failed: id=R1-009 dtype=bf16 m=64 n=4096 k=4096 b=col: out of memory" in output


def test_classes_and_families_restrict_the_report(tmp_path):
    lines = by_stages(3) + [line(5, stages, 10.0, 10.0 + stages, name="large") for stages in (2, 3)]
    lines += [line(6, stages, 10.0, 10.0, name="f32", family="simt_gemm") for stages in (2, 3)]
    assert "decode " not in run(tmp_path, lines, "--classes", "large").stdout
    assert "\nf32 " not in run(tmp_path, lines, "--families", "sm90_gemm").stdout
    assert "\nf32 " in run(tmp_path, lines, "--families", "simt_gemm").stdout


def test_problems_of_judging_seeds_are_only_reported(tmp_path):
    refused = run(tmp_path, by_stages(seed=100))
    assert refused.returncode == 1
    assert "R100-000 is of a seed for judging" in refused.stderr
    reported = run(tmp_path, by_stages(seed=100), "--judging").stdout
    assert "mean regret" in reported
    assert "Residuals against numbers" not in reported
    assert run(tmp_path, by_stages(seed=99)).returncode == 0


def test_the_first_judging_seed_is_that_of_the_benchmark():
    header = (ROOT / "bench/random_problems.hpp").read_text()
    assert f"kFirstJudgingSeed = {fit_cost.FIRST_JUDGING_SEED};" in header
    first = fit_cost.FIRST_JUDGING_SEED
    guide = (ROOT / "bench/README.md").read_text()
    assert f"Seeds 1 to {first - 1} are for fitting the cost model, seeds from {first} on for judging it." in guide


def test_unusable_files_are_refused(tmp_path):
    assert "no problem has two candidates" in run(tmp_path, [line(0, 2, 1.0, 1.0)]).stderr
    path = tmp_path / "broken.jsonl"
    for text in ("{broken", "{}"):
        path.write_text(json.dumps(line(0, 2, 1.0, 1.0)) + "\n" + text + "\n")
        command = [sys.executable, "-B", str(ROOT / "bench/fit_cost.py"), str(path)]
        assert f"{path}:2: not a line of --dump-candidates" in subprocess.run(command, capture_output=True, text=True).stderr


def test_the_percentile_is_that_of_the_report():
    values = [float(value) for value in range(20, 0, -1)]
    assert fit_cost.percentile(values, 5) == 1
    assert fit_cost.percentile(values, 95) == 19
    assert fit_cost.percentile([7.0], 95) == 7
    assert math.isclose(fit_cost.rank_correlation(problem_of(by_stages(1))), -1.0)


def problem_of(lines):
    problem = fit_cost.Problem(lines[0])
    for one in lines:
        problem.add(one)
    return problem
