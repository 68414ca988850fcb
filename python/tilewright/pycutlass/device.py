"""The device that operations run on."""

from __future__ import annotations

from tilewright._tilewright import device_target


def device_cc(device: int | None = None) -> int:
    """10 * major + minor of its compute capability: of the device of now, or of a GPU by its number."""
    target = device_target("" if device is None else f"cuda:{device}")
    return int("".join(each for each in target if each.isdigit()))
