"""tilewright.profile, tilewright.tune and tilewright.benchmark."""

from __future__ import annotations

import contextlib
import itertools
import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tilewright._tilewright import (
    GemmArguments,
    OperationArguments,
    ShapeOnly,
    _convert_profile,
    _default_output,
    _profile,
    _tune,
    dtype,
)
from tilewright.checked import checked
from tilewright.errors import Error, FileNotFound, InvalidArgument
from tilewright.peers import check_names, compare

_MAX_TOP = 2**31 - 1  # more than there are kernels
_FORMATS = {".csv": "csv", ".html": "html", ".xml": "junit", ".txt": "table", ".json": "json"}


class Profile:
    """The results of profile(): a sequence with a dict for each problem. str() is a table.

    On the emulator nothing is timed: `times` of each kernel is None, and `predicted_us` is the cost model's prediction
    for a GPU of the target.
    """

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Reads a profile from a JSON file of save() or of the command `tilewright profile`."""
        name = _name_of(path)
        with _named_errors(), open(name, encoding="utf-8") as file:
            text = file.read()
        try:
            loaded = cls(json.loads(text))
        except ValueError as error:
            raise InvalidArgument(f"{name} is not JSON: {error}") from None
        str(loaded)  # checks the contents
        return loaded

    @property
    def device(self) -> str:
        """The name of the GPU, or of the emulator, such as "emulator:sm_90a"."""
        return str(self.report["device"])

    @property
    def is_emulated(self) -> bool:
        """Whether the device is the emulator, so that there are no times."""
        return bool(self.report["is_emulated"])

    @property
    def is_complete(self) -> bool:
        """False if the profile was interrupted, so that problems are missing."""
        return bool(self.report["is_complete"])

    @property
    def problems(self) -> list[dict[str, Any]]:
        """The problems, each with its `kernels`, best-ranked first."""
        found: list[dict[str, Any]] = self.report["problems"]
        return found

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.problems)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise IndexError(f"problem {index} of a profile of {len(self)}")
        return self.problems[index]

    def to_json(self) -> str:
        """The profile as JSON, with `schema` 1."""
        return json.dumps(self.report, indent=2)

    def to_csv(self) -> str:
        """A line for each kernel, with a header."""
        return self._converted("csv")

    def to_junit(self) -> str:
        """A JUnit test suite, with a test case for each kernel."""
        return self._converted("junit")

    def to_html(self) -> str:
        """A report as one HTML page, which needs no network."""
        return self._converted("html")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file in the format of its ending: .json, .csv, .xml (JUnit), .html (report) or .txt (table)."""
        name = _name_of(path)
        ending = os.path.splitext(name)[1]
        if ending not in _FORMATS:
            raise InvalidArgument(f"path must end in one of {', '.join(_FORMATS)}, got {name!r}")
        text = self.to_json() if ending == ".json" else self._converted(_FORMATS[ending])
        with _named_errors(), open(name, "w", encoding="utf-8") as file:
            file.write(text)

    def _converted(self, format: str) -> str:
        return _convert_profile(json.dumps(self.report), format)

    def __str__(self) -> str:
        return self._converted("table")

    def __repr__(self) -> str:
        return f"<Profile of {len(self)} problems on {self.device}>"

    def _repr_html_(self) -> str:
        return f"<iframe style='width:100%;height:40rem;border:0' srcdoc=\"{_attribute(self.to_html())}\"></iframe>"


def _name_of(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a str or an os.PathLike, got {type(path).__name__}")
    return os.fspath(path)


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    """Raises FileNotFound for FileNotFoundError, and Error for other failures of a file."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFound(error.errno, error.strerror, error.filename) from None
    except OSError as error:
        raise Error(f"cannot open {error.filename}: {error.strerror}") from None


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


def profile(
    problems: OperationArguments | Iterable[OperationArguments],
    *,
    top: int = 1,
    kernel: str = "",
    providers: Sequence[str] = (),
    seconds: float = 0.5,
    verify: bool = True,
    deterministic: bool | None = None,
    batch_invariant: bool | None = None,
    peers: str | Sequence[str] = (),
    on_progress: Callable[[int, int, str], object] | None = None,
) -> Profile:
    """Verifies the best-ranked kernels of each problem, times them on a GPU, and counts what they do.

    problems      arguments of operations: GemmArguments(A, B, out), Conv2dArguments(...), ... Their arrays are not
                  accessed, so that they may be ShapeOnly; gemms() makes the products of ranges
    top           how many kernels for each problem
    kernel        only kernels whose names contain this text
    providers     families of kernels to profile side by side, such as ["sm80_gemm", "MyKernel"]: `top` kernels of each.
                  Without it, `top` kernels of all families
    seconds       device time for each problem
    verify        whether results are compared with the reference
    peers         libraries that are timed beside Tilewright, in turns with the kernel that a call uses: "torch",
                  "cublaslt" (GEMMs) and "cudnn" (convolutions), which are called through PyTorch. Each problem gets
                  `peers`; those that are absent have the disposition "not_run" and the reason
    on_progress   called with the number of problems that are done, the number of all, and the last problem

    If it is interrupted, the exception has the problems that were measured as its attribute `profile`.
    """
    if not isinstance(problems, Iterable):
        problems = [problems]
    given = [*problems]
    for index, each in enumerate(given):
        if not isinstance(each, OperationArguments):
            raise TypeError(
                f"problems[{index}] must be the arguments of an operation, such as GemmArguments(A, B, out), "
                f"got {type(each).__name__}"
            )
    if not given:
        raise InvalidArgument("problems is empty: give at least one")
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise TypeError(f"seconds must be a number, got {seconds!r:.80}")
    if not isinstance(top, int) or isinstance(top, bool):
        raise TypeError(f"top must be an int, got {top!r:.80}")
    top = min(top, _MAX_TOP)
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a str, got {kernel!r:.80}")
    families = _names_of_families(providers)
    if not isinstance(verify, bool):
        raise TypeError(f"verify must be True or False, got {verify!r:.80}")
    if not (on_progress is None or callable(on_progress)):
        raise TypeError(f"on_progress must be a function or None, got {on_progress!r:.80}")
    names = check_names(peers)
    promises = (deterministic, batch_invariant)
    report: dict[str, Any] = {}
    show = on_progress if on_progress is not None else _progress_line(len(given))
    try:
        for index, each in enumerate(given):
            found = json.loads(_profile(each, top, kernel, families, float(seconds), verify, *promises))
            if names:
                found["problems"][0]["peers"] = compare(each, names, found["problems"][0], float(seconds))
            if report:
                report["problems"] += found["problems"]
            else:
                report = found
            show(index + 1, len(given), found["problems"][-1]["problem"])
    except KeyboardInterrupt as interruption:
        if report:
            report["is_complete"] = False
            setattr(interruption, "profile", Profile(report))  # noqa: B010
        raise
    return Profile(report)


def _names_of_families(providers: Sequence[str]) -> list[str]:
    names = None if isinstance(providers, str) or not isinstance(providers, Iterable) else [*providers]
    if names is None or not all(isinstance(each, str) for each in names):
        raise TypeError(f"providers must be a list of str, got {providers!r:.80}")
    return [*dict.fromkeys(names)]


def _progress_line(count: int) -> Callable[[int, int, str], object]:
    """Draws a line on stderr if that is a terminal and there are several problems."""
    if count < 2 or sys.stderr is None or not sys.stderr.isatty():
        return lambda done, all, problem: None

    def show(done: int, all: int, problem: str) -> None:
        end = "\r\x1b[K" if done == all else ""
        sys.stderr.write(f"\r\x1b[K{done}/{all}  {problem:.70}{end}")
        sys.stderr.flush()

    return show


def gemms(
    m: int | Sequence[int],
    n: int | Sequence[int],
    k: int | Sequence[int],
    *,
    dtype: Any = "float16",
    batch: int | None = None,
    layouts: str = "tt",
    out_dtype: Any = None,
    accumulator_type: Any = None,
    math: str | None = None,
    epilogue: Any = None,
) -> list[GemmArguments]:
    """GemmArguments without memory for all combinations of the extents, such as range(128, 4097, 128), for profile().

    `layouts` has a letter for A and for B: "t" for row-major, "n" for column-major.
    """
    if not (batch is None or (isinstance(batch, int) and not isinstance(batch, bool))):
        raise TypeError(f"batch must be an int or None, got {batch!r:.80}")
    kind = _dtype(dtype)
    out_kind = _default_output(kind) if out_dtype is None else _dtype(out_dtype)
    if not isinstance(layouts, str) or len(layouts) != 2 or set(layouts) - {"t", "n"}:
        raise InvalidArgument(f"layouts must be two letters, t or n, for A and B, got {layouts!r:.40}")

    def operand(rows: int, columns: int, letter: str, type: Any) -> ShapeOnly:
        shape = (rows, columns) if batch is None else (batch, rows, columns)
        inner = (columns, 1) if letter == "t" else (1, rows)
        return ShapeOnly(shape, type, inner if batch is None else (rows * columns, *inner))

    def extents(values: int | Sequence[int], name: str) -> list[int]:
        try:
            return [operator.index(each) for each in (values if isinstance(values, Iterable) else [values])]
        except TypeError:
            raise TypeError(f"{name} must be an int, a range or a list of ints, got {values!r:.80}") from None

    return [
        GemmArguments(
            operand(rows, depth, layouts[0], kind),
            operand(depth, columns, layouts[1], kind),
            operand(rows, columns, "t", out_kind),
            accumulator_type,
            epilogue,
            math=math,
        )
        for depth, columns, rows in itertools.product(extents(k, "k"), extents(n, "n"), extents(m, "m"))
    ]


_dtype = dtype


def tune(args: OperationArguments, *, top: int = 8, seconds: float = 1.0, verify_only: bool = False) -> dict[str, Any]:
    """Measures the `top` best-ranked kernels of a problem, remembers the fastest correct one for later calls, on disk
    too, and returns the report: `candidates` with `kernel`, `status`, `median_us`, ..., and the index of the `winner`.

    The arrays of `args` are not accessed. With `verify_only`, as is needed on the emulator, kernels are only verified.
    """
    report: dict[str, Any] = json.loads(_checked_tune(args, top, seconds, verify_only))
    return report


_checked_tune = checked(_tune, "tune")


def benchmark(
    args: OperationArguments, *, providers: Sequence[str] = (), seconds: float = 0.5, verify: bool = True
) -> dict[str, Any]:
    """The profile of the kernel that a call with these arguments uses, or of the best one of the families `providers`:
    `times` with `median_us`, `p05_us` and `p95_us`, which is None on the emulator; `predicted_us`, `registers`,
    `instructions`, ...

    Raises InvalidArgument if no kernel can compute the problem, or its result is wrong.
    """
    if not isinstance(args, OperationArguments):
        raise TypeError(
            f"args must be the arguments of one operation, such as GemmArguments(A, B, out), got {type(args).__name__}"
        )
    found = profile(args, providers=providers, seconds=seconds, verify=verify)[0]
    if not found["kernels"]:
        families = f" of {', '.join(providers)}" if providers else ""
        raise InvalidArgument(f"no kernel{families} can compute {found['problem']}: see tilewright.explain(args)")
    kernel: dict[str, Any] = found["kernels"][0]
    if kernel["disposition"] in ("wrong", "failed"):
        raise InvalidArgument(f"{kernel['kernel']}: {kernel['disposition']}: {kernel['reason']}")
    return kernel


__all__ = ["Profile", "benchmark", "gemms", "profile", "tune"]
