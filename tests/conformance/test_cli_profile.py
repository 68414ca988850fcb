"""The commands profile and report on the emulator; misspelt commands and options; completion; listings as JSON."""

import csv
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree

import pytest

DEVICE = ("--device", "emulator:sm_80")
SMALL = ("--m", "16:48:16", "--n", "24", "--k", "16", "--dtype", "f32", *DEVICE)


@pytest.fixture(scope="module")
def written(tilewright, tmp_path_factory):
    """The files of a profile in every format, by their ending."""
    folder = tmp_path_factory.mktemp("profile")
    endings = ("json", "csv", "xml", "html", "txt")
    outputs = [argument for ending in endings for argument in ("--output", folder / f"profile.{ending}")]
    finished = tilewright("profile", *SMALL, "--layouts", "tt,nt", "--top", 2, *outputs)
    assert finished.returncode == 0, finished.stderr
    assert "6/6" in finished.stderr.splitlines()[-1]
    texts = {ending: (folder / f"profile.{ending}").read_text() for ending in endings}
    assert texts["txt"] == finished.stdout
    return texts


def test_json_has_counts_and_no_times(written):
    profile = json.loads(written["json"])
    assert (profile["schema"], profile["is_emulated"], profile["is_complete"]) == (1, True, True)
    extents = [(problem["m"], problem["n"], problem["k"]) for problem in profile["problems"]]
    assert extents == [(16, 24, 16), (32, 24, 16), (48, 24, 16)] * 2
    for problem in profile["problems"]:
        assert problem["flops"] == 2 * problem["m"] * problem["n"] * problem["k"]
        assert len(problem["kernels"]) == 2
        for kernel in problem["kernels"]:
            assert kernel["disposition"] == "passed" and kernel["times"] is None
            assert kernel["predicted_us"] > 0 and sum(kernel["instructions"].values()) > 50
            assert kernel["counts"]["total"]["instructions"] > 50 and len(kernel["counts"]["lines"]) > 5


def test_csv_and_junit_have_all_kernels(written):
    rows = list(csv.DictReader(io.StringIO(written["csv"])))
    assert len(rows) == 12
    assert {row["disposition"] for row in rows} == {"passed"} and {row["median_us"] for row in rows} == {""}
    suite = xml.etree.ElementTree.fromstring(written["xml"])
    assert suite.attrib["tests"] == "12" and suite.attrib["failures"] == "0"
    assert len(suite.findall("testcase")) == 12


def test_the_report_is_one_file_that_says_that_nothing_is_measured(written):
    html = written["html"]
    assert "No time in this report is measured" in html
    assert html.count('<circle class="predicted"') == 6 and '<circle class="point"' not in html
    assert html.count("Counted on the emulator") == 6 and html.count('class="sortable counts"') == 12
    assert html.count("<details") == 6 and html.count('aria-label="tiles of D"') == 6
    assert re.search(r"<table id=\"worst\".*?<tbody>(<tr>.*?</tr>){6}</tbody>", html, re.DOTALL)
    assert html.count('alt="A in shared memory"') == 6 and html.count('alt="B in shared memory"') == 6
    assert not re.search(r"https?://|src=\"(?!data:)|@import|<link", html)


BROWSERS = ("chromium", "chromium-browser", "chromium-headless-shell")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_the_report_is_drawn_by_a_browser(written, tmp_path):
    (tmp_path / "report.html").write_text(written["html"])
    picture = tmp_path / "report.png"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1300,2400"]
    subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'browser'}", f"--screenshot={picture}", tmp_path / "report.html"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20000


def test_report_makes_the_same_files(tilewright, written, tmp_path):
    (tmp_path / "profile.json").write_text(written["json"])
    outputs = ("--output", "again.html", "--output", "again.csv", "--output", "again.xml")
    finished = tilewright("report", "profile.json", *outputs, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    for ending in ("html", "csv", "xml"):
        assert (tmp_path / f"again.{ending}").read_text() == written[ending]
    assert tilewright("report", "profile.json", cwd=tmp_path).stdout == written["txt"]


def test_json_is_silent(tilewright):
    finished = tilewright("profile", *SMALL, "--no-verify", "--json")
    assert (finished.returncode, finished.stderr) == (0, "")
    kernels = [problem["kernels"][0] for problem in json.loads(finished.stdout)["problems"]]
    assert [kernel["disposition"] for kernel in kernels] == ["not_verified"] * 3


def test_problems_of_files(tilewright, tmp_path):
    (tmp_path / "list.txt").write_text(
        "# a comment\ndtype=f16 m=32 n=16 k=16 b=col  # TN\n\ndtype=f32 m=8 n=8 k=8 batch=2\n"
    )
    conv = {"operation": "conv2d", "extents": {"n": 1, "h": 6, "w": 6, "c": 8, "k": 8, "r": 3, "s": 3}}
    conv["types"] = {"x": "f16", "w": "f16", "y": "f16"}
    (tmp_path / "conv.json").write_text(json.dumps(conv))
    grouped = {"operation": "grouped_gemm", "mode": "ragged_m", "sizes": [5, 0, 11]}
    grouped |= {"extents": {"m": 16, "n": 8, "k": 16}, "types": {"A": "f16", "B": "f16", "D": "f16"}}
    (tmp_path / "grouped.json").write_text(json.dumps(grouped))
    contraction = {"operation": "contraction", "expression": "ak,kbc->abc", "extents": {"a": 8, "b": 3, "c": 5, "k": 16}}
    contraction["types"] = {"A": "f32", "B": "f32", "D": "f32"}
    (tmp_path / "contraction.json").write_text(json.dumps(contraction))
    files = [each for name in ("conv", "grouped", "contraction") for each in ("--problem", f"{name}.json")]
    arguments = ("profile", "--problems", "list.txt", *files)
    listed = tilewright(*arguments, "--dry-run", cwd=tmp_path)
    assert listed.stdout.splitlines() == [
        "gemm A(32,16):f16 B(16,16):(1,16):f16 D(32,16):f16",
        "gemm A(2,8,8):f32 B(2,8,8):f32 D(2,8,8):f32",
        "conv2d fprop x(1,6,6,8):f16 w(8,3,3,8):f16 y(1,4,4,8):f16",
        "grouped_gemm ragged_m A(16,16):f16 B(3,16,8):f16 D(16,8):f16 offsets(3):s32",
        "contraction ak,kbc->abc A(8,16):f32 B(16,3,5):f32 D(8,3,5):f32",
    ]
    assert json.loads(tilewright(*arguments, "--dry-run", "--json", cwd=tmp_path).stdout) == {
        "problems": listed.stdout.splitlines()
    }
    finished = tilewright(*arguments, *DEVICE, "--json", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    dispositions = [each["kernels"][0]["disposition"] for each in json.loads(finished.stdout)["problems"]]
    assert dispositions == ["passed"] * 5


def test_ranges_of_every_operation(tilewright, tmp_path):
    gemm = {"operation": "gemm", "extents": {"m": "8:32", "n": 16, "k": "16,24"}, "types": {each: "f32" for each in "ABD"}}
    conv = {"operation": "conv2d", "extents": {"n": "1,2", "h": 6, "w": 6, "c": 8, "k": 8, "r": 3, "s": 3}}
    conv["types"] = {each: "f16" for each in "xwy"}
    contraction = {"operation": "contraction", "expression": "ak,kb->ab", "extents": {"a": "8:24:8", "b": 4, "k": 16}}
    contraction["types"] = {each: "f32" for each in "ABD"}
    grouped = {"operation": "grouped_gemm", "mode": "ragged_m", "sizes": [5, 0, 11], "types": {e: "f16" for e in "ABD"}}
    grouped["extents"] = {"m": 16, "n": "8:16", "k": 16}
    reduction = {"operation": "reduce_split_k", "extents": {"m": 8, "n": 8, "parts": "2:4:1"}}
    reduction["types"] = {"parts": "f32", "D": "f32"}
    linear = {"operation": "weight_gemm", "extents": {"tokens": "1,8", "outputs": 64, "inputs": 128}}
    linear["types"] = {"weights": "s4", "scales": "f16", "x": "f16", "out": "f16"}
    (tmp_path / "all.json").write_text(json.dumps([gemm, conv, contraction, grouped, reduction, linear]))
    arguments = ("profile", "--problem", "all.json", "--device", "emulator:sm_90a")
    listed = tilewright(*arguments, "--dry-run", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert lines[:3] == [f"gemm A({m},16):f32 B(16,16):f32 D({m},16):f32" for m in (8, 16, 32)]
    operations = [line.partition(" ")[0] for line in lines]
    counted = {each: operations.count(each) for each in dict.fromkeys(operations)}
    assert counted == {
        **{"gemm": 6, "conv2d": 2, "contraction": 3, "grouped_gemm": 2, "reduce_split_k": 3, "weight_gemm": 2}
    }
    finished = tilewright(*arguments, "--json", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    dispositions = {each["kernels"][0]["disposition"] for each in json.loads(finished.stdout)["problems"]}
    assert dispositions == {"passed"}
    gemm["extents"]["m"] = "8:4"
    (tmp_path / "all.json").write_text(json.dumps(gemm))
    says = "all.json: the extent 'm' has the range 8:4: its last value is below the first"
    assert says in refusal(tilewright(*arguments, cwd=tmp_path))


def refusal(finished):
    assert finished.returncode == 2, finished.stdout + finished.stderr
    (line,) = finished.stderr.splitlines()
    assert finished.stdout == ""
    return line.removeprefix("tilewright: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--m", "64:32", "--n", 8, "--k", 8), "--m has the range 64:32: its last value is below the first"),
        (("--m", "64", "--n", 8), "--k is missing: give --m, --n and --k"),
        ((), "give problems: --m, --n and --k, or --problems, or --problem"),
        (("--m", 8, "--n", 8, "--k", 8, "--layouts", "tx"), "--layouts takes two letters"),
        (("--m", 8, "--n", 8, "--k", 8, "--dtype", "f17"), "--dtype: unknown type 'f17'"),
        (("--m", 8, "--n", 8, "--k", 8, "--output", "x.pdf"), "'x.pdf' must end in .json, .csv, .xml"),
        (("--m", 8, "--n", 8, "--k", 8, "--top", 0), "--top"),
        (("--m", 8, "--n", 8, "--k", 8, "--seconds", 0), "the time of a profile must be above 0"),
        (("--problems", "missing.txt"), "missing.txt"),
        (("--problems", "wrong.txt"), "wrong.txt:2: 'mm=3' is none of m, n, k, batch"),
        (("--problems", "lacking.txt"), "lacking.txt:1: k=EXTENT is missing: every line needs m, n and k"),
        (("--problems", "empty.txt"), "empty.txt has no problems"),
    ],
)
def test_bad_input_is_refused(tilewright, tmp_path, arguments, says):
    (tmp_path / "wrong.txt").write_text("dtype=f32 m=1 n=1 k=1\ndtype=f32 mm=3\n")
    (tmp_path / "lacking.txt").write_text("dtype=f32 m=1 n=1\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    finished = tilewright("profile", *DEVICE, *arguments, cwd=tmp_path)
    if says == "missing.txt":
        assert finished.returncode in (2, 3) and says in finished.stderr
    else:
        assert says in refusal(finished)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "lacking.txt", "wrong.txt"]


def test_report_refuses_other_files(tilewright, tmp_path):
    (tmp_path / "x.json").write_text('{"schema": 7}')
    assert "this is no profile: its schema is 7, must be 1" in refusal(tilewright("report", "x.json", cwd=tmp_path))


def test_ctrl_c_keeps_what_was_measured(tilewright, tmp_path):
    output = tmp_path / "part.json"
    ranges = ("--m", "16:1024:16", "--n", "64", "--k", "512", "--dtype", "f32")
    process = subprocess.Popen(
        [tilewright.program, "profile", *ranges, *DEVICE, "--output", str(output)],
        env=tilewright.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        done = re.match(r"tilewright: (\d+)/64", line)
        if done and int(done[1]) >= 2:
            break
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 5  # 0.5 s on a machine that is not busy
    assert process.returncode == 130 and "interrupted" in errors
    profile = json.loads(output.read_text())
    assert not profile["is_complete"] and len(profile["problems"]) >= 2
    assert profile["problems"][0]["kernels"][0]["disposition"] == "passed"


def test_progress_is_one_line_on_a_terminal(tilewright):
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [tilewright.program, "profile", *SMALL, "--no-verify"],
        env=tilewright.environment,
        stdout=subprocess.DEVNULL,
        stderr=writer,
    )
    os.close(writer)
    shown = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(reader)
    assert process.wait(timeout=60) == 0
    assert b"\n" not in shown and b"0/3" in shown and b"3/3" in shown and shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("gem", "--m", 4), "there is no command 'gem': did you mean 'gemm'?"),
        (("proflie",), "there is no command 'proflie': did you mean 'profile'?"),
        (("multiply",), "there is no command 'multiply': the commands are gemm, conv, contract, run, find, tune, profile"),
        ((), "a command is missing: gemm, conv, contract, run"),
        (("cache",), "tilewright cache needs one of the commands ls, verify, clear, export, import"),
        (("cache", "lst"), "there is no command 'cache lst': did you mean 'ls'?"),
        (("gemm", "--dtpye", "f16"), "there is no option --dtpye: did you mean '--dtype'?"),
        (("find", "--explian"), "did you mean '--explain'?"),
        (("help",), "there is no command 'help': see tilewright --help"),
        (("cache", "help"), "there is no command 'cache help': see tilewright cache --help"),
        (("profile", "more"), "tilewright profile takes no value 'more'; see tilewright profile --help"),
        (("profile", "--unlike"), "there is no option --unlike; see tilewright profile --help"),
        (("cache", "ls", "more"), "tilewright cache ls takes no value 'more'; see tilewright cache ls --help"),
        (("report",), "profile is missing: JSON file that profile wrote; see tilewright report --help"),
        (("completion",), "shell is missing: bash, zsh or fish; see tilewright completion --help"),
        (("completion", "tcsh"), "shell must be bash, zsh or fish, got 'tcsh'"),
    ],
)
def test_misspelt_commands_and_options(tilewright, arguments, says):
    assert says in refusal(tilewright(*arguments))


def test_bash_completes(tilewright, tmp_path):
    script = tilewright("completion", "bash")
    assert script.returncode == 0
    (tmp_path / "completion.bash").write_text(script.stdout)

    def complete(*words):
        program = (
            f"source completion.bash; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
            f"COMP_CWORD={len(words) - 1}; _tilewright; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        shown = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
        return set(shown.stdout.split())

    assert complete("tilewright", "pro") == {"profile"}
    assert {"--dtype", "--device"} == complete("tilewright", "profile", "--d") - {"--deterministic", "--dry-run"}
    assert {"ls", "verify", "clear"} <= complete("tilewright", "cache", "")
    assert complete("tilewright", "cache", "ls", "--js") == {"--json"}
    assert "-l epilogue" in tilewright("completion", "fish").stdout
    assert tilewright("completion", "zsh").stdout.startswith("autoload -U +X bashcompinit")


def test_listings_as_json(tilewright):
    listed = json.loads(tilewright("cache", "ls", "--json").stdout)
    assert listed["folder"] and all({"key", "name", "target", "bytes"} <= kernel.keys() for kernel in listed["kernels"])
    assert json.loads(tilewright("cache", "verify", "--json").stdout)["damaged"] == []
    for arguments in (("env",), ("doctor",), ("tune", "--list")):
        assert json.loads(tilewright(*arguments, "--json").stdout)
    functions = json.loads(tilewright("layout", "functions", "--json").stdout)["functions"]
    shown = [line for line in tilewright("layout", "functions").stdout.splitlines() if not line.startswith(" ")]
    assert [each["signature"] for each in functions] == shown and len(shown) > 30


def test_every_help_has_an_example(tilewright):
    commands = re.findall(
        r"^  ([a-z]+) {2,}", tilewright("--help").stdout.lower().partition("subcommands:")[2], re.MULTILINE
    )
    assert len(commands) >= 14
    for command in commands:
        text = tilewright(command, "--help").stdout
        assert f"  tilewright {command} " in text or command == "emulate", command


def test_peers_need_a_gpu(tilewright):
    finished = tilewright("profile", "--m", "16", *SMALL[2:], "--peers", "torch,cublaslt", "--json")
    assert finished.returncode == 0, finished.stderr
    (problem,) = json.loads(finished.stdout)["problems"]
    assert [each["peer"] for each in problem["peers"]] == ["torch", "cublaslt"]
    assert all(each["reason"].startswith("peers need a GPU, and a Python with PyTorch") for each in problem["peers"])
    refused = tilewright("profile", *SMALL, "--peers", "cublas")
    assert refused.returncode == 2 and "--peers takes names of torch, cublaslt and cudnn, got 'cublas'" in refused.stderr
