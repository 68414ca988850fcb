"""Reads extents."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tilewright.errors import InvalidArgument


def count(value: int, name: str, least: int = 1) -> int:
    """The number. Raises TypeError unless it is an integer, and InvalidArgument if it is less than `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, got {value!r:.80}") from None
    if number < least:
        raise InvalidArgument(f"{name} must be at least {least}, got {number}")
    return number


def two(extents: Sequence[int], name: str) -> tuple[int, int]:
    """The extents along m and n. Raises InvalidArgument unless they are two integers of at least 0."""
    try:
        m, n = (operator.index(extent) for extent in extents)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be two integers, [m, n], got {extents!r:.80}") from None
    if min(m, n) < 0:
        raise InvalidArgument(f"{name} must be at least 0 along m and n, got {[m, n]}")
    return m, n


def three(extents: Sequence[int], name: str) -> tuple[int, int, int]:
    """The extents along m, n and k. Raises InvalidArgument unless they are three positive integers."""
    try:
        m, n, k = (operator.index(extent) for extent in extents)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be three integers, along m, n and k, got {extents!r}") from None
    if min(m, n, k) < 1:
        raise InvalidArgument(f"{name} must be at least 1 along m, n and k, got {[m, n, k]}")
    return m, n, k
