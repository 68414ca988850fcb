"""cutlass_api.typing: what annotations of tensors and of element types stand for."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class TensorLike(Protocol):
    """An array that exports DLPack, as those of NumPy, PyTorch, CuPy and JAX do. isinstance() compares the methods."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """The capsule."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind of device and its number."""
        ...


class NumericLike(Protocol):
    """An element type: of cutlass, PyTorch, NumPy or ml_dtypes, or its name. Annotations only."""


__all__ = ["NumericLike", "TensorLike"]
