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

from typing import TYPE_CHECKING

from tilewright._tilewright import DType, dtype
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
    sizeof_bits,
    smem_atom,
    smem_stages,
    smem_tile,
    wgmma_atom,
    wgmma_atoms,
    widest_swizzle,
)
from tilewright.checked import check_all
from tilewright.errors import InvalidArgument
from tilewright.layout import ComposedLayout, Layout, coalesce, composition, make_layout, size
from tilewright.missing_name import refuse_unknown


class TiledCopy:
    """A tile that is copied to shared memory by TMA for wgmma, from its canonical layout: (mn, k) with the strides of
    the tensor's order, (k, 1) or (1, mn), such as (64, 64):(64, 1). nvcute's TmaCopy, with its names. Raises
    InvalidArgument for other layouts."""

    def __init__(self, canonical_layout: Layout, element: object) -> None:
        if not isinstance(canonical_layout, Layout):
            raise TypeError(f"canonical_layout must be a Layout, got {canonical_layout!r:.80}")
        if len(canonical_layout) != 2:
            raise InvalidArgument(f"canonical_layout must have two modes, (mn, k), got {canonical_layout}")
        self.canonical_layout = canonical_layout
        self.dtype: DType = dtype(element)
        mn, k = (size(canonical_layout, mode) for mode in (0, 1))
        by_lines = coalesce(canonical_layout, (1, 1))
        orders = {"k": Layout((mn, k), (k, 1)), "mn": Layout((mn, k), (1, mn))}
        majors = [major for major, order in orders.items() if coalesce(order, (1, 1)) == by_lines]
        if not majors:
            raise InvalidArgument(
                f"canonical_layout must have the strides ({k},1) or (1,{mn}) for mn = {mn} and k = {k}, got "
                f"{canonical_layout}: TMA copies tiles without gaps"
            )
        self.is_MN_major = "mn" in majors and (len(majors) == 1 or canonical_layout(1 % mn, 0) == 1)
        self.major = "mn" if self.is_MN_major else "k"
        self.tile = (mn, k)
        self.smem: ComposedLayout = smem_tile(self.major, self.dtype, mn, k)  # (mn, k) -> offset in elements
        # The boxes are those for tensors that extend past the tile in all modes.
        tensor = Layout((4 * mn, 4 * k), (1, 4 * mn) if self.is_MN_major else (4 * k, 1))
        self._copy = self.tma(tensor)

    def tma(self, tensor: Layout, multicast: int = 1) -> TmaCopy:
        """The copy of such a tile of a tensor with this layout."""
        return TmaCopy(tensor, self.dtype, self.smem, self.tile, multicast)

    @property
    def smem_layout(self) -> Layout:
        """(mn, k) -> offset in elements, without the swizzle."""
        return coalesce(self.smem.layout, (1, 1))

    @property
    def pitchlinear_layout(self) -> Layout:
        """smem_layout with the contiguous mode first."""
        layout = self.smem_layout
        return layout if self.is_MN_major else make_layout(layout[1], layout[0])

    @property
    def pitchlinear_shape(self) -> tuple[int, int]:
        """The extents of the tile, contiguous mode first."""
        mn, k = self.tile
        return (mn, k) if self.is_MN_major else (k, mn)

    @property
    def swizzle(self) -> int:
        """In bytes."""
        return self._copy.swizzle

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The extents of what one instruction copies, contiguous mode first."""
        return self._copy.box_shape

    @property
    def num_boxes(self) -> int:
        """The number of boxes, each of which one instruction copies."""
        return self._copy.num_boxes

    @property
    def box_bytes(self) -> int:
        """The bytes of a box in shared memory."""
        return self._copy.box_bytes


def make_gmma_desc(copy: TiledCopy) -> SmemDescriptor:
    """The descriptor of an instruction that has all of mn of the tile, for a tile at address 0."""
    mn, _ = copy.tile
    instruction_k = 32 * 8 // sizeof_bits(copy.dtype)
    return make_descriptor(copy.major, composition(copy.smem, (mn, instruction_k)), copy.dtype)


__all__ = [
    "MmaAtom",
    "SmemDescriptor",
    "TiledCopy",
    "TiledMma",
    "TmaCopy",
    "WgmmaAtom",
    "fragment",
    "make_descriptor",
    "make_gmma_desc",
    "mma_atom",
    "mma_atoms",
    "multicast_mask",
    "sizeof_bits",
    "smem_atom",
    "smem_stages",
    "smem_tile",
    "wgmma_atom",
    "wgmma_atoms",
    "widest_swizzle",
]

check_all(globals(), __all__)

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
