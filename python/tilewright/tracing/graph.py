"""The graph of elementwise operations that a function computes, without duplicates and with NumPy's shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .errors import Untraceable

Broadcast = Literal["full", "row", "column", "single"]
Reduction = Literal["sum", "max", "min"]
Logical = Literal["&", "|", "^"]
Columns = Literal["none", "product", "pair"]
BROADCASTS: tuple[Broadcast, ...] = ("full", "row", "column", "single")

# Functions of the epilogue language with the number of their inputs.
FUNCTIONS = {
    **dict.fromkeys(
        "abs neg sqrt rsqrt reciprocal exp log log1p floor round erf tanh square relu sigmoid silu hardswish gelu "
        "gelu_tanh softplus mish relu_gradient tanh_gradient sigmoid_gradient silu_gradient hardswish_gradient "
        "gelu_gradient gelu_tanh_gradient softplus_gradient even odd glu reglu swiglu geglu geglu_tanh".split(),
        1,
    ),
    **dict.fromkeys("min max pow leaky_relu leaky_relu_gradient".split(), 2),
    **dict.fromkeys("fma where clamp".split(), 3),
}
ARITHMETIC = ("+", "-", "*", "/")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
GATED = ("glu", "reglu", "swiglu", "geglu", "geglu_tanh")
INTEGERS = ("s8", "u8", "s32")
PAIRS = "interleave gates and values: even columns are x[..., 0::2], odd ones x[..., 1::2]"


@dataclass(frozen=True)
class Node:
    """An operation on earlier nodes, or a leaf: constant, acc, C, scalar, a broadcast, row_index or column_index."""

    op: str
    inputs: tuple[int, ...] = ()
    label: str = ""  # the parameter of a scalar or a tensor, the type of a convert, the digits of a constant

    @property
    def is_leaf(self) -> bool:
        return not self.inputs


@dataclass(frozen=True)
class Traced:
    """A value for each element.

    `columns` says what a column of it belongs to: a column of A*B, a pair of columns of A*B, or none.
    """

    node: int
    shape: tuple[int, ...]
    columns: Columns = "none"
    is_truth: bool = False  # the value of a condition, 1 or 0
    is_integral: bool = False
    is_view: bool = False  # in Python, it shares the memory of another array


@dataclass(frozen=True)
class Reduced:
    """The result of a reduction, which is not complete before all of D is computed."""

    node: int
    reduction: Reduction
    broadcast: Broadcast
    shape: tuple[int, ...]


Operand = object  # converted by Graph.operand(), which refuses values that are not elementwise


def digits(number: float) -> str:
    """A number in the epilogue language. Raises Untraceable if it is not finite."""
    try:
        value = float(number)
    except OverflowError as error:
        raise Untraceable("the number does not fit in f64") from error
    if not math.isfinite(value):
        raise Untraceable(f"constants of an epilogue must be finite, got {value}", "bind it as a scalar")
    is_whole = value == int(value) and abs(value) < 2**53 and not (value == 0 and math.copysign(1, value) < 0)
    return str(int(value)) if is_whole else repr(value)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that NumPy broadcasts the shapes to. Raises Untraceable if they do not broadcast."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for extents in zip(*padded, strict=True):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            different = " and ".join(map(str, dict.fromkeys(shape for shape in shapes if math.prod(shape) != 1)))
            is_vector = any(len(shape) == 1 for shape in shapes)
            raise Untraceable(
                f"shapes {different} do not broadcast", "x[:, None] for one value per row" if is_vector else None
            )
        result.append(wide.pop() if wide else 1)
    return tuple(result)


class Graph:
    """Adds nodes; a node that already exists is returned instead. Methods raise Untraceable."""

    def __init__(self, problem: tuple[int, ...]) -> None:
        self.problem = problem  # (m, n) of A*B, or (batch, m, n)
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}  # the names of variables that the function assigns nodes to
        self._numbers: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        number = self._numbers.setdefault(node, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return number

    def name(self, value: Traced, name: str) -> None:
        self.names.setdefault(value.node, name)

    # Leaves.

    def accumulator(self) -> Traced:
        return Traced(self.add(Node("acc")), self.problem, "product")

    def source(self) -> Traced:
        return Traced(self.add(Node("C")), self.problem, "product")

    def scalar(self, name: str) -> Traced:
        return Traced(self.add(Node("scalar", label=name)), ())

    def tensor(self, name: str, shape: tuple[int, ...]) -> Traced:
        """A vector is a row, along N, unless the function turns it by `x[:, None]`."""
        *_, m, n = self.problem
        padded = (1, 1) + shape
        fits = len(shape) <= len(self.problem) and (shape[-1:] == (m,) if len(shape) == 1 else False)
        if not fits:
            fits = padded[-1] in (1, n) and padded[-2] in (1, m)
        is_batch_right = len(shape) < 3 or (len(shape) == len(self.problem) and shape[0] in (1, self.problem[0]))
        if not fits or not is_batch_right:
            reason = f"'{name}' of shape {shape} does not broadcast to A*B of shape {self.problem}"
            raise Untraceable(reason, self._vectors_of_each_matrix(shape))
        mode = BROADCASTS[2 * (padded[-1] == 1) + (padded[-2] == 1)]
        return Traced(self.add(Node(mode, label=name)), shape, "product" if padded[-1] != 1 else "none")

    def _vectors_of_each_matrix(self, shape: tuple[int, ...]) -> str | None:
        """What to bind instead of an array of this shape if it has a vector, or a number, for each matrix of a batch."""
        if len(self.problem) != 3:
            return None
        batch, m, n = self.problem
        if shape == (batch,):
            return f"an array of shape {(batch, 1, 1)}, for one value per matrix"
        if shape == (batch, m):
            return f"an array of shape {(batch, m, 1)}, for one value per row of each matrix"
        if shape == (batch, n):
            return f"an array of shape {(batch, 1, n)}, for one value per column of each matrix"
        return None

    def constant(self, number: float) -> Traced:
        return Traced(
            self.add(Node("constant", label=digits(number))),
            (),
            "none",
            isinstance(number, bool),
            number == int(number),
        )

    def column_index(self, extent: int) -> Traced:
        """The vector 0, 1, 2, ..."""
        return Traced(self.add(Node("column_index")), (extent,), "product", is_integral=True)

    def operand(self, value: object) -> Traced:
        """Converts a number or a traced value to a Traced."""
        if isinstance(value, Traced):
            return value
        if isinstance(value, (bool, int, float)):
            return self.constant(value)
        if isinstance(value, Reduced):
            raise Untraceable(
                "the result of a reduction is not complete before all of D is computed: it can only be returned",
                "return it, and compute with it afterwards",
            )
        is_array = hasattr(type(value), "shape") or hasattr(type(value), "__array__")
        instead = "a parameter that the array is bound to" if is_array else None
        raise Untraceable(f"expected an elementwise value, got {describe(value)}", instead)

    # Operations.

    def apply(self, op: str, *operands: Operand, label: str = "") -> Traced:
        """Applies an operator or a function of the language to operands, which are broadcast."""
        values = [self.operand(operand) for operand in operands]
        columns: set[Columns] = {value.columns for value in values if value.columns != "none"}
        if len(columns) > 1:
            raise Untraceable("values of column pairs do not broadcast with values of single columns", PAIRS)
        shape = broadcast(*(value.shape for value in values))
        node = self.add(Node(op, tuple(value.node for value in values), label))
        return Traced(node, shape, columns.pop() if columns else "none")

    def arithmetic(self, op: str, x: Operand, y: Operand) -> Traced:
        x, y = self.operand(x), self.operand(y)
        if op in ("+", "-") and x.is_truth and y.is_truth:
            raise Untraceable(f"'{op}' of two conditions", "x | y, x & y or x ^ y")
        value = self.apply(op, x, y)
        return replace(value, is_integral=op != "/" and x.is_integral and y.is_integral)

    def compare(self, op: str, x: Operand, y: Operand) -> Traced:
        return replace(self.apply(op, x, y), is_truth=True, is_integral=True)

    def logical(self, op: Logical, x: Operand, y: Operand) -> Traced:
        for side in map(self.operand, (x, y)):
            if not side.is_truth:
                raise Untraceable(f"'{op}' takes conditions only", "compare first: (x > 0) & (y > 0)")
        name = {"&": "*", "|": "max", "^": "!="}[op]
        return replace(self.apply(name, x, y), is_truth=True, is_integral=True)

    def invert(self, x: Operand) -> Traced:
        if not self.operand(x).is_truth:
            raise Untraceable("'~' and 'not' take conditions only", "compare first: ~(x > 0)")
        return replace(self.apply("-", 1, x), is_truth=True, is_integral=True)

    def negate(self, x: Operand) -> Traced:
        value = self.operand(x)
        if value.is_truth:
            raise Untraceable("'-' of a condition", "~x")
        return replace(self.apply("negate", value), is_integral=value.is_integral)

    def power(self, x: Operand, y: Operand) -> Traced:
        """Writes small integer powers as products, and powers of 0.5 and -0.5 as roots."""
        if isinstance(y, Traced) or isinstance(x, (int, float)):
            return self.apply("pow", x, y)
        exponents = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", 2: "square"}
        if y in exponents:
            return self.apply(exponents[y], x)
        if y == 1:
            return replace(self.operand(x))
        if y == 3:
            return self.apply("*", self.apply("square", x), x)
        if y == 4:
            return self.apply("square", self.apply("square", x))
        return self.apply("pow", x, y)

    def where(self, condition: Operand, x: Operand, y: Operand) -> Traced:
        value = self.apply("where", condition, x, y)
        return replace(value, is_integral=self.operand(x).is_integral and self.operand(y).is_integral)

    def convert(self, x: Operand, type_name: str) -> Traced:
        value = self.operand(x)
        is_integer = type_name in INTEGERS
        if is_integer and not value.is_integral:
            raise Untraceable(
                "a cast to an integer type truncates in Python, but rounds in an epilogue",
                "cast round(x) or floor(x)",
            )
        return replace(self.apply("convert", value, label=type_name), is_integral=is_integer or value.is_integral)

    def half(self, x: Operand, op: str) -> Traced:
        """Applies `op` to pairs of columns: even (x[..., 0::2]), odd (x[..., 1::2]), or a gated activation of both."""
        value = self.operand(x)
        if value.columns != "product":
            raise Untraceable("even and odd columns can only be taken of values that have the columns of A*B")
        if value.shape[-1] % 2:
            raise Untraceable(f"the number of columns must be even, got {value.shape[-1]}")
        shape = (*value.shape[:-1], value.shape[-1] // 2)
        return replace(value, node=self.add(Node(op, (value.node,))), shape=shape, columns="pair", is_view=True)

    def insert_axis(self, x: Operand, axis: int) -> Traced:
        """x[:, None] makes a vector a column, x[None, :] a row; x[None] of a matrix adds the batch mode."""
        value = self.operand(x)
        rank = len(value.shape) + 1
        if not -rank <= axis < rank:
            raise Untraceable(f"axis {axis} is out of range for {rank} axes")
        axis %= rank
        if axis != 0 and rank != 2:
            raise Untraceable("only a vector can get an axis other than the first", "x[:, None] of a vector")
        if rank > len(self.problem):
            raise Untraceable(f"the value would have {rank} axes, but A*B has {len(self.problem)}")
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        if axis == 0 or value.columns == "none":
            return replace(value, shape=shape, is_view=True)
        if value.columns == "pair":
            raise Untraceable("a vector of column pairs cannot become a column")
        return replace(value, node=self._transposed(value.node), shape=shape, columns="none", is_view=True)

    def _transposed(self, root: int) -> int:
        """The node with its vectors along M instead of N."""
        transposed = {"row": "column", "column_index": "row_index"}
        needed = {root}
        for number in range(root, -1, -1):
            if number in needed:
                needed.update(self.nodes[number].inputs)
        copies: dict[int, int] = {}
        for number in sorted(needed):
            node = self.nodes[number]
            inputs = tuple(copies[each] for each in node.inputs)
            copies[number] = self.add(replace(node, op=transposed.get(node.op, node.op), inputs=inputs))
        return copies[root]

    def reduce(self, reduction: Reduction, x: Operand, axis: object = None, keepdims: object = False) -> Reduced:
        value = self.operand(x)
        if value.columns == "pair":
            raise Untraceable("a gated epilogue cannot have reductions")
        if value.shape != self.problem:
            raise Untraceable(f"a reduced value must have the shape {self.problem}, got {value.shape}")
        rank = len(self.problem)
        axes = self._axes(axis, rank)
        if 0 in axes and rank == 3:
            raise Untraceable("a reduction over the batch is not possible", "dim=(-2, -1), -1 or -2")
        if not isinstance(keepdims, bool):
            raise Untraceable(f"keepdims must be True or False, got {describe(keepdims)}")
        mode: Broadcast = "single" if len(axes) == 2 else "column" if rank - 1 in axes else "row"
        kept = [1 if number in axes else extent for number, extent in enumerate(self.problem)]
        shape = kept if keepdims else [extent for number, extent in enumerate(kept) if number not in axes]
        return Reduced(value.node, reduction, mode, tuple(shape))

    @staticmethod
    def _axes(axis: object, rank: int) -> set[int]:
        if axis is None:
            return set(range(rank))
        listed: Sequence[object] = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes: set[int] = set()
        for each in listed:
            if isinstance(each, bool) or not isinstance(each, int):
                raise Untraceable(f"an axis must be an integer constant, got {describe(each)}")
            if not -rank <= each < rank or each % rank in axes:
                raise Untraceable(f"axis {each} is out of range for {rank} axes, or given twice")
            axes.add(each % rank)
        if not axes:
            raise Untraceable("a reduction needs at least one axis")
        return axes


def describe(value: object) -> str:
    """The kind of a value, for messages."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value) if not isinstance(value, int) or abs(value) < 2**63 else "a large integer"
    if isinstance(value, Traced):
        return "an elementwise value" if value.shape else "a launch argument"
    if isinstance(value, Reduced):
        return "the result of a reduction"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"'{value}'" if type(value).__module__.startswith("tilewright.tracing") else f"a {type(value).__name__}"
