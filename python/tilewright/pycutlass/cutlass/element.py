"""Element types."""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy

from tilewright._tilewright import DType
from tilewright.errors import InvalidArgument, Unsupported

from ..enumeration import Enumeration


class ElementFloat(float):
    """A number that cutlass.float16(1.5) makes."""

    def value(self) -> float:
        return float(self)


class ElementInteger(int):
    """A number that cutlass.int8(3) makes."""

    def value(self) -> int:
        return int(self)


class DataType(Enumeration):
    """CUTLASS's element types."""

    float16 = "f16"
    bfloat16 = "bf16"
    float32 = "f32"
    float64 = "f64"
    tfloat32 = "tf32"
    int8 = "s8"
    int32 = "s32"
    u8 = "u8"
    e4m3 = "e4m3"
    e5m2 = "e5m2"
    b1 = "b1"
    u2 = "u2"
    u4 = "u4"
    u16 = "u16"
    u32 = "u32"
    u64 = "u64"
    s2 = "s2"
    s4 = "s4"
    s16 = "s16"
    s64 = "s64"
    cf16 = "cf16"
    cbf16 = "cbf16"
    cf32 = "cf32"
    ctf32 = "ctf32"
    cf64 = "cf64"

    def __call__(self, value: SupportsFloat) -> ElementInteger | ElementFloat:
        """The number as the type has it: rounded, or cut off for integers. Its value() is a number of Python."""
        return number_of(self, value)

    @property
    def kind(self) -> DType:
        """Tilewright's type. Raises Unsupported if no kernel supports the type."""
        found = _KINDS.get(self.value)
        if found is None:
            raise Unsupported(f"no kernel has elements of {self.value}: there are {', '.join(_KINDS)}")
        return found

    @property
    def bits(self) -> int:
        """The size of an element in bits."""
        digits = "".join(each for each in self.value if each.isdigit())
        is_fp8 = self.value in ("e4m3", "e5m2")
        is_tf32 = self.value.endswith("tf32")
        width = 8 if is_fp8 else 32 if is_tf32 else int(digits)
        return 2 * width if self.value.startswith("c") else width


def number_of(element: DataType, value: SupportsFloat) -> ElementInteger | ElementFloat:
    """A number as the type has it. Raises InvalidArgument unless it is a number that the type holds."""
    is_integer = element.value[0] in "su"
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        wide = float(value)
        integer = int(value) if is_integer else 0  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"cutlass.{element.name}() takes a number, got {value!r:.80}") from None
    if is_integer:
        least = -(1 << (element.bits - 1)) if element.value[0] == "s" else 0
        if not least <= integer < least + (1 << element.bits):
            raise InvalidArgument(f"cutlass.{element.name} has no {integer}")
        return ElementInteger(integer)
    if element.value in ("f16", "f32", "f64"):
        with numpy.errstate(over="ignore"):
            return ElementFloat(numpy.dtype(f"float{element.bits}").type(wide))
    dropped = {"bf16": 16, "tf32": 13}.get(element.value)
    if dropped is None:
        raise Unsupported(f"there are no numbers of cutlass.{element.name}")
    with numpy.errstate(over="ignore"):
        single = numpy.float32(wide)
    if not math.isfinite(single):
        return ElementFloat(single)
    bits = int(single.view(numpy.uint32))
    bits += (1 << (dropped - 1)) - 1 + (bits >> dropped & 1)  # to nearest, ties to even
    return ElementFloat(numpy.uint32(bits >> dropped << dropped).view(numpy.float32))


_NARROW = (DType.s4, DType.u4, DType.b1)  # of instructions; no array has them
_KINDS = {kind.name: kind for kind in DType if kind not in _NARROW}
