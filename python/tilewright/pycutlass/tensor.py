"""TensorDescription: an operand of an operation."""

from __future__ import annotations

from tilewright._tilewright import TensorAttributes
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .cutlass.element import DataType
from .cutlass.layout import LayoutType
from .extents import count

WIDEST_BITS = 128  # of one load
CHANNELS_OF_BLOCK = 32  # of TensorNC32HW32 and TensorC32RSK32


class TensorDescription:
    """The element type, layout and alignment of a matrix, or of a tensor of a convolution, of any extents.

    element     tfloat32 is stored as float32, which tensor cores round
    alignment   a power of two; addresses and rows (columns, for ColumnMajor; channels, for TensorNHWC) are multiples of
                that many elements. It is limited to the number of elements in a load of 128 bits.

    With an interleaved layout, which is for 8-bit integers, element (r, c) of a matrix of R x C is at
    c // 32 * R * 32 + r * 32 + c % 32 (ColumnMajorInterleaved32) or r // 32 * C * 32 + c * 32 + r % 32
    (RowMajorInterleaved32). Those of convolutions have the modes (N, C/32, H, W, 32) (TensorNC32HW32, for activations
    and outputs) and (C/32, R, S, K, 32) (TensorC32RSK32, for filters).

    Raises InvalidArgument, or Unsupported for types and layouts that no kernel has.
    """

    def __init__(
        self,
        element: DataType,
        layout: LayoutType,
        alignment: int = 1,
        complex_transform: cutlass.complex_transform = cutlass.complex_transform.none,
    ) -> None:
        if not isinstance(element, DataType):
            raise InvalidArgument(f"element must be one of cutlass.float16, cutlass.float32, ..., got {element!r}")
        if not isinstance(layout, LayoutType):
            raise InvalidArgument(f"layout must be cutlass.RowMajor, cutlass.ColumnMajor, ..., got {layout!r}")
        if complex_transform is not cutlass.complex_transform.none:
            raise Unsupported("no kernel has complex operands")
        alignment = count(alignment, "alignment")
        if alignment & (alignment - 1):
            raise InvalidArgument(f"alignment must be a power of two, got {alignment}")
        self.element = DataType.float32 if element is DataType.tfloat32 else element
        self.layout = layout
        self.complex_transform = complex_transform
        self.alignment = min(WIDEST_BITS // self.element.bits, alignment)
        self.element.kind  # noqa: B018  raises Unsupported
        if layout.has_blocks and alignment > CHANNELS_OF_BLOCK:
            raise InvalidArgument(
                f"{layout.name} has blocks of {CHANNELS_OF_BLOCK} channels, got an alignment of {alignment}"
            )

    @property
    def attributes(self) -> TensorAttributes:
        """The type, layout and alignment, as Tilewright's metadata has them."""
        return self.attributes_of(is_pointer_array=False)

    def attributes_of(self, is_pointer_array: bool) -> TensorAttributes:
        """The attributes of a batch whose matrices are `alignment` elements aligned at the addresses in an array."""
        return TensorAttributes(self.element.kind, self.layout.major, self.alignment, is_pointer_array)
