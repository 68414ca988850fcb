#!/usr/bin/env python3
"""Compares the cost model with measured candidates (tilewright_bench --dump-candidates). Needs numpy only.

  bench/fit_cost.py CANDIDATES.jsonl [...]                  error and regret of the model by class, the problems with the
                                                            largest regret, and residuals against features
  bench/fit_cost.py CANDIDATES.jsonl --classes decode,f32   only these classes
  bench/fit_cost.py CANDIDATES.jsonl --families sm90_gemm   only kernels of these families

A residual is log(measured time / predicted time). The ranking depends only on how residuals differ between the
candidates of one problem, so residuals against features are relative to the mean of their problem: a feature with a mean
of +5 % is underestimated by 5 % against the other candidates. A regret is the measured time of the candidate with the
smallest predicted time divided by the smallest measured time of all candidates.

The model may not be fitted to problems of judging seeds (100 and above): such files are refused, unless --judging says
that they are only reported.
"""

import argparse
import json
import math
import pathlib
import re
import sys

import numpy as np

FIRST_JUDGING_SEED = 100
SMS = 132
FOLDS = 5


class Candidate:
    """One measured kernel of a problem."""

    def __init__(self, line):
        self.kernel = line["kernel"]
        self.family = line["family"]
        self.measured = line["median_us"]
        self.predicted = line["estimate_us"]
        self.design = line["design"]
        self.line = line

    @property
    def residual(self):
        return math.log(self.measured / self.predicted)


class Problem:
    """A problem with its usable candidates; the others are counted."""

    def __init__(self, line):
        self.id, self.name, self.text, self.gpu = line["id"], line["class"], line["problem"], line["gpu"]
        self.candidates, self.wrong, self.without_estimate, self.failures = [], 0, 0, []

    def add(self, line):
        if "failure" in line:
            self.failures.append(line["kernel"] + ": " + line["failure"] if line["kernel"] else line["failure"])
        elif line["median_us"] is None:
            self.wrong += 1
        elif line["estimate_us"] is None:
            self.without_estimate += 1
        else:
            self.candidates.append(Candidate(line))

    def chosen(self):
        return min(self.candidates, key=lambda one: one.predicted)

    def best(self):
        return min(self.candidates, key=lambda one: one.measured)

    def regret(self):
        return self.chosen().measured / self.best().measured


def seed_of(problem):
    """The seed of a random problem's id, as in R17-042; None for other problems."""
    match = re.fullmatch(r"R(\d+)-\d+", problem.id)
    return int(match[1]) if match else None


def read(paths, families):
    """The problems of all files, in their order; a problem may be in several files."""
    problems = {}
    for path in paths:
        for number, text in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
            try:
                line = json.loads(text)
                key = line["gpu"], line["problem"]
            except (json.JSONDecodeError, KeyError) as error:
                sys.exit(f"{path}:{number}: not a line of --dump-candidates: {error}")
            if families and line.get("family", families[0]) not in families:
                continue
            problems.setdefault(key, Problem(line)).add(line)
    return list(problems.values())


def percentile(values, percent):
    """The smallest value that is at least as large as `percent` percent of the values, as in random_score.hpp."""
    ordered = sorted(values)
    return ordered[max(math.ceil(percent * len(ordered) / 100), 1) - 1]


def rank_correlation(problem):
    """Spearman's correlation of predicted and measured times; None for fewer than three candidates."""
    if len(problem.candidates) < 3:
        return None
    ranks = [np.argsort(np.argsort([getattr(one, time) for one in problem.candidates], kind="stable"))
             for time in ("predicted", "measured")]  # fmt: skip
    return float(np.corrcoef(*ranks)[0, 1])


# The features of a candidate: numbers whose slope is estimated, and choices whose means are compared.


def tile_counts(candidate):
    line, (tile_m, tile_n, tile_k) = candidate.line, candidate.design["threadblock_shape"]
    split = candidate.design.get("split_k", 1)
    tiles = line["batch"] * math.ceil(line["m"] / tile_m) * math.ceil(line["n"] / tile_n) * split
    return tiles, math.ceil(line["k"] / tile_k / split)


def numbers(candidate):
    line, design = candidate.line, candidate.design
    tile_m, tile_n, tile_k = design["threadblock_shape"]
    tiles, steps = tile_counts(candidate)
    warps = math.prod(design["warp_count"])
    computed = math.ceil(line["m"] / tile_m) * tile_m * math.ceil(line["n"] / tile_n) * tile_n
    return {
        "log2 tile m": math.log2(tile_m),
        "log2 tile n": math.log2(tile_n),
        "log2 tile k": math.log2(tile_k),
        "log2 tile m/n": math.log2(tile_m / tile_n),
        "stages": design["stages"],
        "log2 warps": math.log2(warps),
        "log2 split-K": math.log2(design.get("split_k", 1)),
        "log2 raster width": math.log2(design["raster"]["width"]),
        "log2 cluster": math.log2(math.prod(design["cluster_shape"])),
        "log2 waves": math.log2(tiles / SMS),
        "idle share of the last wave": 1 - tiles / SMS / math.ceil(tiles / SMS),
        "log2 mainloop steps": math.log2(steps),
        "log2 computed / wanted elements": math.log2(computed / (line["m"] * line["n"])),
        "log2 bytes loaded per operation": math.log2(1 / tile_m + 1 / tile_n),
    }


def choices(candidate):
    design = candidate.design
    found = {
        "family": candidate.family,
        "instruction": "x".join(map(str, design["instruction"])),
        "tile": "x".join(map(str, design["threadblock_shape"])),
        "cluster": "x".join(map(str, design["cluster_shape"])),
        "split-K": str(design.get("split_k", 1)),
        "stages": str(design["stages"]),
        "raster": f"{design['raster']['width']} along {design['raster']['along']}",
    }
    known = {"target", "instruction", "threadblock_shape", "cluster_shape", "split_k", "stages", "raster"}
    found.update({name: str(value) for name, value in design.items() if name not in known})
    return found


def centred(problems):
    """Residuals and numbers of all candidates relative to the means of their problem, and the problem's index."""
    residuals, rows, indices = [], [], []
    for index, problem in enumerate(problems):
        of_problem = np.array([one.residual for one in problem.candidates])
        values = np.array([list(numbers(one).values()) for one in problem.candidates], dtype=float)
        residuals.append(of_problem - of_problem.mean())
        rows.append(values - values.mean(axis=0))
        indices.append(np.full(len(problem.candidates), index))
    return np.concatenate(residuals), np.concatenate(rows), np.concatenate(indices)


def slopes(residuals, values):
    """Of each column: the slope of the residual against it alone, its standard error, and the correlation."""
    found = []
    for column in values.T:
        square = float(column @ column)
        if square < 1e-12:
            found.append((0.0, math.inf, 0.0))
            continue
        slope = float(column @ residuals) / square
        rest = residuals - slope * column
        error = math.sqrt(float(rest @ rest) / max(len(column) - 2, 1) / square)
        total = float(residuals @ residuals)
        found.append((slope, error, slope * math.sqrt(square / total) if total > 0 else 0.0))
    return found


def corrected_regrets(problems):
    """The regret of each problem after a linear correction of the residuals by all numbers. The correction for a problem
    is fitted to the problems of the other folds, so that it shows what a better model may gain."""
    residuals, values, indices = centred(problems)
    scale = values.std(axis=0)
    scale[scale < 1e-9] = 1.0
    values = values / scale
    regrets = []
    for fold in range(FOLDS):
        outside = indices % FOLDS != fold
        if not outside.any() or outside.all():
            continue
        ridge = 1e-3 * outside.sum() * np.eye(values.shape[1])
        inside = values[outside]
        weights = np.linalg.solve(inside.T @ inside + ridge, inside.T @ residuals[outside])
        for index in range(fold, len(problems), FOLDS):
            candidates = problems[index].candidates
            corrected = [math.log(one.predicted) for one in candidates] + values[indices == index] @ weights
            regrets.append(candidates[int(np.argmin(corrected))].measured / problems[index].best().measured)
    return regrets


# The report.


def percent(ratio):
    return f"{100 * (ratio - 1):.1f} %"


def print_table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))))  # fmt: skip
    print()


def class_row(name, problems):
    residuals = np.array([one.residual for problem in problems for one in problem.candidates])
    spread = [np.std([one.residual for one in problem.candidates]) for problem in problems]
    regrets = [problem.regret() for problem in problems]
    correlations = [value for value in map(rank_correlation, problems) if value is not None]
    return [
        name,
        str(len(problems)),
        str(len(residuals)),
        percent(math.exp(residuals.mean())),
        f"{100 * math.sqrt(float((residuals**2).mean())):.1f} %",
        f"{100 * float(np.mean(spread)):.1f} %",
        f"{np.mean(correlations):.2f}" if correlations else "-",
        percent(float(np.mean(regrets))),
        percent(percentile(regrets, 95)),
        percent(max(regrets)),
    ]


def print_classes(problems):
    names = list(dict.fromkeys(problem.name for problem in problems))
    rows = [class_row(name, [one for one in problems if one.name == name]) for name in names]
    print("Measured against predicted times. Bias and error are of all candidates; spread is the mean over problems of the"
          "\nstandard deviation of their residuals, which is what misleads the ranking.\n")  # fmt: skip
    print_table(
        ["class", "problems", "candidates", "bias", "error", "spread", "rank corr.", "mean regret", "95th", "largest"],
        [*rows, class_row("all", problems)],
    )


def print_worst(problems, most):
    print("The largest regrets: the chosen kernel, then the best.\n")
    for problem in sorted(problems, key=Problem.regret, reverse=True)[:most]:
        if problem.regret() <= 1:
            break
        print(f"{percent(problem.regret())}  {problem.name}  {problem.text}")
        for one in (problem.chosen(), problem.best()):
            print(f"    measured {one.measured:9.2f} us, predicted {one.predicted:9.2f} us  {one.kernel}")
    print()


def print_numbers(problems):
    residuals, values, _ = centred(problems)
    names = list(numbers(problems[0].candidates[0]))
    rows = [
        [name, percent(math.exp(slope)), f"{100 * error:.1f} %", f"{correlation:+.2f}"]
        for name, (slope, error, correlation) in zip(names, slopes(residuals, values))
        if math.isfinite(error)
    ]
    rows.sort(key=lambda row: -abs(float(row[3])))
    print("Residuals against numbers: by how much the measured time grows against the prediction per unit.\n")
    print_table(["feature", "per unit", "standard error", "correlation"], rows)


def print_choices(problems, least):
    print(f"Mean residuals of choices that at least {least} candidates have, relative to their problems' means.\n")
    found = {}
    for problem in problems:
        mean = np.mean([one.residual for one in problem.candidates])
        for one in problem.candidates:
            for choice in choices(one).items():
                found.setdefault(choice, []).append(one.residual - mean)
    rows = []
    for (name, value), residuals in found.items():
        of_name = sum(other == name for other, _ in found)
        if len(residuals) >= least and of_name > 1:
            error = np.std(residuals) / math.sqrt(len(residuals))
            rows.append([f"{name} = {value}", str(len(residuals)), percent(math.exp(np.mean(residuals))),
                         f"{100 * error:.1f} %"])  # fmt: skip
    print_table(["choice", "candidates", "residual", "standard error"], rows)


def print_correction(problems):
    regrets = corrected_regrets(problems)
    if not regrets:
        return
    print(
        f"With a linear correction by all numbers, fitted to other problems ({FOLDS} folds): mean regret "
        f"{percent(float(np.mean(regrets)))}, 95th percentile {percent(percentile(regrets, 95))}. Without: "
        f"{percent(float(np.mean([one.regret() for one in problems])))}, "
        f"{percent(percentile([one.regret() for one in problems], 95))}."
    )


def print_unusable(problems):
    wrong = sum(problem.wrong for problem in problems)
    without = sum(problem.without_estimate for problem in problems)
    print(f"{wrong} candidates with a wrong result, {without} without a prediction.")
    for problem in problems:
        for failure in problem.failures:
            print(f"failed: {problem.text}: {failure}")
    print()


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="files that tilewright_bench --dump-candidates wrote")
    parser.add_argument("--classes", default="", help="only problems of these classes, separated by commas")
    parser.add_argument("--families", default="", help="only kernels of these families, separated by commas")
    parser.add_argument("--worst", type=int, default=10, help="how many of the largest regrets to print")
    parser.add_argument("--least", type=int, default=10, help="smallest number of candidates of a choice")
    parser.add_argument("--judging", action="store_true", help="report problems of judging seeds; fit nothing to them")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    classes, families = ([name for name in text.split(",") if name] for text in (options.classes, options.families))
    problems = [one for one in read(options.files, families) if not classes or one.name in classes]
    judging = [one.id for one in problems if (seed_of(one) or 0) >= FIRST_JUDGING_SEED]
    if judging and not options.judging:
        sys.exit(f"{judging[0]} is of a seed for judging: nothing may be fitted to it; --judging only reports it")
    print_unusable(problems)
    problems = [one for one in problems if len(one.candidates) > 1]
    if not problems:
        sys.exit("no problem has two candidates with a measured and a predicted time")
    print_classes(problems)
    print_worst(problems, options.worst)
    if judging:
        return
    print_numbers(problems)
    print_choices(problems, options.least)
    print_correction(problems)


if __name__ == "__main__":
    main()
