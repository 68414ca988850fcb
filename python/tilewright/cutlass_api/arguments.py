"""cutlass_api.arguments."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tilewright
import tilewright.tracing
from tilewright._tilewright import DType, Epilogue, GroupedGemmArguments, Operand, OperationArguments, ShapeOnly, dtype
from tilewright.epilogue import nearest
from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown

RuntimeArguments = OperationArguments


class EpilogueArguments(tilewright.EpilogueArguments):
    """An epilogue of A @ B with the arrays and numbers that it reads and writes.

    epilogue_fn   a Python function or its source. Its first parameter is `accum`, and it returns D
    operands      keywords: the value of each other parameter, and an array for each variable that is returned

    It is a tilewright.EpilogueArguments, which also takes texts of the epilogue language, an Epilogue and activations. A
    function whose result is no variable, as that of a lambda, needs no array for it: `out` is written. Raises
    InvalidArgument unless the keywords are the names of the function.
    """

    def __init__(self, epilogue_fn: Callable[..., object] | str | Epilogue, **operands: Any) -> None:
        super().__init__(epilogue_fn, **operands)
        if self._is_traced:
            _check_names(tilewright.tracing.names_of(self.epilogue), operands)

    def _array_of_d(self) -> Any:
        """The array that is bound to D, or None."""
        is_input = self._is_traced and "D" in tilewright.tracing.parameters(self.epilogue)
        return None if is_input else self.operands.get("D")


def _check_names(names: tilewright.tracing.Names, operands: dict[str, Any]) -> None:
    """Raises InvalidArgument unless there is an operand for each parameter and each variable that is returned."""
    accumulators = next((each for each in ("accum", "acc") if each in names.parameters), None)
    if accumulators is None and (not names.required or names.required[0] in operands):
        raise InvalidArgument("accum must be an input to the epilogue function")
    if names.returned and "D" not in names.returned:
        raise InvalidArgument(f"the epilogue function must return a variable D, got {', '.join(names.returned)}")
    required = [each for each in names.required if each != (accumulators or names.required[0])]
    missing = [each for each in dict.fromkeys((*required, *names.returned)) if each not in operands]
    if missing:
        what = "returns" if missing[0] in names.returned else "reads"
        raise InvalidArgument(
            f"the epilogue function {what} {missing[0]}, which is not given: EpilogueArguments(..., {missing[0]}=...)"
        )
    unknown = operands.keys() - {*names.parameters, *names.returned}
    if unknown and names.returned:
        known = dict.fromkeys((*names.parameters, *names.returned))
        raise InvalidArgument(
            f"the epilogue function has no parameter or output named {', '.join(sorted(unknown))}{nearest(unknown, known)}"
        )


_last = threading.local()  # its attribute `arguments` refers to those whose arrays this thread has asked for last


def argument_tensors(values: Sequence[Any]) -> list[Any]:
    """The values with ArgumentTensors in place of the arrays of the arguments whose `tensor` was read last."""
    find = getattr(_last, "arguments", None)
    arguments = None if find is None else find()
    if arguments is None or any(isinstance(each, ArgumentTensor) for each in values):
        return [*values]
    roles = dict(arguments._arrays)
    found = []
    for value in values:
        role = next((name for name, array in roles.items() if array is value), None)
        found.append(value if role is None else getattr(arguments, role))
        roles.pop(role, None)  # an array that is A and B is first A
    return found


class ArgumentTensor:
    """One tensor of a GemmArguments: its shape and strides, and the array that the caller passed."""

    def __init__(self, arguments: GemmArguments, role: str, operand: Operand, array: Any) -> None:
        self.arguments = arguments
        self.role = role  # the name of the attribute of `arguments`
        self.operand = operand
        self._array = array

    @property
    def tensor(self) -> Any:
        """The array that the caller passed. cute_compile() and cute_run() take it in place of the ArgumentTensor."""
        _last.arguments = weakref.ref(self.arguments)
        return self._array

    @property
    def runtime_tensor(self) -> Any:
        """The array that the caller passed."""
        return self.tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "dtype" and self.role in self.arguments._kinds:
            return self.arguments._kinds[self.role]
        return getattr(self.operand, name)  # shape, stride, dtype, data_ptr, ...

    def __repr__(self) -> str:
        return f"<{self.role} of GemmArguments: {self.operand!r}>"


class GemmArguments(tilewright.GemmArguments):
    """The tensors of out = A @ B with their element types, and the epilogue.

    A                 (L, M, K) or (M, K)
    B                 (L, K, N) or (K, N)
    out               (L, M, N) or (M, N)
    accumulator_type  the type of the sums; the default follows from the type of A
    epilogue          an EpilogueArguments. If it has an array for D, that array is written in place of `out`

    It is a tilewright.GemmArguments, which says what else may be passed. A and B may have different types: then no kernel
    supports the arguments, and kernel.supports(args) says so.
    """

    def __init__(
        self, A: Any, B: Any, out: Any, accumulator_type: Any = None, epilogue: Any = None, **options: Any
    ) -> None:
        d = epilogue._array_of_d() if isinstance(epilogue, EpilogueArguments) else None
        if d is not None:
            of_d, of_out = (tuple(getattr(each, "shape", ())) for each in (d, out))
            if of_d != of_out:
                raise InvalidArgument(f"D of the epilogue has shape {of_d}, but out has shape {of_out}")
            out = d
        self._arrays = {"A": A, "B": B, "out": out}
        self._kinds: dict[str, DType] = {}  # those of A and B, if they differ
        try:
            super().__init__(A, B, out, accumulator_type, epilogue, **options)
        except InvalidArgument as error:
            if not _have_two_types(A, B):
                raise
            kind = dtype(A.dtype)
            try:  # arguments of one type stand for these, which no kernel computes
                shapes = [ShapeOnly((*each.shape,), kind) for each in (A, B)]
                super().__init__(shapes[0], shapes[1], ShapeOnly((*out.shape,), out.dtype))
            except (AttributeError, TypeError, InvalidArgument):
                raise error from None
            self._kinds = {"A": kind, "B": dtype(B.dtype)}
            self._refusal = str(error)

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


def _have_two_types(A: Any, B: Any) -> bool:
    """Whether two arrays have types that differ, both of which kernels know."""
    try:
        return bool(dtype(A.dtype) != dtype(B.dtype))
    except (AttributeError, TypeError, InvalidArgument):
        return False


__all__ = ["ArgumentTensor", "EpilogueArguments", "GemmArguments", "GroupedGemmArguments", "RuntimeArguments"]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
