"""What the functions that compute have in common: options, epilogues with operands, messages about arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright._tilewright import DType, Epilogue, PointerArray, _default_output, dtype
from tilewright.epilogue import EpilogueArguments, nearest
from tilewright.errors import InvalidArgument


class CallOptions(NamedTuple):
    """The options that matmul(), grouped_matmul(), contract() and the convolutions share. matmul() describes them."""

    alpha: float = 1.0
    beta: float | None = None
    out_dtype: Any = None
    accumulator_type: Any = None
    math: str | None = None
    stream: Any = None
    deterministic: bool | None = None
    batch_invariant: bool | None = None

    def beta_for(self, c: Any) -> float:
        """beta, which by default is 1 if `c` is given, else 0."""
        return (0.0 if c is None else 1.0) if self.beta is None else self.beta

    def promises(self) -> dict[str, bool | None]:
        """The keywords of run() for what the kernel must promise."""
        return {"deterministic": self.deterministic, "batch_invariant": self.batch_invariant}

    def keywords(self) -> dict[str, Any]:
        """The options but alpha and beta as keywords of the function that was called."""
        given = self._asdict()
        del given["alpha"], given["beta"]
        return given


def number(value: Any, name: str) -> float:
    if type(value) is float:
        return value
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except OverflowError:
        raise InvalidArgument(f"{name} is too large for a float, got {value!r:.40}...") from None
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be a number, got {value!r:.80}")


def check_flag(value: Any, name: str) -> None:
    if not (value is None or isinstance(value, bool)):
        raise TypeError(f"{name} must be True, False or None, got {value!r:.80}")


def check_out_dtype(out: Any, out_dtype: Any) -> None:
    """Refuses an `out_dtype` that is not the type of a given `out`."""
    if out is None or out_dtype is None or not hasattr(out, "dtype"):
        return
    kind = type_of_result(out_dtype, out)
    if kind != dtype(out.dtype):
        raise InvalidArgument(f"out_dtype is {kind.name}, but out is {dtype(out.dtype).name}: leave one out")


def tensors_of(bound: Any) -> tuple[Any, ...]:
    return tuple(bound.operands.values()) if isinstance(bound, EpilogueArguments) else ()


def bound_epilogue(epilogue: Any, operands: dict[str, Any], caller: Callable[..., Any], name: str = "") -> Any:
    """The epilogue with its operands, in a form that GemmArguments accepts. `name` is that of the function in messages, if
    it is not the caller's."""
    if epilogue is None or isinstance(epilogue, EpilogueArguments):
        if operands:
            import inspect

            instead = nearest(operands.keys(), list(inspect.signature(caller).parameters)[:-1])
            raise InvalidArgument(
                f"{name or caller.__name__}() has no argument {', '.join(sorted(operands))}{instead if '?' in instead else ''}"
                + _why_unused(epilogue, "?" in instead)
            )
        return epilogue
    if isinstance(epilogue, Epilogue) and not operands:
        return epilogue
    made = EpilogueArguments(epilogue, **operands)
    made._caller = caller
    return made


def _why_unused(epilogue: EpilogueArguments | None, is_misspelt: bool) -> str:
    if epilogue is not None:
        return "; the operands of an EpilogueArguments are given to it"
    if is_misspelt:
        return ""
    return "; operands of an epilogue need one: epilogue=lambda acc, bias: acc + bias, bias=..."


def first_of(operand: Any, name: str) -> Any:
    """The operand, or the first array of a list."""
    if isinstance(operand, PointerArray):
        raise InvalidArgument(f"{name} is a PointerArray, of which no array can be made: pass out=")
    if not isinstance(operand, (list, tuple)):
        return operand
    if not operand:
        raise InvalidArgument(f"{name} is an empty list: it must have at least one array")
    return operand[0]


def no_array(name: str, value: Any, attribute: str = "shape", instead: str = "pass out=") -> str:
    kind = type(value).__name__
    if any(hasattr(value, each) for each in ("__dlpack__", "__cuda_array_interface__", "__array_interface__")):
        return f"{name}, a {kind}, has no attribute {attribute}: {instead}"
    lists = ", or a list of numbers or matrices" if instead == "pass out=" else ""
    return f"{name} must be an array of PyTorch, NumPy, CuPy or JAX{lists}, got a {kind}"


_OPERAND = re.compile(r"\b[ABC]\b(?![*=])")


def in_callers_words(message: str) -> str:
    """A message about the operands of a GEMM, with the names of matmul's parameters."""
    return _OPERAND.sub(lambda found: found[0].lower(), message.replace("A*B", "a @ b"))


# What C++ says about strides that no kernel reads, after the name of the operand.
_STRIDES = re.compile(r"^(\w+)(\[\d+\])? (?:of shape \S+ needs a leading dimension|has a negative stride|must have one stride of 1)")


def with_packing_hint(message: str, arrays: dict[str, Any], bound: Any = None) -> str:
    """The message with what to pass in place of the array whose strides it refuses. `arrays` are those of the call by their
    names in messages, but for those of its epilogue, `bound`."""
    found = _STRIDES.match(message)
    if found is None:
        return message
    name = found[1]
    written = {"out"}
    if isinstance(bound, EpilogueArguments):
        arrays = {**bound.operands, **arrays}
        written |= bound._outputs()
    array: Any = arrays.get(name)
    if name in written:
        return f"{message}; pass an array whose rows or columns are contiguous"
    matrices: list[Any] = list(array) if isinstance(array, (list, tuple)) else []
    is_list = len(matrices) > 0
    if is_list:
        array = matrices[0]
    if not hasattr(array, "shape"):
        return message
    each = "each" if is_list else name
    if hasattr(array, "contiguous"):
        packed = f"{each}.contiguous()"
    else:
        module = "cupy" if type(array).__module__.startswith("cupy") else "numpy"
        packed = f"{module}.ascontiguousarray({each})"
    return f"{message}; pass [{packed} for each in {name}]" if is_list else f"{message}; pass {packed}"


def compute_type(a: Any) -> DType:
    return DType.f64 if _type_of(a) == DType.f64 else DType.f32


def _type_of(a: Any) -> DType:
    if not hasattr(a, "dtype"):
        raise InvalidArgument(no_array("a", a, "dtype"))
    try:
        return dtype(a.dtype)
    except InvalidArgument as error:
        raise InvalidArgument(f"a: {error}") from None


def out_type(a: Any) -> DType:
    return _default_output(_type_of(a))


def type_of_result(out_dtype: Any, a: Any) -> DType:
    """The type that a caller gave as `out_dtype`; None: that of products of arrays like `a`."""
    if out_dtype is None:
        return out_type(a)
    try:
        return dtype(out_dtype)
    except InvalidArgument as error:
        raise InvalidArgument(f"out_dtype: {error}") from None
