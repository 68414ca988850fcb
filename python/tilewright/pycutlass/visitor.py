"""EpilogueVisitTree: epilogues that are written as Python methods."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tilewright._tilewright import DType, Epilogue
from tilewright.epilogue import nearest
from tilewright.errors import InvalidArgument
from tilewright.tracing import trace, traced_as

from .array import Memory, View, item_bytes, memory_of, packed
from .cutlass.element import DataType
from .tile import TileDescription

KINDS = ("tensor", "row", "column", "scalar")


def _whole_sum(tensor: Any, direction: str, math: str, factor: int) -> Any:
    assert direction in ("row", "column"), "the second argument of reduction_op() must be 'row' or 'column'"
    assert math == "Add", "the third argument of reduction_op() must be 'Add'"
    return tensor.sum(axis=-1) if direction == "row" else tensor.sum(axis=-2)


@traced_as(_whole_sum)
def reduction_op(tensor: Any, direction: str, math: str, factor: int) -> Any:
    """Sums of each row ("row") or column ("column"), as a flat array of shape (batch, parts, rows or columns).

    PyCUTLASS has a partial sum for each part of `factor` elements. Here the first part has the whole sum and the others
    are 0, as Tilewright's kernels store it, so that the total is the same. Raises InvalidArgument unless `math` is
    "Add".
    """
    if direction not in ("row", "column") or math != "Add":
        raise InvalidArgument(f"reduction_op() takes 'row' or 'column' and 'Add', got {direction!r} and {math!r}")
    if factor < 1:
        raise InvalidArgument(f"factor must be at least 1, got {factor}")
    axis = -1 if direction == "row" else -2
    values = tensor.reshape((-1, *tensor.shape[-2:]))
    sums = values.sum(axis=axis)
    parts = numpy.zeros((sums.shape[0], -(-values.shape[axis] // factor), sums.shape[1]), sums.dtype)
    parts[:, 0] = sums
    return parts.ravel()


@dataclass(frozen=True)
class BoundVisitor:
    """The epilogue of a visitor, with its tensors for one problem."""

    epilogue: Epilogue
    alpha: float
    beta: float
    name_of_d: str  # the variable that is stored to D
    tensors: Mapping[str, View]
    cleared: Sequence[Any]  # arrays that are zeroed before each run
    memories: Sequence[Memory]


class VisitorOutputOp:
    """The arguments of a visitor by name, and the problem_size."""

    def __init__(
        self, visitor: EpilogueVisitTree, problem_size: Sequence[int] | None, operands: dict[str, Any]
    ) -> None:
        self.visitor = visitor
        self.problem_size = None if problem_size is None else [operator.index(extent) for extent in problem_size]
        self.operands = operands

    def sync(self, stream_sync: bool = True) -> None:
        """Has no effect: GemmArguments.sync() waits for the results."""


class EpilogueVisitTree:
    """Base class of epilogues that are written as a method __call__.

    Its parameters are `accum`, the accumulators A * B, and others that are annotated with their kind: "tensor" (m x n,
    in the layout of C), "row" (n), "column" (m) or "scalar". The values that it returns, including those of
    reduction_op(), are stored to arrays with the names of the variables. The method is traced (see tilewright.tracing), so that it may use
    everything that Tilewright's epilogues can compute.
    """

    def __init__(
        self,
        elementwise_functor: object,
        tile_description: TileDescription,
        element_accumulator: DataType,
        elements_per_access: int,
        element_compute: DataType,
        element_output: DataType,
    ) -> None:
        self.elementwise_functor = elementwise_functor
        self.tile_description = tile_description
        self.element_accumulator = element_accumulator
        self.elements_per_access = elements_per_access
        self.element_compute = element_compute
        self.element_output = element_output

    def initialize(self) -> None:
        """Traces the method to check it. Raises TraceError and InvalidArgument."""
        kinds = self._kinds()
        self._trace((16, 32), kinds, {name: _shape(kind, None, 16, 32) for name, kind in kinds.items()}, {})

    def epilogue_type(self, *, problem_size: Sequence[int] | None = None, **operands: Any) -> VisitorOutputOp:
        """Makes arguments, whose names are the method's parameters and the variables that it returns."""
        if not (problem_size is None or isinstance(problem_size, Sequence)):
            raise TypeError(f"problem_size must be a list of ints or None, got {problem_size!r:.80}")
        return VisitorOutputOp(self, problem_size, operands)

    def bind(
        self, output_op: VisitorOutputOp, batch: int | None, m: int, n: int, is_column_major: bool = False
    ) -> BoundVisitor:
        """The epilogue for a problem, whose C may be column-major. Raises InvalidArgument, and TraceError if the method
        cannot be traced."""
        if output_op.problem_size is not None and output_op.problem_size[:2] != [m, n]:
            raise InvalidArgument(
                f"the visitor's problem_size is {output_op.problem_size}, but the problem is {[m, n]}"
            )
        kinds = self._kinds()
        operands = output_op.operands
        missing = [name for name in kinds if name not in operands]
        if missing:
            raise InvalidArgument(f"the visitor needs {', '.join(missing)}: epilogue_type({missing[0]}=...)")
        numbers = {name: _number(name, operands[name]) for name, kind in kinds.items() if kind == "scalar"}
        memories = {name: memory_of(operands[name], name) for name, kind in kinds.items() if kind != "scalar"}
        views = {
            name: self._view(memory, name, kinds[name], batch, m, n, is_column_major)
            for name, memory in memories.items()
        }
        problem = (m, n) if batch is None else (batch, m, n)
        traced = self._trace(problem, kinds, {name: view.shape for name, view in views.items()}, numbers)
        tensors = {each.label: views[each.name] for each in traced.inputs}
        used = [*kinds, *(output.name for output in traced.outputs)]
        unused = [name for name in operands if name not in used]
        if unused:
            raise InvalidArgument(
                f"the visitor has no parameter or output named {', '.join(unused)}{nearest(unused, used)}"
            )
        outputs = [output for output in traced.outputs if output.label != "D"]
        name_of_d = next(output.name for output in traced.outputs if output.label == "D")
        cleared: list[Any] = []
        for output in outputs:
            if output.name not in operands:
                raise InvalidArgument(f"the visitor returns {output.name}: epilogue_type({output.name}=...)")
            memory = memories[output.name] = memory_of(operands[output.name], output.name)
            kind = "tensor" if output.broadcast == "full" else output.broadcast
            tensors[output.label], parts = self._output(memory, output.name, kind, batch, m, n, is_column_major)
            if parts > 1:
                cleared.append(operands[output.name])
        is_wide = self.element_compute in (DataType.float64, DataType.int32)
        compute = self.element_compute.kind if is_wide else DType.f32
        epilogue = Epilogue(traced.text, compute, {each.label: each.value for each in traced.scalars})
        alpha, beta = numbers.get("alpha", 1.0), numbers.get("beta", 0.0)
        return BoundVisitor(epilogue, alpha, beta, name_of_d, tensors, cleared, [*memories.values()])

    def _kinds(self) -> dict[str, str]:
        """The kind of each parameter except accum."""
        function = inspect.getattr_static(self, "__call__", None)
        if not inspect.isfunction(function):
            raise InvalidArgument(f"{type(self).__name__} has no method __call__(self, accum, ...)")
        kinds: dict[str, str] = {}
        for name, parameter in [*inspect.signature(function).parameters.items()][1:]:
            is_constant = parameter.default is not parameter.empty and parameter.annotation is parameter.empty
            if name == "accum" or is_constant:
                continue
            kind = str(function.__annotations__.get(name)).strip("'\"")
            if kind not in KINDS:
                raise InvalidArgument(
                    f"'{name}' of {type(self).__name__} is annotated {kind!r}, must be one of {KINDS}"
                )
            kinds[name] = kind
        return kinds

    def _trace(
        self,
        problem: tuple[int, ...],
        kinds: Mapping[str, str],
        shapes: Mapping[str, tuple[int, ...]],
        numbers: Mapping[str, float],
    ) -> Any:
        function: Any = self
        return trace(
            function.__call__,
            problem=problem,
            shapes={name: shapes[name] for name, kind in kinds.items() if kind != "scalar"},
            scalars={name: numbers.get(name, 1.0) for name, kind in kinds.items() if kind == "scalar"},
        )

    def _view(
        self, memory: Memory, name: str, kind: str, batch: int | None, m: int, n: int, is_column_major: bool
    ) -> View:
        """A view of an input: a batch, or one matrix for the whole batch."""
        shape = _shape(kind, batch, m, n)
        one = _shape(kind, None, m, n)
        _check_direction(memory, name, kind, m, n)
        if batch is not None and memory.elements is not None and memory.elements < _count(shape):
            shape = one if memory.elements >= _count(one) else shape
        _check(memory, name, _count(shape), shape)
        strides = _strides(shape, kind == "tensor" and is_column_major)
        return View(memory, memory.kind or self.element_output.kind, shape, strides)

    def _output(
        self, memory: Memory, name: str, kind: str, batch: int | None, m: int, n: int, is_column_major: bool
    ) -> tuple[View, int]:
        """A view of an output, and the number of its parts, which is 1 except for reductions."""
        shape = _shape(kind, batch, m, n)
        _check(memory, name, _count(shape), shape)
        if memory.is_read_only:
            raise InvalidArgument(f"{name} is read-only")
        if kind == "tensor":
            return View(memory, memory.kind or self.element_output.kind, shape, _strides(shape, is_column_major)), 1
        parts = max(1, (memory.elements or 0) // max(1, _count(shape)))
        strides = packed(shape)
        if batch is not None:
            strides = (strides[0] * parts, *strides[1:])
        return View(memory, memory.kind or self.element_output.kind, shape, strides), parts


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"'{name}' must be a number, got {type(value).__name__}") from None


def _shape(kind: str, batch: int | None, m: int, n: int) -> tuple[int, ...]:
    matrix = {"tensor": (m, n), "row": (1, n), "column": (m, 1), "scalar": ()}[kind]
    return matrix if batch is None or kind == "scalar" else (batch, *matrix)


def _strides(shape: tuple[int, ...], is_column_major: bool) -> tuple[int, ...]:
    """The strides of matrices without gaps."""
    if not is_column_major:
        return packed(shape)
    *batch, m, n = shape
    return (*(m * n for _ in batch), 1, max(1, m))


def _check_direction(memory: Memory, name: str, kind: str, m: int, n: int) -> None:
    """Raises InvalidArgument if the shape of a row is that of a column, or the other way round."""
    shapes = {"row": (1, n), "column": (m, 1)}
    given = tuple(memory.shape[-2:])
    if kind in shapes and given != shapes[kind] and given in shapes.values():
        turned = "column" if kind == "row" else "row"
        raise InvalidArgument(f"'{name}' is annotated '{kind}', but the array has the shape {given} of a '{turned}'")


def _check(memory: Memory, name: str, elements: int, shape: tuple[int, ...]) -> None:
    if memory.elements is None:
        return
    if not memory.is_contiguous:
        raise InvalidArgument(
            f"{name} has strides {memory.strides}: its elements must be in memory in the order of its indices, without "
            "gaps"
        )
    if memory.elements < elements:
        kind = memory.kind
        size = item_bytes(kind) if kind is not None else 0
        raise InvalidArgument(
            f"{name} needs {'x'.join(map(str, shape))} = {elements} elements of {size} bytes, got {memory.elements}"
        )


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
