"""TileDescription: the tile of D that a CTA computes."""

from __future__ import annotations

from collections.abc import Sequence

from .argument_types import check_type
from .extents import count, three
from .math_instruction import MathInstruction


class TileDescription:
    """The shape of a tile, the number of shared-memory stages and the warps.

    stages, warp_count   may be None on tensor cores of sm_90: then they are chosen to fit
    persistent           has no effect: Tilewright's kernels for sm_90 are always persistent

    Raises InvalidArgument for values that no tile can have. Whether a kernel exists is checked by the operation.
    """

    def __init__(
        self,
        threadblock_shape: Sequence[int],
        stages: int | None,
        warp_count: Sequence[int] | None,
        math_instruction: MathInstruction,
        cluster_shape: Sequence[int] = (1, 1, 1),
        persistent: bool = False,
    ) -> None:
        check_type("math_instruction", math_instruction, MathInstruction)
        self.threadblock_shape = three(threadblock_shape, "threadblock_shape")
        self.stages = None if stages is None else count(stages, "stages")
        self.warp_count = None if warp_count is None else three(warp_count, "warp_count")
        self.math_instruction = math_instruction
        self.cluster_shape = three(cluster_shape, "cluster_shape")
        self.persistent = persistent

    @property
    def num_threads(self) -> int | None:
        """The number of threads of a CTA; None if warp_count is None."""
        if self.warp_count is None:
            return None
        m, n, k = self.warp_count
        return 32 * m * n * k

    def procedural_name(self) -> str:
        """PyCUTLASS's name of a tile: "1x1x1_128x128_32x4", the cluster, the tile and the number of stages."""
        m, n, k = self.threadblock_shape
        stages = 0 if self.stages is None else self.stages
        cluster = "x".join(map(str, self.cluster_shape))
        return f"{cluster}_{m}x{n}_{k}x{stages}{'_persistent' if self.persistent else ''}"
