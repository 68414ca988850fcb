"""Element types."""

from __future__ import annotations

import enum

from tilewright._tilewright import DType
from tilewright.errors import Unsupported


class DataType(enum.Enum):
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


_NARROW = (DType.s4, DType.u4, DType.b1)  # of instructions; no array has them
_KINDS = {kind.name: kind for kind in DType if kind not in _NARROW}
