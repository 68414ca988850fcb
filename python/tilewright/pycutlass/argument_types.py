"""Checks the types of arguments."""

from __future__ import annotations

from typing import Any

from tilewright.errors import InvalidArgument


def check_type(name: str, value: object, kind: type | tuple[type, ...], instead: str = "") -> None:
    """Raises InvalidArgument, which names the argument, unless the value is of one of the types. `instead` says what to
    pass, by default an object of the type."""
    if not isinstance(value, kind):
        names = [each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,))]
        article = "an" if names[0][0] in "AEIOU" else "a"
        takes = instead or f"{article} {' or '.join(names)}"
        raise InvalidArgument(f"{name} must be {takes}, got {value!r:.80}")


def operation_of(arguments: Any, kind: str) -> Any:
    """The operation that `operation.run(arguments)` is called with. Raises InvalidArgument for other objects."""
    operation = getattr(arguments, "operation", None)
    if operation is None:
        raise InvalidArgument(f"run() takes a {kind} of the operation, got {arguments!r:.80}")
    return operation
