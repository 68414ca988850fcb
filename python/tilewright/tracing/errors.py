"""Errors for functions that cannot be traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import InvalidArgument


@dataclass(frozen=True)
class Place:
    """A range of columns in a line of a source. Lines and columns count from 1; `end` is one past the last column."""

    filename: str
    line: int
    column: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"

    def picture(self) -> str:
        """The line, with carets below the range."""
        indent = "".join(c if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"    {self.text}\n    {indent}{'^' * max(1, self.end - self.column)}"


class TraceError(InvalidArgument):
    """A function cannot be traced: the reason, the place, and what to write instead if there is an alternative."""

    def __init__(
        self, reason: str, place: Place | None = None, instead: str | None = None, callers: Sequence[Place] = ()
    ) -> None:
        self.reason = reason
        self.place = place
        self.instead = instead
        self.callers = tuple(callers)  # the calls that led to the place, innermost first
        lines = [reason if place is None else f"{place}: {reason}"]
        if place is not None:
            lines.append(place.picture())
        if instead:
            lines.append(f"instead: {instead}")
        lines += [f"called from {caller}" for caller in self.callers]
        super().__init__("\n".join(lines))


class Untraceable(Exception):
    """The same without a place, for code that does not know it. The interpreter converts it to a TraceError."""

    def __init__(self, reason: str, instead: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead
