"""Errors for functions that cannot be traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import InvalidArgument


@dataclass(frozen=True)
class SourceLocation:
    """A range of columns in a line of a source. Lines and columns count from 1; `end` is one past the last column."""

    filename: str
    line: int
    column: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The line, with carets below the range."""
        indent = "".join(c if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"    {self.text}\n    {indent}{'^' * max(1, self.end - self.column)}"


class TraceError(InvalidArgument):
    """A function cannot be traced: the reason, the location, and what to write instead if there is an alternative."""

    def __init__(
        self,
        reason: str,
        location: SourceLocation | None = None,
        instead: str | None = None,
        callers: Sequence[SourceLocation] = (),
    ) -> None:
        self.reason = reason
        self.location = location
        self.instead = instead
        self.unbound: str | None = None  # the parameter to which nothing is bound, if that is the reason
        self.callers = tuple(callers)  # the locations of the calls that led here, innermost first
        lines = [reason if location is None else f"{location}: {reason}"]
        if location is not None:
            lines.append(location.excerpt())
        if instead:
            lines.append(f"instead: {instead}")
        lines += [f"called from {caller}" for caller in self.callers]
        super().__init__("\n".join(lines))


class Untraceable(Exception):
    """A TraceError without a location, for code that does not know it. The interpreter adds the location."""

    def __init__(self, reason: str, instead: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead
