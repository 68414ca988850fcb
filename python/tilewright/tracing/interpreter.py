"""Interprets the syntax tree of a function on the values of a graph."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from tilewright.libraries import ROOTS

from . import library
from .callee import MAX_CALL_DEPTH, Callee, admit, bind, callee_of
from .constants import CONSTANTS, ON_CONSTANTS, SCALARS, on_constants, on_numbers, symbol
from .errors import SourceLocation, TraceError, Untraceable
from .graph import Graph, Logical, Reduced, Traced, describe
from .source import Definition, Source

MAX_STEPS = 100_000  # expressions and statements that are evaluated, including those of loops and called functions


@dataclass
class Frame:
    """A call that is being interpreted."""

    callee: Callee
    locals: dict[str, object]


@dataclass(frozen=True)
class Returned:
    """The value and the expression of a return statement."""

    value: object
    node: ast.expr


Jump = Returned | ast.Break | ast.Continue

# For each kind of syntax that is refused: the reason, and what to write instead.
REFUSED_SYNTAX: dict[str, tuple[str, str | None]] = {
    "While": ("while loops cannot be traced", "for _ in range(3), which is unrolled, or where()"),
    "Try": ("try cannot be traced", None),
    "TryStar": ("try cannot be traced", None),
    "With": ("with cannot be traced", None),
    "ClassDef": ("classes cannot be traced", None),
    "AsyncFunctionDef": ("async cannot be traced", None),
    "AsyncFor": ("async cannot be traced", None),
    "AsyncWith": ("async cannot be traced", None),
    "Delete": ("del cannot be traced", None),
    "Global": ("changes to variables outside of the function cannot be traced", "return it"),
    "Nonlocal": ("changes to variables outside of the function cannot be traced", "return it"),
    "Match": ("match cannot be traced", "if with constant conditions, or where()"),
    "Raise": ("the function raises here", None),
    "Yield": ("yield cannot be traced", "return"),
    "YieldFrom": ("yield cannot be traced", "return"),
    "Await": ("await cannot be traced", None),
    "ListComp": ("comprehensions cannot be traced", "a for loop over constants"),
    "SetComp": ("comprehensions cannot be traced", "a for loop over constants"),
    "DictComp": ("comprehensions cannot be traced", "a for loop over constants"),
    "GeneratorExp": ("generators cannot be traced", "a for loop over constants"),
    "JoinedStr": ("formatted strings cannot be traced", None),
    "TemplateStr": ("formatted strings cannot be traced", None),
    "Dict": ("dictionaries cannot be traced", None),
    "Set": ("sets cannot be traced", None),
    "Slice": ("a slice can only be used as an index", None),
    "Starred": ("'*' cannot be traced here", None),
}
UNKNOWN_SYNTAX: tuple[str, str | None] = ("this syntax cannot be traced", None)
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
LOGICAL: dict[type[ast.operator], Logical] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Interpreter:
    """Evaluates calls. Methods raise no other exceptions than TraceError and RecursionError."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.frames: list[Frame] = []
        self.calls: list[SourceLocation] = []  # of the calls that made the frames, without the first frame
        self.steps = 0

    def error(self, node: ast.AST, reason: str, instead: str | None = None) -> TraceError:
        return TraceError(reason, self.frames[-1].callee.source.location(node), instead, self.calls[::-1])

    def run(self, callee: Callee, arguments: Mapping[str, object]) -> Returned:
        """Interprets a call; `arguments` has a value for each parameter."""
        self.frames.append(Frame(callee, dict(arguments)))
        try:
            body = callee.definition.body
            if isinstance(body, ast.expr):
                return Returned(self.evaluate(body), body)
            jump = self.execute(body)
            if isinstance(jump, Returned):
                return jump
            raise self.error(callee.definition, f"{callee.name} returns nothing")
        finally:
            self.frames.pop()

    def define(self, body: Sequence[ast.stmt], source: Source) -> dict[str, object]:
        """Executes the statements of a module, and returns the names that they define."""
        module = ast.parse("def module(): pass").body[0]
        assert isinstance(module, ast.FunctionDef)
        frame = Frame(Callee("module", source, module, dict[str, object]().__getitem__), {})
        self.frames.append(frame)
        try:
            jump = self.execute(body)
            if jump is not None:
                raise self.error(jump.node if isinstance(jump, Returned) else jump, "outside of a function")
            return frame.locals
        finally:
            self.frames.pop()

    def close_over(self, definition: Definition, name: str) -> Callee:
        """The Callee of a function that is defined in the current one."""
        frame = self.frames[-1]

        def lookup(name: str) -> object:
            return frame.locals[name] if name in frame.locals else frame.callee.lookup(name)

        arguments = definition.args
        named = [*arguments.posonlyargs, *arguments.args]
        values = [self.evaluate(each) for each in arguments.defaults]
        defaults = dict(zip([each.arg for each in named[len(named) - len(values) :]], values, strict=True))
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[parameter.arg] = self.evaluate(default)
        return Callee(name, frame.callee.source, definition, lookup, defaults)

    # Statements.

    def execute(self, body: Sequence[ast.stmt]) -> Jump | None:
        for statement in body:
            self.step(statement)
            execute = getattr(self, f"execute_{type(statement).__name__}", None)
            if execute is None:
                raise self.error(statement, *REFUSED_SYNTAX.get(type(statement).__name__, UNKNOWN_SYNTAX))
            try:
                jump = execute(statement)
            except Untraceable as error:
                raise self.error(statement, error.reason, error.instead) from None
            if jump is not None:
                return cast(Jump, jump)
        return None

    def step(self, node: ast.AST) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise self.error(node, f"the function evaluates more than {MAX_STEPS} expressions and statements")

    def execute_Return(self, statement: ast.Return) -> Returned:
        if statement.value is None:
            raise self.error(statement, f"{self.frames[-1].callee.name} returns nothing")
        return Returned(self.evaluate(statement.value), statement.value)

    def execute_Assign(self, statement: ast.Assign) -> None:
        value = self.evaluate(statement.value)
        for target in statement.targets:
            self.assign(target, value)

    def execute_AnnAssign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.evaluate(statement.value))

    def execute_AugAssign(self, statement: ast.AugAssign) -> None:
        if not isinstance(statement.target, ast.Name):
            raise self.error(statement.target, "only variables can be assigned to", "x = ...")
        name = statement.target.id
        old = self.evaluate(ast.copy_location(ast.Name(name, ast.Load()), statement.target))
        new = self.operate(statement.op, old, self.evaluate(statement.value))
        if isinstance(old, Traced) and old.shape:
            instead = f"{name} = {name} {symbol(statement.op)} ..."
            if old.is_view or self.is_shared(old, name):
                raise self.error(statement, f"this changes an array that has other names than '{name}' too", instead)
            if isinstance(new, Traced) and new.shape != old.shape:
                reason = f"a value of shape {new.shape} cannot be stored to '{name}' of shape {old.shape}"
                raise self.error(statement, reason, instead)
        self.assign(statement.target, new)

    def execute_Expr(self, statement: ast.Expr) -> None:
        if isinstance(statement.value, ast.Constant):
            return  # a docstring
        self.evaluate(statement.value)
        if not isinstance(statement.value, ast.NamedExpr):
            raise self.error(statement, "this value is not used", "assign it, or return it")

    def execute_Pass(self, statement: ast.Pass) -> None:
        pass

    def execute_Assert(self, statement: ast.Assert) -> None:
        if not self.truth(statement.test, "assert takes constants only", None):
            message = str(statement.msg.value) if isinstance(statement.msg, ast.Constant) else ""
            raise self.error(statement, f"the assertion fails{': ' if message else ''}{message}")

    def execute_If(self, statement: ast.If) -> Jump | None:
        instead = "where(condition, x, y), or x if condition else y"
        is_true = self.truth(statement.test, "the condition of an if statement must not depend on elements", instead)
        return self.execute(statement.body if is_true else statement.orelse)

    def execute_For(self, statement: ast.For) -> Jump | None:
        values = self.evaluate(statement.iter)
        if not isinstance(values, (tuple, list, range)):
            raise self.error(statement.iter, f"a loop must be over constants, got {describe(values)}", "range(3)")
        for value in values:
            self.step(statement)
            self.assign(statement.target, admit(value))
            jump = self.execute(statement.body)
            if isinstance(jump, ast.Break):
                return None
            if isinstance(jump, Returned):
                return jump
        return self.execute(statement.orelse)

    def execute_Break(self, statement: ast.Break) -> Jump:
        return statement

    def execute_Continue(self, statement: ast.Continue) -> Jump:
        return statement

    def execute_FunctionDef(self, statement: ast.FunctionDef) -> None:
        if statement.decorator_list:
            raise self.error(statement.decorator_list[0], "decorators cannot be traced")
        self.frames[-1].locals[statement.name] = self.close_over(statement, statement.name)

    def execute_Import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            path = alias.name if alias.asname else alias.name.split(".")[0]
            self.import_name(statement, alias.asname or path, library.Name(path))

    def execute_ImportFrom(self, statement: ast.ImportFrom) -> None:
        if statement.module == "__future__" and statement.level == 0:
            return
        for alias in statement.names:
            path = library.Name(statement.module or "")
            if statement.level or alias.name == "*":
                raise self.error(statement, "only names of known libraries can be imported")
            value = library.attribute(path, alias.name)
            self.import_name(statement, alias.asname or alias.name, value, path)

    def import_name(self, node: ast.AST, name: str, value: object, origin: library.Name | None = None) -> None:
        path = (origin or cast(library.Name, value)).path
        if path.split(".")[0] not in ROOTS:
            raise self.error(node, f"'{path}' cannot be imported", "one of " + ", ".join(ROOTS))
        self.frames[-1].locals[name] = value

    def assign(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Traced):
                self.graph.name(value, target.id)
            self.frames[-1].locals[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value)
        elif isinstance(target, ast.Starred):
            raise self.error(target, *REFUSED_SYNTAX["Starred"])
        else:
            raise self.error(
                target, "only variables can be assigned to", "where(condition, x, y), for parts of a matrix"
            )

    def unpack(self, target: ast.Tuple | ast.List, value: object) -> None:
        if isinstance(value, Reduced):
            raise self.error(target, "a reduction has no indices, only values", "amax or amin")
        if not isinstance(value, (tuple, list)):
            raise self.error(target, f"{describe(value)} cannot be unpacked")
        if len(value) != len(target.elts):
            raise self.error(target, f"{describe(value)} cannot be unpacked to {len(target.elts)} variables")
        for each, item in zip(target.elts, value, strict=True):
            self.assign(each, admit(item))

    def truth(self, node: ast.expr, reason: str, instead: str | None) -> bool:
        value = self.evaluate(node)
        if isinstance(value, (Traced, Reduced)):
            raise self.error(node, reason, instead)
        if not isinstance(value, (*CONSTANTS, tuple, list, range)):
            raise self.error(node, f"a condition must be a constant, got {describe(value)}")
        return bool(value)

    def is_shared(self, value: Traced, name: str) -> bool:
        """Whether another variable than that one has or contains the value."""

        def holds(held: object) -> bool:
            return held is value or (isinstance(held, (tuple, list)) and any(map(holds, held)))

        current = self.frames[-1]
        return any(
            holds(held)
            for frame in self.frames
            for local, held in frame.locals.items()
            if frame is not current or local != name
        )

    # Expressions.

    def evaluate(self, node: ast.expr) -> object:
        self.step(node)
        evaluate = getattr(self, f"evaluate_{type(node).__name__}", None)
        if evaluate is None:
            raise self.error(node, *REFUSED_SYNTAX.get(type(node).__name__, UNKNOWN_SYNTAX))
        try:
            return cast(object, evaluate(node))
        except Untraceable as error:
            raise self.error(node, error.reason, error.instead) from None

    def evaluate_Constant(self, node: ast.Constant) -> object:
        if not isinstance(node.value, CONSTANTS):
            raise Untraceable(f"a constant of type {type(node.value).__name__} cannot be traced")
        return node.value

    def evaluate_Name(self, node: ast.Name) -> object:
        frame = self.frames[-1]
        if node.id in frame.locals:
            return frame.locals[node.id]
        try:
            return admit(frame.callee.lookup(node.id))
        except KeyError:
            pass
        name = library.resolve_plain(node.id)
        if name is None:
            raise Untraceable(f"'{node.id}' is not defined, and is no function of epilogues", library.hint(node.id))
        return name

    def evaluate_Tuple(self, node: ast.Tuple | ast.List) -> object:
        return tuple(self.evaluate(each) for each in node.elts)

    evaluate_List = evaluate_Tuple

    def evaluate_NamedExpr(self, node: ast.NamedExpr) -> object:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def evaluate_Lambda(self, node: ast.Lambda) -> object:
        return self.close_over(node, "<lambda>")

    def evaluate_BinOp(self, node: ast.BinOp) -> object:
        return self.operate(node.op, self.evaluate(node.left), self.evaluate(node.right))

    def operate(self, op: ast.operator, x: object, y: object) -> object:
        if isinstance(x, SCALARS) and isinstance(y, SCALARS):
            return on_numbers(op, x, y)
        if isinstance(op, ast.MatMult):
            raise Untraceable("an epilogue computes each element separately: matrix products are not possible")
        left, right = self.graph.operand(x), self.graph.operand(y)
        if type(op) in ARITHMETIC:
            return self.graph.arithmetic(ARITHMETIC[type(op)], left, right)
        if type(op) in LOGICAL:
            return self.graph.logical(LOGICAL[type(op)], left, right)
        if isinstance(op, ast.Pow):
            return self.graph.power(left if isinstance(x, Traced) else x, right if isinstance(y, Traced) else y)
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            quotient = replace(self.graph.apply("floor", self.graph.arithmetic("/", left, right)), is_integral=True)
            if isinstance(op, ast.FloorDiv):
                return quotient
            return self.graph.arithmetic("-", left, self.graph.arithmetic("*", quotient, right))
        raise Untraceable(f"'{symbol(op)}' cannot be traced")

    def evaluate_UnaryOp(self, node: ast.UnaryOp) -> object:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(value, CONSTANTS):
                return not value
            return self.graph.invert(self.graph.operand(value))
        if isinstance(node.op, ast.Invert):
            if isinstance(value, bool):
                return not value
            return self.graph.invert(self.graph.operand(value))
        if isinstance(value, SCALARS):
            return -value if isinstance(node.op, ast.USub) else +value
        return self.graph.negate(self.graph.operand(value)) if isinstance(node.op, ast.USub) else value

    def evaluate_BoolOp(self, node: ast.BoolOp) -> object:
        is_and = isinstance(node.op, ast.And)
        result: object = None
        for each in node.values:
            value = self.evaluate(each)
            if isinstance(value, CONSTANTS):
                if bool(value) != is_and:
                    return value if result is None or not isinstance(result, Traced) else bool(value)
                if not isinstance(result, Traced):
                    result = value
            elif isinstance(result, Traced):
                result = self.graph.logical("&" if is_and else "|", result, self.graph.operand(value))
            else:
                result = self.graph.operand(value)
        return result

    def evaluate_Compare(self, node: ast.Compare) -> object:
        result: object = True
        left = self.evaluate(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator)
            value = self.compare(op, left, right)
            if value is False:
                return False
            if isinstance(value, Traced):
                result = self.graph.logical("&", result, value) if isinstance(result, Traced) else value
            left = right
        return result

    def compare(self, op: ast.cmpop, x: object, y: object) -> object:
        constants = (*CONSTANTS, library.Name)
        is_of_values = isinstance(x, (Traced, Reduced)) or isinstance(y, (Traced, Reduced))
        if isinstance(op, (ast.Is, ast.IsNot)):
            if x is not None and y is not None and not (isinstance(x, bool) or isinstance(y, bool)):
                raise Untraceable("'is' takes None, True or False only", "==")
            return (x is y) == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)):
            are_constants = isinstance(y, (tuple, list)) and all(isinstance(each, constants) for each in y)
            if not isinstance(x, constants) or not (are_constants or (isinstance(y, str) and isinstance(x, str))):
                raise Untraceable("'in' takes constants only")
            return ON_CONSTANTS[type(op)](x, y)
        if is_of_values:
            return self.graph.compare(COMPARISONS[type(op)], self.graph.operand(x), self.graph.operand(y))
        is_order = not isinstance(op, (ast.Eq, ast.NotEq))
        are_numbers = isinstance(x, SCALARS) and isinstance(y, SCALARS)
        are_constants = isinstance(x, (*constants, tuple)) and isinstance(y, (*constants, tuple))
        if not are_constants or (is_order and not are_numbers):
            raise Untraceable(f"{describe(x)} and {describe(y)} cannot be compared")
        return bool(ON_CONSTANTS[type(op)](x, y))

    def evaluate_IfExp(self, node: ast.IfExp) -> object:
        condition = self.evaluate(node.test)
        if isinstance(condition, CONSTANTS):
            return self.evaluate(node.body if condition else node.orelse)
        operand = self.graph.operand
        x, y = self.evaluate(node.body), self.evaluate(node.orelse)
        return self.graph.where(operand(condition), operand(x), operand(y))

    def evaluate_Attribute(self, node: ast.Attribute) -> object:
        value = self.evaluate(node.value)
        if isinstance(value, library.Name):
            return library.attribute(value, node.attr)
        if isinstance(value, Traced):
            return library.attribute_of_value(value, node.attr)
        if isinstance(value, Reduced):
            if node.attr == "values":
                return value
            self.graph.operand(value)
        if isinstance(value, (*CONSTANTS, tuple, list, dict, range, Callee, library.Method)):
            raise Untraceable(f"attributes of {describe(value)} cannot be traced")
        try:
            return admit(getattr(value, node.attr))
        except Exception as error:  # raised by the object's own methods
            raise Untraceable(f"reading '{node.attr}' of {describe(value)} raised {type(error).__name__}") from error

    def evaluate_Subscript(self, node: ast.Subscript) -> object:
        value = self.evaluate(node.value)
        if isinstance(value, Traced):
            return self.index(value, node.slice)
        index = self.evaluate(node.slice)
        if isinstance(value, Reduced) and index == 0 and not isinstance(index, Traced):
            return value  # the values of the (values, indices) that PyTorch's max and min return
        if isinstance(value, Reduced):
            self.graph.operand(value)
        if type(value) not in (tuple, list, dict, range) or not isinstance(index, CONSTANTS):
            raise Untraceable(f"{describe(value)} cannot be indexed by {describe(index)}")
        try:
            return admit(cast(Any, value)[index])
        except (LookupError, TypeError) as error:
            raise Untraceable(f"{describe(value)} has no element {index!r:.40}") from error

    def index(self, value: Traced, node: ast.expr) -> Traced:
        """Indexes an elementwise value: x[..., 0::2], x[..., 1::2], x[:, None] and x[None]."""
        items: list[object] = []
        for each in node.elts if isinstance(node, ast.Tuple) else [node]:
            items.append(self.slice(each) if isinstance(each, ast.Slice) else self.evaluate(each))
        count = sum(1 for item in items if item is not None and item is not Ellipsis)
        dots = [number for number, item in enumerate(items) if item is Ellipsis]
        if count > len(value.shape) or len(dots) > 1:
            raise Untraceable(f"too many indices for a value of shape {value.shape}")
        begin, end = (dots[0], dots[0] + 1) if dots else (len(items), len(items))
        items[begin:end] = [slice(None)] * (len(value.shape) - count)
        axes = [item for item in items if item is not None]
        for axis, item in enumerate(axes):
            part = self.part(item, value.shape[axis])
            if part is None or (part != "all" and axis != len(axes) - 1):
                raise Untraceable("only even and odd columns can be indexed", "x[..., 0::2] and x[..., 1::2]")
            if part != "all":
                value = self.graph.half(value, part)
        for axis, item in enumerate(items):
            if item is None:
                value = self.graph.insert_axis(value, axis)
        return value

    @staticmethod
    def part(item: object, extent: int) -> Literal["all", "even", "odd"] | None:
        """The part of an axis that an index selects, or None if it selects something else."""
        if not isinstance(item, slice) or item.stop not in (None, extent):
            return None
        if item.step in (None, 1):
            return "all" if item.start in (None, 0) else None
        starts: dict[int | None, Literal["even", "odd"]] = {None: "even", 0: "even", 1: "odd"}
        return starts.get(item.start) if item.step == 2 else None

    def slice(self, node: ast.Slice) -> slice:
        ends: list[int | None] = []
        for each in (node.lower, node.upper, node.step):
            end = None if each is None else self.evaluate(each)
            if end is not None and not isinstance(end, int):
                raise self.error(cast(ast.expr, each), f"a slice must have integer constants, got {describe(end)}")
            ends.append(end)
        return slice(*ends)

    # Calls.

    def evaluate_Call(self, node: ast.Call) -> object:
        function = self.evaluate(node.func)
        arguments: list[object] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value)
                if not isinstance(value, (tuple, list)):
                    raise self.error(each, f"'*' takes a tuple, got {describe(value)}")
                arguments += map(admit, value)
            else:
                arguments.append(self.evaluate(each))
        keywords: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(keyword.value, "'**' cannot be traced", "name each argument")
            keywords[keyword.arg] = self.evaluate(keyword.value)
        if isinstance(function, library.Name):
            if function.path in ("range", "len", "float", "int", "bool"):
                return on_constants(function.path, arguments, keywords)
            return library.call(self.graph, function, arguments, keywords)
        if isinstance(function, library.Method):
            return library.call_method(self.graph, function, arguments, keywords)
        if isinstance(function, (Traced, Reduced, *CONSTANTS, tuple, list, dict, range)):
            raise Untraceable(f"{describe(function)} cannot be called")
        callee = function if isinstance(function, Callee) else callee_of(function)
        return self.inline(node, callee, arguments, keywords)

    def inline(
        self, node: ast.Call, callee: Callee, arguments: Sequence[object], keywords: Mapping[str, object]
    ) -> object:
        if any(frame.callee.definition is callee.definition for frame in self.frames):
            raise Untraceable(f"{callee.name} calls itself, and recursion cannot be traced", "for _ in range(3)")
        if len(self.frames) >= MAX_CALL_DEPTH:
            raise Untraceable(f"calls are nested more than {MAX_CALL_DEPTH} deep")
        bound = bind(callee, arguments, keywords)
        self.calls.append(self.frames[-1].callee.source.location(node))
        try:
            return self.run(callee, bound).value
        finally:
            self.calls.pop()
