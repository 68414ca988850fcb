"""Traces a function with bound parameters to a text, and lists the tensors and scalars that the text uses."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .callee import Callee, admit, callee_of
from .errors import TraceError, Untraceable
from .graph import GATED, Graph, Reduced, Broadcast, Traced, broadcast, describe
from .interpreter import Interpreter, Returned
from .source import Definition, parse_text
from .text import Labels, Store, live_nodes, render

MAX_TENSORS = 16  # for inputs, and the same for outputs other than D
MAX_SCALARS = 16
MAX_NODES = 512


@dataclass(frozen=True)
class InputTensor:
    """A tensor that the epilogue reads."""

    name: str  # the parameter
    label: str  # its name in the text
    broadcast: Broadcast  # full: m x n, row: 1 x n, column: m x 1, single: 1 x 1; for each matrix of a batch


@dataclass(frozen=True)
class Scalar:
    """A number that is a launch argument: a kernel serves all of its values."""

    name: str  # the parameter
    label: str  # its name in the text; "alpha" and "beta" are those of the GEMM
    value: float


@dataclass(frozen=True)
class Output:
    """A value that the function returns, which the epilogue stores."""

    name: str  # the variable that is returned; "D" if D is not a variable
    label: str  # its name in the text: "D" for the variable D if there is one, else for the first value
    broadcast: Broadcast
    shape: tuple[int, ...]  # as the function returns it; for D, the shape of the whole output
    reduction: str | None = None  # "sum", "max" or "min"


@dataclass(frozen=True)
class TracedEpilogue:
    """A function as text of the epilogue language, with the tensors and scalars that its names stand for."""

    text: str
    inputs: tuple[InputTensor, ...]  # the tensors that the text reads, in order of the parameters
    scalars: tuple[Scalar, ...]  # the scalars that the text reads, in order of the parameters
    outputs: tuple[Output, ...]  # in the order in which the function returns them
    reads_c: bool
    is_gated: bool  # D has one column for each pair of columns of A*B


@dataclass(frozen=True)
class Names:
    """The names of a function, as its source has them."""

    parameters: tuple[str, ...]  # in order
    required: tuple[str, ...]  # the parameters without a default value
    returned: tuple[str, ...]  # the variables that it returns, in order; values without a name are left out


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
    c: str | None = None,
) -> TracedEpilogue:
    """Translates a function of NumPy, PyTorch or JAX arrays to an epilogue.

    The function is not called: its source is interpreted with the values of its closure, globals and defaults.
    `function` is a function, a lambda, a method, a functools.partial, an object with __call__, or a text, of which the
    last function is traced. The parameter `accum`, else `acc`, else the first one, stands for the accumulators A*B.

    problem    the shape of A*B: (m, n), or (batch, m, n)
    shapes     the parameters that are tensors, with shapes that broadcast to `problem` as in NumPy; a vector of shape
               (m,) must be used as x[:, None]
    scalars    the parameters that are launch arguments, with their values; `alpha` and `beta` are those of the GEMM
    constants  the parameters that become part of the code, as defaults do: numbers, booleans, strings and None
    c          the parameter that stands for C of the GEMM

    The values that the function returns are stored: the variable D, else the first value, to D, and the others to
    tensors named after the variables. The result of a reduction can be returned but not used further. Raises
    TraceError.
    """
    shapes, scalars, constants = dict(shapes or {}), dict(scalars or {}), dict(constants or {})
    graph = Graph(_extents(problem, "problem"))
    if len(graph.problem) not in (2, 3):
        raise TraceError(f"problem must be (m, n) or (batch, m, n), got {graph.problem}")
    interpreter = Interpreter(graph)
    try:
        callee = _read(function, interpreter)
        bound = _bind(callee, graph, shapes, scalars, constants, c)
        returned = interpreter.run(callee, bound)
        returns = [*_returns(returned, callee)]
        return _Writer(callee, graph, shapes, scalars, c).write(returns)
    except Untraceable as error:
        raise TraceError(error.reason, None, error.instead) from None
    except RecursionError as error:
        raise TraceError("expressions are nested too deep to be traced") from error


def parameters(function: Callable[..., object] | str) -> list[str]:
    """The names of the parameters of a function, in order. `function` is as in trace(). Raises TraceError."""
    interpreter = Interpreter(Graph((0, 0)))
    try:
        return [argument.arg for argument in _read(function, interpreter).parameters()]
    except Untraceable as error:
        raise TraceError(error.reason, None, error.instead) from None


def names_of(function: Callable[..., object] | str) -> Names:
    """The parameters of a function and the variables that it returns. `function` is as in trace(). Raises TraceError."""
    interpreter = Interpreter(Graph((0, 0)))
    try:
        callee = _read(function, interpreter)
    except Untraceable as error:
        raise TraceError(error.reason, None, error.instead) from None
    parameters = tuple(each.arg for each in callee.parameters())
    required = tuple(each for each in parameters if each not in callee.defaults and each not in callee.preset)
    returned: dict[str, None] = {}
    for value in _returned_values(callee.definition):
        for each in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
            name = each.target if isinstance(each, ast.NamedExpr) else each
            if isinstance(name, ast.Name):
                returned[name.id] = None
    return Names(parameters, required, tuple(returned))


def _returned_values(definition: Definition) -> Iterator[ast.expr]:
    """The expressions of a function's return statements, without those of functions inside."""
    if isinstance(definition, ast.Lambda):
        yield definition.body
        return
    pending: list[ast.AST] = [*reversed(definition.body)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending += reversed([*ast.iter_child_nodes(node)])


def _extents(shape: object, name: str) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in shape)  # type: ignore[attr-defined]
    except TypeError as error:
        raise TraceError(f"the shape of '{name}' must be integers, got {describe(shape)}") from error
    if any(extent < 0 for extent in extents):
        raise TraceError(f"the shape of '{name}' has a negative extent: {extents}")
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
    return TraceError(reason, callee.source.location(node), instead)


def _bind(
    callee: Callee,
    graph: Graph,
    shapes: Mapping[str, Sequence[int]],
    scalars: Mapping[str, float],
    constants: Mapping[str, object],
    c: str | None,
) -> dict[str, object]:
    """The values of all parameters of the traced function."""
    signature = callee.definition.args
    if star := signature.vararg or signature.kwarg:
        raise _refuse(callee, star, "'*' parameters cannot be traced", "name each parameter")
    parameters = {each.arg: each for each in callee.parameters()}
    kinds = [*shapes, *scalars, *constants, *([c] if c is not None else [])]
    for name in kinds:
        if name not in parameters:
            raise _refuse(callee, callee.definition, f"{callee.name} has no parameter '{str(name)[:100]}'")
        if kinds.count(name) > 1 and not (name == c and name in shapes):
            raise _refuse(callee, parameters[name], f"'{name}' is bound more than once")
    free = [name for name in parameters if name not in callee.preset]
    if not free:
        raise _refuse(callee, callee.definition, f"{callee.name} has no parameter for the accumulators A*B")
    accumulator = next((name for name in ("accum", "acc") if name in free), free[0])
    bound: dict[str, object] = {}
    for name, parameter in parameters.items():
        try:
            if name == accumulator:
                if name in kinds:
                    if name in ("accum", "acc"):
                        raise Untraceable(f"'{name}' stands for the accumulators A*B: nothing can be bound to it")
                    raise Untraceable(
                        f"accum must be an input to the epilogue function: here the first parameter of {callee.name}, "
                        f"'{name}', stands for the accumulators A*B, and nothing can be bound to it"
                    )
                bound[name] = graph.accumulator()
            elif name == c:
                if name in shapes and _extents(shapes[name], name) != graph.problem:
                    raise Untraceable(f"C must have the shape {graph.problem}, got {_extents(shapes[name], name)}")
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
                instead = f"pass {name}= an array or a number, or give it a default"
                error = _refuse(callee, parameter, f"nothing is bound to '{name}'", instead)
                error.unbound = name
                raise error
        except Untraceable as error:
            raise _refuse(callee, parameter, error.reason, error.instead) from None
    return bound


def _number(name: str, value: object) -> float:
    if isinstance(value, (bool, str)):
        raise Untraceable(f"'{name}' is a launch argument, got a {type(value).__name__}", "constants={...}")
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception as error:  # raised by the object's own methods
        raise Untraceable(f"'{name}' is a launch argument and must be a number, got {describe(value)}") from error


def _returns(returned: Returned, callee: Callee) -> Iterator[_Return]:
    """The values that are returned, with the names of their variables."""
    value, node = returned.value, returned.node
    if not isinstance(value, (tuple, list)):
        value, nodes = (value,), [node]
    elif isinstance(node, (ast.Tuple, ast.List)):
        nodes = node.elts
    else:
        raise _refuse(callee, node, "the values of a returned tuple need names", "return D, aux")
    if not value:
        raise _refuse(callee, node, f"{callee.name} returns nothing")
    for each, item in zip(nodes, value, strict=True):
        name = each.target if isinstance(each, ast.NamedExpr) else each
        yield _Return(name.id if isinstance(name, ast.Name) else None, item, each)


class _Writer:
    """Makes a TracedEpilogue of the values that are returned."""

    def __init__(
        self,
        callee: Callee,
        graph: Graph,
        shapes: Mapping[str, Sequence[int]],
        scalars: Mapping[str, float],
        c: str | None,
    ) -> None:
        self.callee = callee
        self.graph = graph
        self.shapes = shapes
        self.scalars = scalars
        self.c = c
        self.labels = Labels()

    def write(self, returns: Sequence[_Return]) -> TracedEpilogue:
        main = next((each for each in returns if each.name == "D"), returns[0])
        values = {id(each): self.value(each) for each in returns}
        live = live_nodes(self.graph.nodes, [value.node for value in values.values()])
        nodes = [self.graph.nodes[number] for number in live]
        if len(nodes) > MAX_NODES:
            reason = f"the function has {len(nodes)} operations, more than {MAX_NODES}"
            raise _refuse(self.callee, self.callee.definition, reason)
        used = {node.label: node.op for node in nodes if node.op in ("scalar", "full", "row", "column", "single")}
        leaves = self.label_leaves(nodes, used)
        outputs = [self.output(each, values[id(each)], each is main) for each in returns]
        is_gated = any(node.op in ("even", "odd", *GATED) for node in nodes)
        if is_gated:
            self.check_gated(returns, values, [node.op for node in nodes])
        self.check_names(returns, outputs)
        stores = [
            Store(output.label, values[id(each)].node, output.reduction, output.broadcast)
            for each, output in zip(returns, outputs, strict=True)
        ]
        text = render(self.graph.nodes, stores, leaves, self.graph.names, self.labels)
        inputs = [InputTensor(n, leaves[n], used[n]) for n in leaves if used[n] != "scalar"]  # type: ignore[arg-type]
        scalars = [Scalar(n, leaves[n], _number(n, self.scalars[n])) for n in leaves if used[n] == "scalar"]
        for what, count, limit in (("tensors", len(inputs), MAX_TENSORS), ("scalars", len(scalars), MAX_SCALARS)):
            if count > limit:
                reason = f"the function reads {count} {what}, more than {limit}"
                raise _refuse(self.callee, self.callee.definition, reason)
        reads_c = any(node.op == "C" for node in nodes)
        return TracedEpilogue(text, tuple(inputs), tuple(scalars), tuple(outputs), reads_c, is_gated)

    def value(self, each: _Return) -> Traced | Reduced:
        if isinstance(each.value, Reduced):
            return each.value
        try:
            return self.graph.operand(each.value)
        except Untraceable as error:
            raise _refuse(self.callee, each.node, error.reason, error.instead) from None

    def label_leaves(self, nodes: Sequence[object], used: Mapping[str, str]) -> dict[str, str]:
        """The label of each parameter that is read, in order."""
        broadcasts: dict[str, set[str]] = {}
        for node in self.graph.nodes:
            if node in nodes and node.op in ("full", "row", "column", "single"):
                broadcasts.setdefault(node.label, set()).add(node.op)
        leaves: dict[str, str] = {}
        for parameter in self.callee.parameters():
            name = parameter.arg
            if len(broadcasts.get(name, ())) > 1:
                reason = f"'{name}' is broadcast in two ways: along rows and along columns"
                raise _refuse(self.callee, parameter, reason, "a second parameter")
            if name in used:
                is_product = used[name] == "scalar" and name in ("alpha", "beta")
                leaves[name] = self.labels.take(name, is_given=is_product)
        return leaves

    def output(self, each: _Return, value: Traced | Reduced, is_d: bool) -> Output:
        name = each.name or ("D" if is_d else None)
        if name is None:
            raise _refuse(
                self.callee, each.node, "an output other than D needs a name", "assign it to a variable first"
            )
        label = "D" if is_d else self.labels.take(name)
        if isinstance(value, Reduced):
            if is_d:
                raise _refuse(self.callee, each.node, "D is a reduction", "return D first, with all its elements")
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
            raise _refuse(self.callee, each.node, f"the output '{name}' must have the shape {shape}, got {value.shape}")
        return Output(name, label, "full", shape)

    def check_gated(
        self, returns: Sequence[_Return], values: Mapping[int, Traced | Reduced], operations: Sequence[str]
    ) -> None:
        """Checks the rules for a gated epilogue, in which a column of D is computed from a pair of columns of A*B."""
        for each, output in zip(returns, (values[id(each)] for each in returns), strict=True):
            is_main = each.name == "D" or (each is returns[0] and all(other.name != "D" for other in returns))
            if isinstance(output, Reduced):
                raise _refuse(self.callee, each.node, "a gated epilogue cannot have reductions")
            if is_main != (output.columns == "pair"):
                pairs = "one column for each pair of columns of A*B"
                reason = f"D must have {pairs}, as another value does" if is_main else f"only D can have {pairs}"
                raise _refuse(self.callee, each.node, reason)
        if "C" in operations or "column_index" in operations:
            what = "C" if "C" in operations else "column indices"
            raise _refuse(self.callee, self.callee.definition, f"a gated epilogue cannot read {what}")

    def check_names(self, returns: Sequence[_Return], outputs: Sequence[Output]) -> None:
        names: set[str] = set()
        for each, output in zip(returns, outputs, strict=True):
            if output.name in names:
                raise _refuse(self.callee, each.node, f"'{output.name}' is returned twice")
            names.add(output.name)
            if each.name is not None and (each.name in self.shapes or each.name == self.c):
                raise _refuse(
                    self.callee, each.node, f"'{output.name}' is an input", "assign it to another variable first"
                )
        if len(outputs) > MAX_TENSORS + 1:
            reason = f"{len(outputs) - 1} outputs other than D, more than {MAX_TENSORS}"
            raise _refuse(self.callee, returns[-1].node, reason)
