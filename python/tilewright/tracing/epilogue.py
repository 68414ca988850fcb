"""A function with what is bound to its parameters, traced to a text and what that text reads and stores."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .callee import Callee, admit, callee_of
from .errors import TraceError, Untraceable
from .graph import GATED, Graph, Reduced, Broadcast, Traced, broadcast, describe
from .interpreter import Interpreter, Returned
from .source import parse_text
from .text import Labels, Store, live_nodes, render

MOST_TENSORS = 16  # that are read, and as many that are stored
MOST_SCALARS = 16
MOST_NODES = 512


@dataclass(frozen=True)
class SourceTensor:
    """A tensor that the epilogue reads."""

    name: str  # of the parameter
    label: str  # in the text
    broadcast: Broadcast  # full: m x n, row: 1 x n, column: m x 1, single: 1 x 1; each for one matrix of a batch


@dataclass(frozen=True)
class Scalar:
    """A launch argument: another value needs no other kernel."""

    name: str
    label: str  # "alpha" and "beta" are those of the product
    value: float


@dataclass(frozen=True)
class Output:
    """What the function returns, in place of which the epilogue stores it."""

    name: str  # of the variable that is returned; "D" where D is no variable
    label: str  # in the text: "D" of the first, or of the one named so
    broadcast: Broadcast
    shape: tuple[int, ...]  # as the function returns it; of D all of it
    reduction: str | None = None  # "sum", "max" or "min"


@dataclass(frozen=True)
class TracedEpilogue:
    """A function as text of the epilogue language, and what its names stand for."""

    text: str
    sources: tuple[SourceTensor, ...]  # that the text reads, in order of the parameters
    scalars: tuple[Scalar, ...]  # the same
    outputs: tuple[Output, ...]  # in the order in which the function returns them
    reads_c: bool
    pairs_columns: bool  # D has a column for two of A*B


@dataclass(frozen=True)
class _Return:
    """One of the values that the function returns."""

    name: str | None
    value: object
    node: ast.expr


def trace(
    function: Callable[..., object] | str,
    *,
    problem: Sequence[int],
    shapes: Mapping[str, Sequence[int]] | None = None,
    scalars: Mapping[str, float] | None = None,
    constants: Mapping[str, object] | None = None,
    source: str | None = None,
) -> TracedEpilogue:
    """The epilogue that a function of NumPy, PyTorch or JAX arrays computes.

    The function is read, not called: its statements are followed with the values of its closure, its globals and its
    defaults. It may be a function, a lambda, a method, a functools.partial or an object with __call__, or a text whose
    last function it is. Its parameter `accum`, else `acc`, else the first one is the element of A*B.

    problem    (m, n) of A*B, or (batch, m, n)
    shapes     parameters that are tensors, of shapes that broadcast to `problem` as in NumPy; (m,) is for x[:, None]
    scalars    parameters that are launch arguments: `alpha` and `beta` those of the product
    constants  parameters that are part of the code: numbers, booleans, strings and None, as defaults are
    source     the parameter that is C of the product

    What is returned is stored: the variable D, or the first, to D, the others to tensors of their names. Reductions can
    only be returned. Raises TraceError.
    """
    shapes, scalars, constants = dict(shapes or {}), dict(scalars or {}), dict(constants or {})
    graph = Graph(_extents(problem, "problem"))
    if len(graph.problem) not in (2, 3):
        raise TraceError(f"problem is (m, n) or (batch, m, n), got {graph.problem}")
    interpreter = Interpreter(graph)
    try:
        callee = _read(function, interpreter)
        bound = _bind(callee, graph, shapes, scalars, constants, source)
        returned = interpreter.run(callee, bound)
        returns = [*_returns(returned, callee)]
        return _Writer(callee, graph, shapes, scalars, source).write(returns)
    except Untraceable as error:
        raise TraceError(error.reason, None, error.instead) from None
    except RecursionError as error:
        raise TraceError("expressions are too deep within each other to be traced") from error


def parameters(function: Callable[..., object] | str) -> list[str]:
    """The names of the parameters of a function that trace() takes, in order. Raises TraceError."""
    interpreter = Interpreter(Graph((0, 0)))
    try:
        return [argument.arg for argument in _read(function, interpreter).parameters()]
    except Untraceable as error:
        raise TraceError(error.reason, None, error.instead) from None


def _extents(shape: object, name: str) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in shape)  # type: ignore[attr-defined]
    except TypeError as error:
        raise TraceError(f"the shape of '{name}' is integers, got {describe(shape)}") from error
    if any(extent < 0 for extent in extents):
        raise TraceError(f"the shape of '{name}' is negative: {extents}")
    return extents


def _read(function: object, interpreter: Interpreter) -> Callee:
    if not isinstance(function, str):
        return callee_of(function)
    source, body = parse_text(function)
    if len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Lambda):
        body = [ast.copy_location(ast.Assign([ast.Name("epilogue", ast.Store())], body[0].value), body[0])]
    defined = interpreter.define(body, source)
    functions = [value for value in defined.values() if isinstance(value, Callee)]
    if not functions:
        raise TraceError("the text defines no function")
    return functions[-1]


def _refuse(callee: Callee, node: ast.AST, reason: str, instead: str | None = None) -> TraceError:
    return TraceError(reason, callee.source.place(node), instead)


def _bind(
    callee: Callee,
    graph: Graph,
    shapes: Mapping[str, Sequence[int]],
    scalars: Mapping[str, float],
    constants: Mapping[str, object],
    source: str | None,
) -> dict[str, object]:
    """A value for each parameter."""
    signature = callee.definition.args
    if star := signature.vararg or signature.kwarg:
        raise _refuse(callee, star, "'*' among parameters is not traced", "name each parameter")
    parameters = {each.arg: each for each in callee.parameters()}
    kinds = [*shapes, *scalars, *constants, *([source] if source is not None else [])]
    for name in kinds:
        if name not in parameters:
            raise _refuse(callee, callee.definition, f"{callee.name} has no parameter '{str(name)[:100]}'")
        if kinds.count(name) > 1 and not (name == source and name in shapes):
            raise _refuse(callee, parameters[name], f"'{name}' is bound to two things")
    free = [name for name in parameters if name not in callee.preset]
    if not free:
        raise _refuse(callee, callee.definition, f"{callee.name} has no parameter for the elements of A*B")
    accumulator = next((name for name in ("accum", "acc") if name in free), free[0])
    bound: dict[str, object] = {}
    for name, parameter in parameters.items():
        try:
            if name == accumulator:
                if name in kinds:
                    raise Untraceable(f"'{name}' is the element of A*B, and nothing can be bound to it")
                bound[name] = graph.accumulator()
            elif name == source:
                if name in shapes and _extents(shapes[name], name) != graph.problem:
                    raise Untraceable(f"C is of {graph.problem}, got {_extents(shapes[name], name)}")
                bound[name] = graph.source()
            elif name in shapes:
                bound[name] = graph.tensor(name, _extents(shapes[name], name))
            elif name in scalars:
                _number(name, scalars[name])
                bound[name] = graph.scalar(name)
            elif name in constants:
                bound[name] = admit(constants[name])
            elif name in callee.preset:
                bound[name] = admit(callee.preset[name])
            elif name in callee.defaults:
                bound[name] = admit(callee.defaults[name])
            else:
                raise Untraceable(f"nothing is bound to '{name}'", "a tensor, a scalar or a default")
        except Untraceable as error:
            raise _refuse(callee, parameter, error.reason, error.instead) from None
    return bound


def _number(name: str, value: object) -> float:
    if isinstance(value, (bool, str)):
        raise Untraceable(f"'{name}' is a launch argument, and no {type(value).__name__}", "constants={...}")
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception as error:  # what the object's own methods raise
        raise Untraceable(f"'{name}' is a launch argument, and {describe(value)} is no number") from error


def _returns(returned: Returned, callee: Callee) -> Iterator[_Return]:
    """What is returned, with the names of variables."""
    value, node = returned.value, returned.node
    if not isinstance(value, (tuple, list)):
        value, nodes = (value,), [node]
    elif isinstance(node, (ast.Tuple, ast.List)):
        nodes = node.elts
    else:
        raise _refuse(callee, node, "what is returned needs names", "return D, aux")
    if not value:
        raise _refuse(callee, node, f"{callee.name} returns nothing")
    for each, item in zip(nodes, value, strict=True):
        name = each.target if isinstance(each, ast.NamedExpr) else each
        yield _Return(name.id if isinstance(name, ast.Name) else None, item, each)


class _Writer:
    """From what is returned to the text."""

    def __init__(
        self,
        callee: Callee,
        graph: Graph,
        shapes: Mapping[str, Sequence[int]],
        scalars: Mapping[str, float],
        source: str | None,
    ) -> None:
        self.callee = callee
        self.graph = graph
        self.shapes = shapes
        self.scalars = scalars
        self.source = source
        self.labels = Labels()

    def write(self, returns: Sequence[_Return]) -> TracedEpilogue:
        main = next((each for each in returns if each.name == "D"), returns[0])
        values = {id(each): self.value(each) for each in returns}
        live = live_nodes(self.graph.nodes, [value.node for value in values.values()])
        nodes = [self.graph.nodes[number] for number in live]
        if len(nodes) > MOST_NODES:
            raise _refuse(self.callee, self.callee.definition, f"{len(nodes)} operations, more than {MOST_NODES}")
        used = {node.label: node.op for node in nodes if node.op in ("scalar", "full", "row", "column", "single")}
        leaves = self.label_leaves(nodes, used)
        outputs = [self.output(each, values[id(each)], each is main) for each in returns]
        is_paired = any(node.op in ("even", "odd", *GATED) for node in nodes)
        if is_paired:
            self.check_pairs(returns, values, [node.op for node in nodes])
        self.check_names(returns, outputs)
        stores = [
            Store(output.label, values[id(each)].node, output.reduction, output.broadcast)
            for each, output in zip(returns, outputs, strict=True)
        ]
        text = render(self.graph.nodes, stores, leaves, self.graph.names, self.labels)
        sources = [SourceTensor(n, leaves[n], used[n]) for n in leaves if used[n] != "scalar"]  # type: ignore[arg-type]
        scalars = [Scalar(n, leaves[n], _number(n, self.scalars[n])) for n in leaves if used[n] == "scalar"]
        for what, count, most in (("tensors", len(sources), MOST_TENSORS), ("scalars", len(scalars), MOST_SCALARS)):
            if count > most:
                raise _refuse(self.callee, self.callee.definition, f"{count} {what} are read, more than {most}")
        reads_c = any(node.op == "C" for node in nodes)
        return TracedEpilogue(text, tuple(sources), tuple(scalars), tuple(outputs), reads_c, is_paired)

    def value(self, each: _Return) -> Traced | Reduced:
        if isinstance(each.value, Reduced):
            return each.value
        try:
            return self.graph.operand(each.value)
        except Untraceable as error:
            raise _refuse(self.callee, each.node, error.reason, error.instead) from None

    def label_leaves(self, nodes: Sequence[object], used: Mapping[str, str]) -> dict[str, str]:
        """The label of each parameter that is read, in order."""
        spreads: dict[str, set[str]] = {}
        for node in self.graph.nodes:
            if node in nodes and node.op in ("full", "row", "column", "single"):
                spreads.setdefault(node.label, set()).add(node.op)
        leaves: dict[str, str] = {}
        for parameter in self.callee.parameters():
            name = parameter.arg
            if len(spreads.get(name, ())) > 1:
                raise _refuse(
                    self.callee, parameter, f"'{name}' is read along rows and along columns", "a second parameter"
                )
            if name in used:
                is_product = used[name] == "scalar" and name in ("alpha", "beta")
                leaves[name] = self.labels.take(name, is_given=is_product)
        return leaves

    def output(self, each: _Return, value: Traced | Reduced, is_d: bool) -> Output:
        name = each.name or ("D" if is_d else None)
        if name is None:
            raise _refuse(
                self.callee, each.node, "what is returned beside D needs a name", "assign it to a variable first"
            )
        label = "D" if is_d else self.labels.take(name)
        if isinstance(value, Reduced):
            if is_d:
                raise _refuse(self.callee, each.node, "D is a reduction", "return D first, of all elements")
            return Output(name, label, value.broadcast, value.shape, value.reduction)
        shape = self.graph.problem
        if value.columns == "pair":
            shape = (*shape[:-1], shape[-1] // 2)
        try:
            if is_d and broadcast(value.shape, shape) == shape:
                return Output(name, label, "full", shape)
        except Untraceable as error:
            raise _refuse(self.callee, each.node, error.reason, error.instead) from None
        if value.shape != shape:
            raise _refuse(self.callee, each.node, f"'{name}' is {value.shape}, and an output {shape}")
        return Output(name, label, "full", shape)

    def check_pairs(
        self, returns: Sequence[_Return], values: Mapping[int, Traced | Reduced], operations: Sequence[str]
    ) -> None:
        """What holds where D is of pairs of columns."""
        for each, output in zip(returns, (values[id(each)] for each in returns), strict=True):
            is_main = each.name == "D" or (each is returns[0] and all(other.name != "D" for other in returns))
            if isinstance(output, Reduced):
                raise _refuse(self.callee, each.node, "where columns are paired nothing is reduced")
            if is_main != (output.columns == "pair"):
                reason = "D is not of pairs, and something else is" if is_main else "only D is of pairs of columns"
                raise _refuse(self.callee, each.node, reason)
        if "C" in operations or "column_index" in operations:
            what = "C" if "C" in operations else "the number of a column"
            raise _refuse(self.callee, self.callee.definition, f"where columns are paired {what} is not read")

    def check_names(self, returns: Sequence[_Return], outputs: Sequence[Output]) -> None:
        names: set[str] = set()
        for each, output in zip(returns, outputs, strict=True):
            if output.name in names:
                raise _refuse(self.callee, each.node, f"'{output.name}' is returned twice")
            names.add(output.name)
            if each.name is not None and (each.name in self.shapes or each.name == self.source):
                raise _refuse(
                    self.callee, each.node, f"'{output.name}' names what is read", "assign it to another variable first"
                )
        if len(outputs) > MOST_TENSORS + 1:
            raise _refuse(self.callee, returns[-1].node, f"{len(outputs) - 1} outputs, more than {MOST_TENSORS}")
