"""cutlass_api.arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tilewright
from tilewright._tilewright import GroupedGemmArguments, Operand, OperationArguments
from tilewright.epilogue import EpilogueArguments
from tilewright.missing_name import refuse_unknown

RuntimeArguments = OperationArguments


class ArgumentTensor:
    """One tensor of a GemmArguments: its shape and strides, and the array that the caller passed."""

    def __init__(self, arguments: GemmArguments, role: str, operand: Operand, array: Any) -> None:
        self.arguments = arguments
        self.role = role  # the name of the attribute of `arguments`
        self.operand = operand
        self.tensor = array

    @property
    def runtime_tensor(self) -> Any:
        """The array that the caller passed."""
        return self.tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.operand, name)  # shape, stride, dtype, data_ptr, ...

    def __repr__(self) -> str:
        return f"<{self.role} of GemmArguments: {self.operand!r}>"


class GemmArguments(tilewright.GemmArguments):
    """The tensors of out = A @ B with their element types, and the epilogue.

    A                 (L, M, K) or (M, K)
    B                 (L, K, N) or (K, N)
    out               (L, M, N) or (M, N)
    accumulator_type  the type of the sums; the default follows from the type of A
    epilogue          an EpilogueArguments

    It is a tilewright.GemmArguments, which says what else may be passed.
    """

    def __init__(
        self, A: Any, B: Any, out: Any, accumulator_type: Any = None, epilogue: Any = None, **options: Any
    ) -> None:
        super().__init__(A, B, out, accumulator_type, epilogue, **options)
        self._arrays = {"A": A, "B": B, "out": out}

    @property
    def A(self) -> Any:
        """The first factor."""
        return ArgumentTensor(self, "A", super().A, self._arrays["A"])

    @property
    def B(self) -> Any:
        """The second factor."""
        return ArgumentTensor(self, "B", super().B, self._arrays["B"])

    @property
    def out(self) -> Any:
        """The result."""
        return ArgumentTensor(self, "out", super().out, self._arrays["out"])


__all__ = ["ArgumentTensor", "EpilogueArguments", "GemmArguments", "GroupedGemmArguments", "RuntimeArguments"]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
