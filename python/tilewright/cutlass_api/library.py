"""cutlass_api.library: how operands are scaled. Tilewright has no scaled operands yet, so the names are only here to be
imported."""

from __future__ import annotations

import enum


class ScaleMode(enum.Enum):
    """The shape of the blocks that share a scale."""

    Blockwise1x16 = (1, 1, 16)
    Blockwise1x32 = (1, 1, 32)


class ScaleSwizzleMode(enum.Enum):
    """The order in which scales lie in memory."""

    SwizzleNone = 0
    Swizzle32x4x4 = 1


__all__ = ["ScaleMode", "ScaleSwizzleMode"]
