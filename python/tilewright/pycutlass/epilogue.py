"""PyCUTLASS's epilogue functors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright._tilewright import DType, Epilogue
from tilewright.errors import InvalidArgument, Unsupported
from tilewright.missing_name import refuse_unknown

from .activation import ActivationFunctor, gelu, hardswish, identity, leaky_relu, relu, sigmoid, silu, tanh
from .cutlass.element import DataType
from .extents import count
from .visitor import EpilogueVisitTree, reduction_op


@dataclass(frozen=True)
class OutputOp:
    """The arguments of an epilogue, which `operation.epilogue_type(alpha, beta, ...)` makes."""

    functor: EpilogueFunctorBase
    alpha: float
    beta: float
    scalars: Mapping[str, float] = field(default_factory=dict)


class EpilogueFunctorBase:
    """Base class of the functors: element types, and the expression for D."""

    def __init__(
        self,
        element_output: DataType,
        epilogue_vector_length: int,
        element_accumulator: DataType | None,
        element_epilogue: DataType | None,
        activation: type[ActivationFunctor] = identity,
        clamps: bool = False,
    ) -> None:
        self.element_output = element_output
        self.epilogue_vector_length = count(epilogue_vector_length, "epilogue_vector_length")
        self.element_accumulator = element_output if element_accumulator is None else element_accumulator
        self.element_epilogue = element_output if element_epilogue is None else element_epilogue
        self.activation_functor = activation
        self.clamps = clamps
        for element in (self.element_output, self.element_accumulator, self.element_epilogue):
            if not isinstance(element, DataType):
                raise TypeError(f"an element type must be a DataType, such as cutlass.float16, got {element!r:.80}")
            element.kind  # noqa: B018  raises Unsupported
        self.is_accumulator_given = element_accumulator is not None

    @property
    def compute(self) -> DType:
        """The type that the epilogue computes in: f64, s32, or f32 for all others."""
        if self.element_epilogue in (DataType.float64, DataType.int32):
            return self.element_epilogue.kind
        return DType.f32

    def epilogue_type(self, alpha: float, beta: float, *activation_arguments: float) -> OutputOp:
        """Makes the arguments of the epilogue. Raises InvalidArgument unless they are numbers, and for too many."""
        parameters = self.activation_functor.parameters
        if len(activation_arguments) > len(parameters):
            raise InvalidArgument(
                f"{self.activation_functor.__name__} takes {len(parameters)} arguments besides alpha and beta, "
                f"got {len(activation_arguments)}"
            )
        given = dict(zip(parameters, activation_arguments, strict=False))
        scalars = {name: _number(name, value) for name, value in {**parameters, **given}.items()}
        return OutputOp(self, _number("alpha", alpha), _number("beta", beta), scalars)

    def graph(self, output_op: OutputOp, source: str | None = "C") -> Epilogue:
        """The epilogue with these arguments. `source` is the tensor that beta multiplies, or None."""
        value = "alpha * acc" if source is None else f"alpha * acc + beta * {source}"
        if self.clamps and self.element_output in _RANGES:
            least, greatest = _RANGES[self.element_output]
            value = f"clamp({value}, {least}, {greatest})"
        function = self.activation_functor.function
        if function != "identity":
            value = f"{function}({', '.join([value, *(f'${name}' for name in output_op.scalars)])})"
        return Epilogue(f"D = {value}", self.compute, dict(output_op.scalars))


# The ranges to clamp to. Stores to s32 and 8-bit floats saturate anyway.
_RANGES = {
    DataType.int8: ("-128", "127"),
    DataType.u8: ("0", "255"),
    DataType.float16: ("-65504", "65504"),
}


class LinearCombination(EpilogueFunctorBase):
    """D = alpha * acc + beta * C.

    element_output           the type of C and D
    epilogue_vector_length   has no effect: Tilewright's kernels choose the width of their accesses
    element_accumulator      the accumulator type of the math instruction
    element_epilogue         the type in which the epilogue computes; f16 and bf16 are replaced by f32
    """

    def __init__(
        self,
        element_output: DataType,
        epilogue_vector_length: int,
        element_accumulator: DataType | None = None,
        element_epilogue: DataType | None = None,
    ) -> None:
        super().__init__(element_output, epilogue_vector_length, element_accumulator, element_epilogue)


class LinearCombinationClamp(EpilogueFunctorBase):
    """D = alpha * acc + beta * C, clamped to the range of D's type."""

    def __init__(
        self,
        element_output: DataType,
        epilogue_vector_length: int,
        element_accumulator: DataType | None = None,
        element_epilogue: DataType | None = None,
    ) -> None:
        super().__init__(element_output, epilogue_vector_length, element_accumulator, element_epilogue, clamps=True)


class FastLinearCombinationClamp(EpilogueFunctorBase):
    """D = alpha * acc + beta * C for s32 accumulators, computed in f32 and clamped to the range of D's type. Unlike
    CUTLASS's, it is exact for any K."""

    def __init__(self, element_output: DataType, epilogue_vector_length: int, *args: object) -> None:
        super().__init__(element_output, epilogue_vector_length, DataType.int32, DataType.float32, clamps=True)


class LinearCombinationGeneric(EpilogueFunctorBase):
    """D = f(alpha * acc + beta * C), where f is an ActivationFunctor, given as a class or an instance."""

    def __init__(
        self,
        activation_functor: type[ActivationFunctor] | ActivationFunctor,
        element_output: DataType,
        epilogue_vector_length: int,
        element_accumulator: DataType | None = None,
        element_epilogue: DataType | None = None,
    ) -> None:
        functor = activation_functor if isinstance(activation_functor, type) else type(activation_functor)
        if not issubclass(functor, ActivationFunctor):
            raise InvalidArgument(
                "activation_functor must be an activation of pycutlass, as relu or relu(cutlass.float32), "
                f"not its name: got {activation_functor!r:.80}"
            )
        super().__init__(element_output, epilogue_vector_length, element_accumulator, element_epilogue, functor)


class LayerNorm:
    """PyCUTLASS's partial moments of rows, which are not supported: the constructor raises Unsupported."""

    def __init__(self, *args: object, **keywords: object) -> None:
        raise Unsupported(
            "LayerNorm is not supported: return D, reduction_op(D, 'row', 'Add', n) and the same of D * D from an "
            "EpilogueVisitTree, and normalise afterwards"
        )


EpilogueType = Callable[..., Any]


def _number(name: str, value: object) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(f"{name} must be a number, got {value!r:.80}")


__all__ = [
    "ActivationFunctor",
    "EpilogueFunctorBase",
    "EpilogueType",
    "EpilogueVisitTree",
    "FastLinearCombinationClamp",
    "LayerNorm",
    "LinearCombination",
    "LinearCombinationClamp",
    "LinearCombinationGeneric",
    "OutputOp",
    "gelu",
    "hardswish",
    "identity",
    "leaky_relu",
    "reduction_op",
    "relu",
    "sigmoid",
    "silu",
    "tanh",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
