"""The device that operations run on."""

from __future__ import annotations

from tilewright._tilewright import device_target


def device_cc(device: int | None = None) -> int:
    """The compute capability as 10 * major + minor, of the GPU with that ordinal, or of the current device."""
    target = device_target("" if device is None else f"cuda:{device}")
    return int("".join(each for each in target if each.isdigit()))
