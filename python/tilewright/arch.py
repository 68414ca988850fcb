"""Tensor-core instructions and their operands as numbers: atoms, fragments, shared memory, descriptors, TMA copies.

    >>> from tilewright import arch
    >>> atom = arch.wgmma_atom("f16", "f16", "f32")
    >>> a, b = arch.smem_tile("k", "f16", 64, 64), arch.smem_tile("mn", "f16", 128, 64)
    >>> mma = arch.TiledMma(atom, 128, a, b, b_major="mn")
    >>> mma.mma_count, mma.desc_b
    ((1, 1, 4), SmemDescriptor(start 0x0, leading 8192, stride 1024, 128-byte swizzle))

Names are those of PyCuTe and nvcute where these have them. Layouts are those of tilewright.layout. What the hardware
cannot do is refused with InvalidArgument and the number. tilewright.program emits code from the same numbers.
"""

from tilewright._tilewright.arch import (
    MmaAtom,
    SmemDescriptor,
    TiledMma,
    TmaCopy,
    WgmmaAtom,
    fragment,
    make_descriptor,
    mma_atom,
    mma_atoms,
    multicast_mask,
    smem_atom,
    smem_stages,
    smem_tile,
    wgmma_atom,
    wgmma_atoms,
    widest_swizzle,
)

TiledCopy = TmaCopy

__all__ = [
    "MmaAtom",
    "SmemDescriptor",
    "TiledCopy",
    "TiledMma",
    "TmaCopy",
    "WgmmaAtom",
    "fragment",
    "make_descriptor",
    "mma_atom",
    "mma_atoms",
    "multicast_mask",
    "smem_atom",
    "smem_stages",
    "smem_tile",
    "wgmma_atom",
    "wgmma_atoms",
    "widest_swizzle",
]
