"""bench/plot.py on a small invented run: the picture, the tables, and the tables in documents."""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
RESULT, TRITON = FIXTURES / "result.json", FIXTURES / "triton.json"
EPILOGUES = FIXTURES / "epilogues.json"
RANDOM = FIXTURES / "random.json"
QUOTED = ROOT / "bench/results/fast_cu_quoted.json"
SVG = "{http://www.w3.org/2000/svg}"

sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import plot  # noqa: E402


def run(*arguments):
    command = [sys.executable, "-B", str(ROOT / "bench/plot.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def draw(folder, *beside):
    options = [argument for path in beside for argument in ("--beside", path)]
    finished = run(RESULT, "--svg", folder / "picture.svg", *options)
    assert finished.returncode == 0, finished.stderr
    return (folder / "picture.svg").read_text()


def groups(picture):
    root = xml.etree.ElementTree.fromstring(picture)
    assert root.tag == SVG + "svg"
    return {group.get("id"): group for group in root.iter(SVG + "g")}


def marks(group, style):
    return [mark for mark in group if mark.get("class") == style]


def test_picture_holds_each_case_that_has_a_class(tmp_path):
    assert list(groups(draw(tmp_path))) == ["case-G03-TN", "case-G04-TN", "case-B01-TN"]


def test_marks_are_at_the_positions_of_their_ratios(tmp_path):
    drawn = groups(draw(tmp_path))
    axis = plot.Axis([1.25, 0.8, 1.25, 1.0])
    assert [float(mark.get("cx")) for mark in marks(drawn["case-G04-TN"], "ours")] == [round(axis.x(0.8), 1)]
    assert [float(mark.get("cx")) for mark in marks(drawn["case-G04-TN"], "best")] == [round(axis.x(1.0), 1)]
    assert axis.x(axis.low) == plot.LABELS
    assert round(axis.x(axis.high), 6) == plot.LABELS + plot.PLOT


def test_a_missing_case_shows_the_reason_instead_of_a_mark(tmp_path):
    group = groups(draw(tmp_path))["case-B01-TN"]
    assert marks(group, "ours") == []
    assert "missing: one call computes one product, got a batch of 8 <yet>" in [text.text for text in group]


def test_other_contenders_have_marks_for_their_figures(tmp_path):
    picture = draw(tmp_path, TRITON, QUOTED)
    drawn = groups(picture)
    assert len(marks(drawn["case-G03-TN"], "other")) == 1
    assert len(marks(drawn["case-G04-TN"], "other")) == 1
    assert marks(drawn["case-B01-TN"], "other") == []
    assert "fast.cu (quoted)" in picture


def test_picture_is_reproducible_and_has_a_dark_style(tmp_path):
    first = draw(tmp_path, TRITON)
    assert draw(tmp_path, TRITON) == first
    assert "@media (prefers-color-scheme:dark)" in first


def test_tables_hold_classes_suite_and_cases():
    lines = run(RESULT, "--table", "--beside", TRITON, "--beside", QUOTED).stdout.splitlines()
    assert lines[2] == (
        "| large aligned bf16 and f16, all layouts | 2 | 0 | 1.000 | 1.00 | 0.800 (G04-TN) | 0.95 | 0.944 | 1.125 "
        "| 1.250 (G04-TN) | **no** |"
    )
    assert lines[4].startswith("| whole suite | 3 | 1 | 1.000 | 1.12 |")
    assert lines[8] == (
        "| G03-TN | bf16 4096x4096x4096 row col row | 687.2 | 723.4 | 859.0 | 1.250 | 1.188 | 1.000 | 0.976 | - "
        "| sm90 128x256x64 s4 |"
    )
    assert lines[9].endswith("| 0.800 | 0.750 | 1.250 | - | 1.025 | sm90 128x256x64 s4 |")
    assert lines[10].endswith("| missing: one call computes one product, got a batch of 8 &lt;yet&gt; |")
    assert len(lines) == 11


def test_a_summary_is_the_first_table():
    for result in (RESULT, EPILOGUES, RANDOM):
        whole, summary = run(result, "--table").stdout, run(result, "--summary").stdout
        assert summary == whole[: whole.index("\n\n") + 1]


def test_tables_of_epilogues_hold_means_shapes_and_times():
    lines = run(EPILOGUES, "--table").stdout.splitlines()
    assert lines[2] == "| bias | `D = acc + row(bias)` | 2 | 1 | 1.100 | 1.100 | 1.100 | 1.500 | 1.400 |"
    assert lines[3] == "| quantise | `D = acc * single(scale)` | 1 | 0 | 1.020 | - | - | 1.200 | 1.200 |"
    assert lines[5] == "| epilogue | L01-TN | L02-TN | F05-TN |"
    assert lines[7] == "| bias | 1.100 / 1.100 / 1.500 | missing |  |"
    assert lines[8] == "| quantise |  |  | 1.020 / - / 1.200 |"
    assert lines[12] == (
        "| L01-TN-bias | bf16 4096x6144x4096 row col row, bias | 100.0 | 110.0 | 105.0 | 121.0 | - | 165.0 | 154.0 |"
    )
    assert len(lines) == 15


def test_tables_of_random_problems_hold_groups_classes_the_worst_and_remarks():
    groups, classes, worst, remarks = (
        table.splitlines() for table in run(RANDOM, "--table").stdout.strip("\n").split("\n\n")
    )
    assert groups[0].startswith("| group | cases | missing | replaced | geomean | 5th percentile | least | below 0.9 |")
    assert groups[2] == (
        "| all problems | 13 | 1 | 1 | 1.060 | 0.800, >= 0.93 | 0.800 (R100-011), >= 0.80 | 8.3 % | 0.0 % "
        "| 1.010, <= 1.02 | 1.050, <= 1.08 | **no** |"
    )
    assert groups[3] == (
        "| K-major rows at odd multiples of 16 bytes | 1 | 0 | 0 | 1.010, >= 1.00 | 1.010 | 1.010 (R100-001) | 0.0 % "
        "| 0.0 % | 1.000 | 1.000 | yes |"
    )
    assert classes[3] == "| s8 | 1 | 1 | 0 | - | - | - | 0.0 % | 0.0 % | - | - |"
    assert len(worst) == 2 + 10
    assert worst[2] == (
        "| R100-011 | large | bf16 12x64x64 row col row | 0.800 | 100.0 | sm90 128x256x64 s4 | 80.0 | algorithm 0 |"
    )
    assert [line.split(" | ")[0] for line in worst[3:5]] == ["| R100-010", "| R100-009"]
    assert remarks[2] == (
        "| R100-003 | large | bf16 4x64x64 row col row | 1.164 | cuBLASLt's choice is wrong, the ratio is to its fastest "
        "correct algorithm: D[2,3] is nan/inf |"
    )
    assert remarks[3].endswith("| 1.073 | wrong kernels: tilewright_best kernel y: D[0,0] is 7 |")
    assert remarks[4] == "| R100-012 | s8 | s8 1x64x64 row col row | - | missing: failed: &lt;out&gt; of memory |"
    assert len(remarks) == 5


def test_a_ratio_to_another_algorithm_than_the_heuristics_choice_is_marked(tmp_path):
    result = json.loads(RESULT.read_text())
    result["problems"][0]["substituted"] = "D[0,0] is nan"
    (tmp_path / "result.json").write_text(json.dumps(result))
    table = run(tmp_path / "result.json", "--table").stdout
    assert table.count("(its fastest correct)") == 1
    assert "| 1.250 (its fastest correct) |" in table


@pytest.mark.parametrize("result", [RESULT, RANDOM])
def test_update_rewrites_the_tables_of_a_document_and_nothing_else(tmp_path, result):
    document = tmp_path / "performance.md"
    command = f"{result.relative_to(ROOT)} --table"
    document.write_text(f"before\n<!-- bench/plot.py {command} -->\nstale\n<!-- end of table -->\nafter\n")
    assert run("--update", document).returncode == 0
    table = run(result, "--table").stdout
    assert document.read_text() == (
        f"before\n<!-- bench/plot.py {command} -->\n\n{table}\n<!-- end of table -->\nafter\n"
    )


@pytest.mark.parametrize("document", ["docs/performance.md", "docs/decisions/performance_history.md"])
def test_tables_of_documents_agree_with_the_results(document):
    text = (ROOT / document).read_text()
    assert "<!-- bench/plot.py " in text
    assert plot.updated(text) == text, f"rewrite them: bench/plot.py --update {document}"


def test_bad_command_lines_are_refused():
    assert "give a result" in run(RESULT).stderr
    assert run(RESULT).returncode == 2
