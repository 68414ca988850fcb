"""What a function that cannot be traced is refused with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import InvalidArgument


@dataclass(frozen=True)
class Place:
    """A range of one line of a source; line and columns count from 1, `end` is one past the last column."""

    filename: str
    line: int
    column: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"

    def picture(self) -> str:
        """The line, and carets below the range."""
        indent = "".join(c if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"    {self.text}\n    {indent}{'^' * max(1, self.end - self.column)}"


class TraceError(InvalidArgument):
    """A function is no epilogue: why, where, and what to write instead where there is something."""

    def __init__(
        self, reason: str, place: Place | None = None, instead: str | None = None, callers: Sequence[Place] = ()
    ) -> None:
        self.reason = reason
        self.place = place
        self.instead = instead
        self.callers = tuple(callers)  # the calls that led there, innermost first
        lines = [reason if place is None else f"{place}: {reason}"]
        if place is not None:
            lines.append(place.picture())
        if instead:
            lines.append(f"instead: {instead}")
        lines += [f"called from {caller}" for caller in self.callers]
        super().__init__("\n".join(lines))


class Untraceable(Exception):
    """The same before it is known where."""

    def __init__(self, reason: str, instead: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead
