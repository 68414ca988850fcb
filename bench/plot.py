#!/usr/bin/env python3
"""Draws and tabulates the results of tilewright_bench: a suite with classes, epilogues, or random problems. Standard
library only.

  bench/plot.py RESULT.json --svg PICTURE.svg [--beside OTHER.json ...]   ratio to cuBLASLt of every case, by class
  bench/plot.py RESULT.json --table [--beside OTHER.json ...]             Markdown tables to stdout: classes and cases;
                                                                          epilogues, each on each shape, and times;
                                                                          random problems by group and class, the worst,
                                                                          and those without a ratio
  bench/plot.py RESULT.json --summary                                     only the table of classes, epilogues or groups
  bench/plot.py --update DOCUMENT.md                                      rewrites the tables of a document

A file given by --beside has one more contender for cases of the same ids: {"contender": "triton", "problems": [{"id":
..., "rows": [{"contender": "triton", "ratio_to_cublaslt": ...}]}]}; with "quoted": true its figures are marked as such.
In a document, a table stands between `<!-- bench/plot.py RESULT.json --table ... -->` and `<!-- end of table -->`.
"""

import argparse
import html
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Other:
    """Another contender, read from a JSON file: its ratio to cuBLASLt by case."""

    def __init__(self, path):
        content = json.loads(pathlib.Path(path).read_text())
        self.name = content["contender"]
        self.title = self.name + (" (quoted)" if content.get("quoted") else "")
        self.ratios = {}
        for problem in content["problems"]:
            row = find_row(problem, self.name)
            if row and row.get("ratio_to_cublaslt"):
                self.ratios[problem["id"]] = row["ratio_to_cublaslt"]


class Results:
    """The cases of a run by class, in the order of its list of classes."""

    def __init__(self, path):
        self.content = json.loads(pathlib.Path(path).read_text())
        self.scores = self.content["classes"] + [self.content["suite"]]
        self.classes = [
            (score, [problem for problem in self.content["problems"] if problem["class"] == score["name"]])
            for score in self.content["classes"]
        ]
        self.epilogues = self.content.get("epilogues", [])
        self.random = self.content.get("random")
        self.of_epilogue = {
            score["name"]: [problem for problem in self.content["problems"] if problem.get("epilogue") == score["name"]]
            for score in self.epilogues
        }


def find_row(problem, contender):
    return next((row for row in problem["rows"] if row["contender"] == contender and row.get("right", True)), None)


def best_ratio(problem):
    """The ratio of our best measured kernel; None if no other kernel was measured."""
    row = find_row(problem, "tilewright_best")
    return row and row.get("ratio_to_cublaslt")


# The picture.

LABELS, PLOT, RIGHT = 330, 520, 20  # widths: names, the plot, the margin
LINE, HEADER, TOP, BOTTOM = 16, 26, 66, 34
TICKS = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8]
OTHER_MARKS = ["triangle", "square"]
STYLE = """
svg{background:#ffffff}
text{font:11px "DejaVu Sans",Verdana,sans-serif;fill:#1f2937}
.title{font-size:14px;font-weight:bold}.class{font-weight:bold}.note,.problem{fill:#6b7280}
.mean{font-weight:bold;text-anchor:end}.missing{fill:#b45309}.tick{fill:#6b7280;text-anchor:middle}
.grid{stroke:#e5e7eb}.target{stroke:#9ca3af;stroke-dasharray:3 3}.one{stroke:#111827;stroke-width:1.5}
.ours{fill:#1d4ed8}.best{fill:none;stroke:#1d4ed8}.other{fill:none;stroke:#b91c1c;stroke-width:1.3}
@media (prefers-color-scheme:dark){
svg{background:#0d1117}text{fill:#e6edf3}.note,.problem,.tick{fill:#9198a1}.missing{fill:#f0a04b}
.grid{stroke:#262c36}.target{stroke:#6b7280}.one{stroke:#e6edf3}
.ours{fill:#6ea8fe}.best{stroke:#6ea8fe}.other{stroke:#ff8f87}}
"""


class Axis:
    """A logarithmic axis for ratios, wide enough for all of them and for 0.8 to 1.25."""

    def __init__(self, ratios):
        self.low = min([0.8, *ratios]) * 0.96
        self.high = max([1.25, *ratios]) * 1.04

    def x(self, ratio):
        return LABELS + PLOT * math.log(ratio / self.low) / math.log(self.high / self.low)

    def ticks(self):
        return [tick for tick in TICKS if self.low <= tick <= self.high]


def mark(shape, x, y, style):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{style}"/>'
    if shape == "ring":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" class="{style}"/>'
    if shape == "triangle":
        return f'<path d="M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z" class="{style}"/>'
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z" class="{style}"/>'


def text(x, y, content, style):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{html.escape(content)}</text>'


def vertical(x, top, bottom, style):
    return f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" class="{style}"/>'


def shorten(content, most):
    return content if len(content) <= most else content[: most - 3] + "..."


def draw_case(problem, others, axis, y):
    ratio = problem.get("ratio_to_cublaslt")
    hover = f"{problem['id']}, {problem['title']}: " + (f"{ratio:.3f}" if ratio else f"missing, {problem['missing']}")
    parts = [f'<g id="case-{html.escape(problem["id"])}"><title>{html.escape(hover)}</title>']
    parts.append(text(10, y + 4, problem["id"], ""))
    parts.append(text(98, y + 4, shorten(problem["title"], 40), "problem"))
    for shape, other in zip(OTHER_MARKS, others):
        if problem["id"] in other.ratios:
            parts.append(mark(shape, axis.x(other.ratios[problem["id"]]), y, "other"))
    if ratio:
        if best_ratio(problem):
            parts.append(mark("ring", axis.x(best_ratio(problem)), y, "best"))
        parts.append(mark("circle", axis.x(ratio), y, "ours"))
    else:
        parts.append(text(LABELS + 4, y + 4, "missing: " + shorten(problem["missing"], 70), "missing"))
    return [*parts, "</g>"]


def draw_class(score, problems, others, axis, y):
    mean = f"mean {score['geomean']:.3f}" if score["geomean"] else "no mean"
    parts = [
        text(10, y + 18, score["title"], "class"),
        text(LABELS + PLOT, y + 18, f"{mean}, target {score['target_geomean']:.2f}", "mean"),
    ]
    bottom = y + HEADER + LINE * len(problems)
    if score["target_min"]:
        parts.append(vertical(axis.x(max(score["target_min"], axis.low)), y + 20, bottom, "target"))
    for number, problem in enumerate(problems):
        parts += draw_case(problem, others, axis, y + HEADER + LINE * (number + 0.5))
    return parts, bottom


def legend(others):
    """(shape, style, title) of each kind of mark in the legend."""
    marks = [("circle", "ours", "our ranked choice"), ("ring", "best", "our best measured")]
    return marks + [(shape, "other", other.title) for shape, other in zip(OTHER_MARKS, others)]


def draw(results, others):
    problems = [problem for _, members in results.classes for problem in members]
    drawn = {problem["id"] for problem in problems}
    ratios = [problem.get("ratio_to_cublaslt") for problem in problems] + [best_ratio(problem) for problem in problems]
    ratios += [ratio for other in others for case, ratio in other.ratios.items() if case in drawn]
    axis = Axis([ratio for ratio in ratios if ratio])
    height = TOP + BOTTOM + sum(HEADER + LINE * len(members) for _, members in results.classes)
    width = LABELS + PLOT + RIGHT
    bottom = height - BOTTOM
    setting = results.content["setting"]
    title = "Speed in units of cuBLASLt's heuristic choice"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        text(10, 22, title, "title"),
        text(10, 40, f"{setting['gpu']}, {setting['date'][:10]}, cuBLASLt {setting['cublaslt'].split(' ')[0]}", "note"),
    ]
    x = LABELS
    for shape, style, name in legend(others):
        parts += [mark(shape, x, 36, style), text(x + 10, 40, name, "note")]
        x += 28 + 6.5 * len(name)
    parts.append(text(LABELS - 5, 54, "dashed: target for every case; mean: geometric", "note"))
    for tick in axis.ticks():
        parts.append(vertical(axis.x(tick), TOP, bottom, "one" if tick == 1 else "grid"))
        parts.append(text(axis.x(tick), bottom + 16, f"{tick:g}", "tick"))
    y = TOP
    for score, members in results.classes:
        drawn_class, y = draw_class(score, members, others, axis, y)
        parts += drawn_class
    return "\n".join([*parts, "</svg>", ""])


# The tables.


def figure(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def score_line(score):
    def with_case(value, case):
        return "-" if value is None else f"{value:.3f} ({case})"

    return [
        score["title"],
        str(score["cases"]),
        str(score["missing"]),
        figure(score["geomean"]),
        figure(score["target_geomean"], 2),
        with_case(score["min"], score["min_id"]),
        figure(score["target_min"], 2),
        figure(score["geomean_to_best"]),
        figure(score["mean_regret"]),
        with_case(score["max_regret"], score["max_regret_id"]),
        "yes" if score["met"] else "**no**",
    ]


def rate(problem, contender):
    row = find_row(problem, contender)
    return figure(row["tera_ops"], 1) if row else "-"


def short_kernel(name):
    """Abbreviates a kernel's name: "sm90 128x256x64 s4"."""
    parts = re.match(r"([a-z0-9]+)_gemm_.*?_(\d+x\d+x\d+)_(s\d+)", name)
    return " ".join(parts.groups()) if parts else name


def case_line(problem, others):
    ours = find_row(problem, "tilewright")
    kernel = short_kernel(ours["detail"]) if ours else ""
    if problem["missing"]:
        kernel = "missing: " + html.escape(problem["missing"]).replace("|", "/")
    return [
        problem["id"],
        problem["title"],
        rate(problem, "cublaslt"),
        rate(problem, "cublaslt_best"),
        rate(problem, "tilewright"),
        figure(problem.get("ratio_to_cublaslt")) + (" (its fastest correct)" if problem.get("substituted") else ""),
        figure(problem.get("ratio_to_cublaslt_best")),
        figure(problem["regret"]),
        *(figure(other.ratios.get(problem["id"])) for other in others),
        kernel,
    ]


EPILOGUE_RATIOS = {
    "overhead": "ours / our plain GEMM",
    "ratio_to_fused": "cuBLASLt fused / ours",
    "ratio_to_fused_best": "its best / ours",
    "ratio_to_separate": "cuBLASLt and a kernel / ours",
    "ratio_to_separate_best": "its best / ours",
}


def epilogue_line(score):
    return [
        score["name"],
        f"`{score['text']}`",
        str(score["cases"]),
        str(score["missing"]),
        *(figure(score["geomean"][ratio]) for ratio in EPILOGUE_RATIOS),
    ]


def shape(problem):
    return problem["id"].removesuffix("-" + problem["epilogue"])


def epilogue_on_shape(problems, wanted):
    """A cell: overhead / ratio to cuBLASLt's fused epilogue / ratio to its plain GEMM followed by a kernel."""
    for problem in problems:
        if shape(problem) == wanted:
            return "missing" if problem["missing"] else " / ".join(
                figure(problem[ratio]) for ratio in ["overhead", "ratio_to_fused", "ratio_to_separate"]
            )  # fmt: skip
    return ""


def median(problem, contender):
    row = find_row(problem, contender)
    return figure(row["median_us"], 1) if row else "-"


EPILOGUE_CONTENDERS = {
    "tilewright_plain": "ours, plain",
    "tilewright": "ours",
    "cublaslt_plain": "cuBLASLt, plain",
    "cublaslt_fused": "cuBLASLt fused",
    "cublaslt_fused_best": "its best",
    "cublaslt_separate": "cuBLASLt and a kernel",
    "cublaslt_separate_best": "its best",
}


def epilogue_tables(results):
    problems = [problem for score in results.epilogues for problem in results.of_epilogue[score["name"]]]
    shapes = list(dict.fromkeys(shape(problem) for problem in problems))
    means = markdown(
        ["epilogue", "text", "cases", "missing", *EPILOGUE_RATIOS.values()],
        map(epilogue_line, results.epilogues),
    )
    by_shape = markdown(
        ["epilogue", *shapes],
        ([name] + [epilogue_on_shape(members, wanted) for wanted in shapes]
         for name, members in results.of_epilogue.items()),
    )  # fmt: skip
    times = markdown(
        ["case", "problem", *(f"{title}, us" for title in EPILOGUE_CONTENDERS.values())],
        ([problem["id"], problem["title"], *(median(problem, contender) for contender in EPILOGUE_CONTENDERS)]
         for problem in problems),
    )  # fmt: skip
    return [means, by_shape, times]


# A member of a score of random problems, the title of its column, and the sign of its target.
RANDOM_COLUMNS = [
    ("geomean", "geomean", ">="),
    ("fifth_percentile", "5th percentile", ">="),
    ("min", "least", ">="),
    ("mean_regret", "mean regret", "<="),
    ("percentile_95_of_regret", "95th percentile of regret", "<="),
]
WORST = 10


def random_score_line(score):
    def with_target(member, sign):
        case = f" ({score['min_id']})" if member == "min" and score["min"] is not None else ""
        target = score["targets"][member]
        return figure(score[member]) + case + ("" if target is None else f", {sign} {target:.2f}")

    columns = [with_target(member, sign) for member, _, sign in RANDOM_COLUMNS]
    shares = [f"{100 * score[share]:.1f} %" for share in ("share_below_09", "share_below_08")]
    return [score["title"], str(score["cases"]), str(score["missing"]), str(score["substituted"]), *columns[:3], *shares,
            *columns[3:]]  # fmt: skip


def random_worst_line(case):
    return [
        case["id"],
        case["class"],
        case["title"],
        figure(case["ratio"]),
        figure(case["ours_us"], 1),
        short_kernel(case["kernel"]),
        figure(case["cublaslt_us"], 1),
        case["algorithm"],
    ]


def random_remarks(case):
    remarks = {
        "missing": "missing: ",
        "substituted": "cuBLASLt's choice is wrong, the ratio is to its fastest correct algorithm: ",
        "wrong_kernels": "wrong kernels: ",
    }
    return "; ".join(text + case[key] for key, text in remarks.items() if case[key])


def random_remark_line(case):
    remark = html.escape(random_remarks(case), quote=False).replace("|", "/").replace("\n", " ")
    return [case["id"], case["class"], case["title"], figure(case.get("ratio")), remark]


def random_tables(random):
    """Random problems: groups with targets, classes, the smallest ratios, and the cases that need a remark."""
    titles = [title for _, title, _ in RANDOM_COLUMNS]
    header = ["cases", "missing", "replaced", *titles[:3], "below 0.9", "below 0.8", *titles[3:]]
    groups = markdown(
        ["group", *header, "met"],
        ([*random_score_line(score), "yes" if score["met"] else "**no**"] for score in random["groups"]),
    )
    classes = markdown(["class", *header], map(random_score_line, random["classes"]))
    judged = sorted((case for case in random["cases"] if not case["missing"]), key=lambda case: case["ratio"])
    worst = markdown(
        ["case", "class", "problem", "ratio", "ours, us", "kernel", "cuBLASLt, us", "algorithm"],
        map(random_worst_line, judged[:WORST]),
    )
    remarkable = [case for case in random["cases"] if random_remarks(case)]
    remarks = markdown(["case", "class", "problem", "ratio", "remark"], map(random_remark_line, remarkable))
    return [groups, classes, worst] + ([remarks] if remarkable else [])


def tables(results, others, is_summary):
    """All tables, or for a summary only the first of each kind, which has one row per class, epilogue or group."""
    if results.random:
        return "\n".join(random_tables(results.random)[: 1 if is_summary else None])
    kinds = [class_tables(results, others)] if results.classes or not results.epilogues else []
    kinds += [epilogue_tables(results)] if results.epilogues else []
    return "\n".join(table for kind in kinds for table in (kind[:1] if is_summary else kind))


def class_tables(results, others):
    scores = markdown(
        ["class", "cases", "missing", "geomean", "target", "worst", "target", "geomean to its best", "mean regret",
         "largest regret", "met"],
        map(score_line, results.scores),
    )
    cases = markdown(
        ["case", "problem", "cuBLASLt Top/s", "its best", "ours Top/s", "ratio", "to its best", "regret",
         *(f"{other.title}, ratio" for other in others), "kernel"],
        (case_line(problem, others) for _, members in results.classes for problem in members),
    )  # fmt: skip
    return [scores, cases]


TABLE = re.compile(r"(<!-- bench/plot\.py (.*?) -->\n).*?(<!-- end of table -->)", re.S)


def updated(document):
    """The document with each table replaced by the output of its command; paths are relative to the repository."""

    def table(match):
        arguments = parse(match[2].split())
        results, others = read(arguments, ROOT)
        return f"{match[1]}\n{tables(results, others, arguments.summary)}\n{match[3]}"

    return TABLE.sub(table, document)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", nargs="?", help="JSON file that tilewright_bench wrote")
    parser.add_argument("--svg", help="draw the picture to this file")
    parser.add_argument("--table", action="store_true", help="print Markdown tables")
    parser.add_argument("--summary", action="store_true", help="print only the table of classes, epilogues or groups")
    parser.add_argument("--beside", action="append", default=[], help="JSON file of another contender; repeatable")
    parser.add_argument("--update", help="rewrite the tables of this Markdown document")
    options = parser.parse_args(arguments)
    if not options.update and not (options.result and (options.svg or options.table or options.summary)):
        parser.error("give a result with --svg, --table or --summary, or --update DOCUMENT")
    if len(options.beside) > len(OTHER_MARKS):
        parser.error(f"--beside may be given at most {len(OTHER_MARKS)} times, got {len(options.beside)}")
    return options


def read(options, folder):
    return Results(folder / options.result), [Other(folder / path) for path in options.beside]


def main():
    options = parse(sys.argv[1:])
    if options.update:
        document = pathlib.Path(options.update)
        document.write_text(updated(document.read_text()))
        return
    results, others = read(options, pathlib.Path())
    if options.svg:
        pathlib.Path(options.svg).write_text(draw(results, others))
    if options.table or options.summary:
        sys.stdout.write(tables(results, others, options.summary))


if __name__ == "__main__":
    main()
