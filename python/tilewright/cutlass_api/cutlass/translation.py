"""Translates the body of a function with @cute.kernel to CUDA C++.

What is known when a kernel is compiled is evaluated by Python: names of modules and attributes of `self`, numbers,
tuples. What depends on a launch or a thread is an expression of C++. Integers have 64 bits. Elements of 16 bits and
smaller ones are computed as f32 or as integers, and are rounded when they are stored.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tilewright._tilewright import DType, Source
from tilewright.tracing.errors import TraceError, Untraceable
from tilewright.tracing.source import read_function

from . import cute

C_TYPES = {"bool": "bool", "int": "long long", "f32": "float", "f64": "double"}
KINDS = [*C_TYPES]  # a wider kind follows a narrower one


@dataclass(frozen=True)
class Value:
    """An expression of C++ that depends on a launch or a thread."""

    text: str
    kind: str  # a key of C_TYPES


@dataclass(frozen=True)
class TensorParameter:
    """A tensor that is passed to the kernel."""

    name: str
    dtype: DType
    rank: int

    @property
    def identifier(self) -> str:
        return _identifier(self.name)

    @property
    def shape(self) -> tuple[Value, ...]:
        return tuple(Value(f"{self.identifier}_at.shape[{mode}]", "int") for mode in range(self.rank))

    @property
    def stride(self) -> tuple[Value, ...]:
        return tuple(Value(f"{self.identifier}_at.stride[{mode}]", "int") for mode in range(self.rank))

    @property
    def element_type(self) -> DType:
        return self.dtype


@dataclass(frozen=True)
class Storage:
    """How an element lies in memory: its C++ type, the kind of its value, and the functions that convert it."""

    type: str
    kind: str
    load: str = ""
    store: str = ""


STORAGE = {
    DType.f64: Storage("double", "f64"),
    DType.f32: Storage("float", "f32"),
    DType.tf32: Storage("float", "f32"),
    DType.f16: Storage("unsigned short", "f32", "from_f16", "to_f16"),
    DType.bf16: Storage("unsigned short", "f32", "from_bf16", "to_bf16"),
    DType.s32: Storage("int", "int"),
    DType.s8: Storage("signed char", "int"),
    DType.u8: Storage("unsigned char", "int"),
}

PROLOGUE = """\
template <int rank>
struct Extents {
  long long shape[rank];
  long long stride[rank];
};

__device__ inline float from_f16(unsigned short x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
  return value;
}
__device__ inline unsigned short to_f16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline float from_bf16(unsigned short x) { return __uint_as_float(static_cast<unsigned>(x) << 16); }
__device__ inline unsigned short to_bf16(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
__device__ inline long long floor_mod(long long a, long long b) { return a - floor_div(a, b) * b; }
"""

_BINARY: dict[type[ast.operator], tuple[Any, str]] = {
    ast.Add: (operator.add, "+"),
    ast.Sub: (operator.sub, "-"),
    ast.Mult: (operator.mul, "*"),
    ast.Div: (operator.truediv, "/"),
    ast.FloorDiv: (operator.floordiv, "//"),
    ast.Mod: (operator.mod, "%"),
    ast.Pow: (operator.pow, "**"),
    ast.BitAnd: (operator.and_, "&"),
    ast.BitOr: (operator.or_, "|"),
    ast.BitXor: (operator.xor, "^"),
    ast.LShift: (operator.lshift, "<<"),
    ast.RShift: (operator.rshift, ">>"),
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.inv}
_COMPARE: dict[type[ast.cmpop], tuple[Any, str]] = {
    ast.Lt: (operator.lt, "<"),
    ast.LtE: (operator.le, "<="),
    ast.Gt: (operator.gt, ">"),
    ast.GtE: (operator.ge, ">="),
    ast.Eq: (operator.eq, "=="),
    ast.NotEq: (operator.ne, "!="),
}
_INDICES = {
    cute.arch.thread_idx: "threadIdx",
    cute.arch.block_idx: "blockIdx",
    cute.arch.block_dim: "blockDim",
    cute.arch.grid_dim: "gridDim",
}
_MATH = {getattr(each, name): name for name in cute.MATH_FUNCTIONS for each in (cute.math, math) if hasattr(each, name)}


@dataclass(frozen=True)
class Passed:
    """The type of an argument that is passed to a kernel when it is launched: a tensor or a number."""

    type: DType | type
    rank: int | None = None  # of a tensor

    def __str__(self) -> str:
        name = self.type.name if isinstance(self.type, DType) else self.type.__name__
        return name if self.rank is None else f"a tensor of {name} with {self.rank} modes"


def passed(argument: Any) -> Any:
    """What the text of a kernel depends on: a Passed, or the argument itself if it is known to the compiler."""
    if hasattr(argument, "data_ptr") and hasattr(argument, "stride"):
        return Passed(argument.dtype, len(argument.shape))
    if isinstance(argument, (int, float)):
        return Passed(float if isinstance(argument, float) else int)
    return argument


def translate(function: FunctionType, arguments: Sequence[Any]) -> Source:
    """The CUDA C++ of a kernel for arguments of these types. Raises TraceError."""
    return _Translation(function, arguments).source()


class _Loop:
    """A loop that is translated, with the names that have values at its breaks and continues."""

    def __init__(self) -> None:
        self.at_breaks: list[dict[str, Any]] = []
        self.at_continues: list[dict[str, Any]] = []


class _Translation:
    def __init__(self, function: FunctionType, arguments: Sequence[Any]) -> None:
        try:
            self.file, definition = read_function(function)
        except Untraceable as error:
            raise TraceError(error.reason, None, "define the kernel with def in a file or a notebook") from error
        assert isinstance(definition, ast.FunctionDef)
        self.function = function
        self.definition = definition
        self.symbol = re.sub(r"\W+", "_", function.__qualname__.replace("<locals>", "")).strip("_")
        closure = inspect.getclosurevars(function).nonlocals
        self.outer: dict[str, Any] = {**vars(builtins), **function.__globals__, **closure}
        self.names: dict[str, Any] = {}  # those that have a value on every path to the current statement
        self.lost: dict[str, str] = {}  # why a name that was assigned is not in `names`
        self.is_reached = True  # False after return, break and continue
        self.loops: list[_Loop | None] = []  # around the current statement; None if it is unrolled
        self.variables: dict[str, tuple[str, ast.AST]] = {}  # kind and first assignment
        self.parameters: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.temporaries = 0
        self.copies: list[str] = []  # declarations of the copies that tuples have
        self.assigned = {*_stored_names(definition)}
        self.reassigned = _reassigned(definition)
        self._bind(arguments)

    def source(self) -> Source:
        self._block(self.definition.body)
        declared = [f"  {C_TYPES[kind]} {_identifier(name)};" for name, (kind, _) in self.variables.items()]
        head = f'extern "C" __global__ void {self.symbol}({", ".join(self.parameters)}) {{'
        return Source("\n".join([PROLOGUE, head, *declared, *self.copies, *self.lines, "}", ""]), symbol=self.symbol)

    def _bind(self, arguments: Sequence[Any]) -> None:
        given = self.definition.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
            raise self._error("a kernel takes positional parameters without defaults", self.definition)
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        if len(names) != len(arguments):
            raise self._error(
                f"{self.definition.name} takes {len(names)} arguments, and was called with {len(arguments)}",
                self.definition,
            )
        self.parameter_names = {*names}
        for name, argument in zip(names, arguments, strict=True):
            text = _identifier(name)
            kind = passed(argument)
            if not isinstance(kind, Passed):
                self.names[name] = argument
            elif kind.rank is not None:
                if argument.dtype not in STORAGE:
                    raise self._error(f"{name} has elements of {argument.dtype.name}, which kernels cannot read")
                self.names[name] = TensorParameter(name, argument.dtype, kind.rank)
                element = STORAGE[argument.dtype].type
                self.parameters += [f"{element}* {text}", f"const Extents<{kind.rank}> {text}_at"]
            else:
                self.names[name] = Value(text, "f32" if isinstance(argument, float) else "int")
                self.parameters.append(f"const {C_TYPES[self.names[name].kind]} {text}")

    def _error(self, reason: str, node: ast.AST | None = None, instead: str | None = None) -> TraceError:
        return TraceError(reason, self.file.location(node or self.definition), instead)

    # --- Statements

    def _emit(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            kind = type(statement).__name__
            method = getattr(self, f"_{kind.lower()}", None)
            if method is None:
                raise self._error(f"a kernel cannot have a statement of this kind ({kind})", statement)
            line = self.file.location(statement).line
            self.lines.append(f"#line {line} {json.dumps(self.file.filename)}")  # for the compiler and the emulator
            method(statement)

    def _nested(self, head: str, statements: Sequence[ast.stmt]) -> None:
        self._emit(f"{head} {{")
        self.depth += 1
        self._block(statements)
        self.depth -= 1
        self._emit("}")

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _break(self, node: ast.Break) -> None:
        self._leave(node, "break").at_breaks.append(self.names.copy())

    def _continue(self, node: ast.Continue) -> None:
        self._leave(node, "continue").at_continues.append(self.names.copy())

    def _leave(self, node: ast.stmt, statement: str) -> _Loop:
        loop = self.loops[-1]
        if loop is None:
            raise self._error(f"a loop over range_constexpr() is unrolled, and cannot have {statement}", node)
        self._emit(f"{statement};")
        if not self.is_reached:
            return _Loop()  # which nobody reads
        self.is_reached = False
        return loop

    def _path(self) -> dict[str, Any] | None:
        """The names that have values now; None if the end of the statements before is not reached."""
        return self.names if self.is_reached else None

    def _join(self, paths: Sequence[dict[str, Any] | None], node: ast.stmt) -> None:
        """Continues where paths meet: behind `node`, a branch or a loop."""
        reached = [path for path in paths if path is not None]
        self.is_reached = bool(reached)
        if not reached:
            return
        line = self.file.location(node).line
        what = "branch" if isinstance(node, ast.If) else "loop"
        for name in {name: None for path in reached for name in path}:
            if not all(name in path for path in reached):
                self.lost[name] = f"has no value on some path through the {what} on line {line}"
            elif not all(_is_same(path[name], reached[0][name]) for path in reached):
                self.lost[name] = f"is no number, and has different values after the {what} on line {line}"
        first = reached[0]
        self.names = {
            name: value
            for name, value in first.items()
            if all(name in path and _is_same(path[name], value) for path in reached)
        }

    def _begin_loop(self, node: ast.For | ast.While) -> dict[str, Any]:
        """The names that have values at the begin of every iteration."""
        for name in _stored_names(node):
            if name in self.names and name not in self.variables:
                self.lost[name] = f"is no number, and changes in the loop on line {self.file.location(node).line}"
                del self.names[name]
        self.loops.append(_Loop())
        return self.names.copy()

    def _end_loop(self, before: dict[str, Any], node: ast.For | ast.While, runs: bool, ends: bool = True) -> None:
        """Continues behind a loop, whose body runs at least once if `runs`, and which ends only by break unless `ends`."""
        loop = self.loops.pop()
        assert loop is not None
        after_body = [self._path(), *loop.at_continues] if ends else []
        self._join([*([] if runs else [before]), *after_body, *loop.at_breaks], node)

    def _return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            raise self._error("a kernel returns nothing", node, "store results in a tensor")
        self._emit("return;")
        self.is_reached = False

    def _expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a documentation string
        value = self._value(node.value)
        if isinstance(value, Value):
            self._emit(f"{value.text};")

    def _assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._store(target, value, node)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._store(node.target, self._value(node.value), node)

    def _augassign(self, node: ast.AugAssign) -> None:
        old = ast.copy_location(_as_loaded(node.target), node.target)
        value = self._binary(type(node.op), self._value(old), self._value(node.value), node)
        self._store(node.target, value, node)

    def _if(self, node: ast.If) -> None:
        condition = self._value(node.test)
        if not isinstance(condition, Value):
            self._block(node.body if condition else node.orelse)
            return
        before, is_reached = self.names.copy(), self.is_reached
        self._nested(f"if ({condition.text})", node.body)
        after_body = self._path()
        self.names, self.is_reached = before, is_reached
        if node.orelse:
            self._nested("else", node.orelse)
        self._join([after_body, self._path()], node)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self._error("a loop of a kernel cannot have an else", node)
        is_reached = self.is_reached
        before = self._begin_loop(node)
        test = self._value(node.test)
        runs = not isinstance(test, Value) and bool(test)
        self._nested(f"while ({self._number(test, node).text})", node.body)
        if is_reached:
            self._end_loop(before, node, runs, ends=not runs)
        else:
            self.loops.pop()

    def _for(self, node: ast.For) -> None:
        loop = node.iter
        called = self._value(loop.func) if isinstance(loop, ast.Call) else None
        is_range = called in (range, cute.range_constexpr)
        if node.orelse or not isinstance(loop, ast.Call) or not is_range or loop.keywords:
            raise self._error("a loop of a kernel is `for name in range(...)`", node)
        limits = [self._value(each) for each in loop.args]
        if not 1 <= len(limits) <= 3:
            raise self._error(f"range() takes one to three arguments, got {len(limits)}", loop)
        begin, end, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        if called is cute.range_constexpr:
            if not all(isinstance(each, int) for each in (begin, end, step)):
                raise self._error("range_constexpr() takes integers that are known when the kernel is compiled", loop)
            if not isinstance(node.target, ast.Name):
                raise self._error("a loop of a kernel is `for name in range(...)`", node)
            self.loops.append(None)
            for index in range(begin, end, step):
                self.names[node.target.id] = index
                self._block(node.body)
            self.loops.pop()
            return
        if not isinstance(step, int) or step == 0:
            raise self._error("the step of a loop must be an integer that is known and not 0", loop)
        texts = []
        for each in (begin, end):
            value = self._number(each, loop)
            if value.kind != "int":
                raise self._error("range() takes integers", loop)
            texts.append(self._temporary(value).text)
        counter = f"i{self.temporaries}_"
        self.temporaries += 1
        sign = "<" if step > 0 else ">"
        self._emit(f"for (long long {counter} = {texts[0]}; {counter} {sign} {texts[1]}; {counter} += {step}) {{")
        self.depth += 1
        is_reached = self.is_reached
        before = self._begin_loop(node)
        self._store(node.target, Value(counter, "int"), node)
        self._block(node.body)
        self.depth -= 1
        self._emit("}")
        is_known = isinstance(begin, int) and isinstance(end, int)
        if is_reached:
            self._end_loop(before, node, runs=is_known and len(range(begin, end, step)) > 0)
        else:
            self.loops.pop()

    def _kept(self, value: Any) -> Any:
        """The value, with copies of the variables in a tuple that are assigned again later."""
        if isinstance(value, (tuple, list)):
            return type(value)(map(self._kept, value))
        if not isinstance(value, Value) or self.reassigned.isdisjoint(re.findall(r"(\w+)_v\b", value.text)):
            return value
        copy = f"c{self.temporaries}_"
        self.temporaries += 1
        self.copies.append(f"  {C_TYPES[value.kind]} {copy};")
        self._emit(f"{copy} = {value.text};")
        return Value(copy, value.kind)

    def _temporary(self, value: Value) -> Value:
        """A constant with the value that the expression has now."""
        name = f"t{self.temporaries}_"
        self.temporaries += 1
        self._emit(f"const {C_TYPES[value.kind]} {name} = {value.text};")
        return Value(name, value.kind)

    def _store(self, target: ast.expr, value: Any, node: ast.AST) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                count = len(value) if isinstance(value, (tuple, list)) else 1
                raise self._error(f"{len(target.elts)} names are assigned {count} values", node)
            parts = [self._temporary(each) if isinstance(each, Value) and len(value) > 1 else each for each in value]
            for each, part in zip(target.elts, parts, strict=True):
                self._store(each, part, node)
        elif isinstance(target, ast.Name):
            self._store_name(target.id, value, node)
        elif isinstance(target, ast.Subscript):
            tensor = self._value(target.value)
            if not isinstance(tensor, TensorParameter):
                raise self._error("only elements of tensors can be assigned", target)
            storage = STORAGE[tensor.dtype]
            number = self._number(value, node, storage.kind)
            if KINDS.index(number.kind) > KINDS.index("int") and storage.kind == "int":
                raise self._error(
                    f"{tensor.name} has integers, and is assigned a number of {number.kind}",
                    node,
                    f"convert it: cutlass.{'Int32' if tensor.dtype is DType.s32 else 'Int8'}(...)",
                )
            converted = f"static_cast<{C_TYPES[storage.kind]}>({number.text})"
            stored = f"{storage.store}({converted})" if storage.store else f"static_cast<{storage.type}>({converted})"
            self._emit(f"{self._element(tensor, target)} = {stored};")
        else:
            raise self._error("a kernel assigns names and elements of tensors", target)

    def _store_name(self, name: str, value: Any, node: ast.AST) -> None:
        if name == "_":
            return
        if name in self.parameter_names:
            raise self._error(f"{name} is a parameter, which cannot be assigned", node, "use another name")
        is_number = isinstance(value, (Value, bool, int, float))
        if not isinstance(value, Value) and (name not in self.reassigned or not is_number):
            if name in self.variables:
                raise self._error(f"{name} was a number, and is assigned {value!r:.80}", node)
            self.names[name] = self._kept(value)
            return
        known = self.variables.get(name)
        number = self._number(value, node, known[0] if known else None)
        if known is None:
            self.variables[name] = (number.kind, node)
        elif KINDS.index(number.kind) > KINDS.index(known[0]):
            line = self.file.location(known[1]).line
            raise self._error(
                f"{name} is a number of {number.kind} here, but of {known[0]} on line {line}",
                node,
                f"begin with cutlass.{'Float64' if number.kind == 'f64' else 'Float32'}(...) there",
            )
        self.names[name] = Value(_identifier(name), self.variables[name][0])
        self._emit(f"{_identifier(name)} = {number.text};")

    # --- Expressions

    def _value(self, node: ast.expr) -> Any:
        method = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if method is None:
            raise self._error(f"a kernel cannot have an expression of this kind ({type(node).__name__})", node)
        return method(node)

    def _value_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _value_name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.lost:
            raise self._error(f"{node.id} {self.lost[node.id]}", node, "assign it before")
        if node.id in self.assigned or node.id not in self.outer:
            raise self._error(f"{node.id} has no value here", node)
        return self.outer[node.id]

    def _value_tuple(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        return tuple(self._value(each) for each in node.elts)

    _value_list = _value_tuple

    def _value_attribute(self, node: ast.Attribute) -> Any:
        owner = self._value(node.value)
        if (owner is cute.arch or owner is cute.math) and not hasattr(owner, node.attr):
            raise self._error(f"{owner.__name__} has no {node.attr}: there are {', '.join(owner.__all__)}", node)
        if isinstance(owner, Value) or not hasattr(owner, node.attr):
            what = "a number" if isinstance(owner, Value) else f"{owner!r:.60}"
            raise self._error(f"{what} has no attribute {node.attr}", node)
        return getattr(owner, node.attr)

    def _value_subscript(self, node: ast.Subscript) -> Any:
        owner = self._value(node.value)
        if isinstance(owner, TensorParameter):
            storage = STORAGE[owner.dtype]
            element = self._element(owner, node)
            return Value(f"{storage.load}({element})" if storage.load else element, storage.kind)
        index = self._value(node.slice)
        if isinstance(owner, Value) or isinstance(index, Value):
            raise self._error("only tensors have elements at an index that depends on a thread or a launch", node)
        try:
            return owner[index]
        except (TypeError, IndexError, KeyError) as error:
            raise self._error(str(error), node) from None

    def _element(self, tensor: TensorParameter, node: ast.Subscript) -> str:
        index = self._value(node.slice)
        coordinate = index if isinstance(index, tuple) else (index,)
        if len(coordinate) != tensor.rank:
            raise self._error(
                f"{tensor.name} has {tensor.rank} modes, and is indexed by {len(coordinate)} integers", node
            )
        terms = []
        for each, stride in zip(coordinate, tensor.stride, strict=True):
            number = self._number(each, node)
            if number.kind not in ("int", "bool"):
                raise self._error(f"an index must be an integer, got a number of {number.kind}", node)
            terms.append(f"{number.text} * {stride.text}")
        return f"{tensor.identifier}[{' + '.join(terms)}]"

    def _value_binop(self, node: ast.BinOp) -> Any:
        return self._binary(type(node.op), self._value(node.left), self._value(node.right), node)

    def _binary(self, kind: type[ast.operator], left: Any, right: Any, node: ast.AST) -> Any:
        if kind not in _BINARY:
            raise self._error("a kernel cannot have this operator", node)
        function, sign = _BINARY[kind]
        if not isinstance(left, Value) and not isinstance(right, Value):
            try:
                return function(left, right)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise self._error(str(error), node) from None
        a, b = self._number(left, node, _kind(right)), self._number(right, node, _kind(left))
        wider = max(a.kind, b.kind, "int", key=KINDS.index)
        if sign in ("//", "%") and wider == "int":
            return Value(f"floor_{'div' if sign == '//' else 'mod'}({a.text}, {b.text})", "int")
        if sign in ("//", "%", "**") or sign in ("&", "|", "^", "<<", ">>") and wider != "int":
            raise self._error(f"a kernel cannot compute {sign} of numbers of {wider}", node)
        if sign == "/" and wider == "int":
            wider = "f32"
        texts = [f"static_cast<{C_TYPES[wider]}>({each.text})" if each.kind != wider else each.text for each in (a, b)]
        return Value(f"({texts[0]} {sign} {texts[1]})", wider)

    def _value_unaryop(self, node: ast.UnaryOp) -> Any:
        operand = self._value(node.operand)
        if not isinstance(operand, Value):
            function: Any = _UNARY[type(node.op)]
            return function(operand)
        if isinstance(node.op, ast.Not):
            return Value(f"(!{operand.text})", "bool")
        if isinstance(node.op, ast.Invert) and operand.kind not in ("int", "bool"):
            raise self._error(f"a kernel cannot compute ~ of a number of {operand.kind}", node)
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return Value(f"({sign}{operand.text})", "int" if operand.kind == "bool" else operand.kind)

    def _value_compare(self, node: ast.Compare) -> Any:
        operands = [self._value(each) for each in (node.left, *node.comparators)]
        results = []
        for kind, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(kind) not in _COMPARE:
                raise self._error("a kernel compares numbers by <, <=, >, >=, == and !=", node)
            function, sign = _COMPARE[type(kind)]
            if isinstance(left, Value) or isinstance(right, Value):
                a, b = self._number(left, node, _kind(right)), self._number(right, node, _kind(left))
                results.append(Value(f"({a.text} {sign} {b.text})", "bool"))
            else:
                results.append(function(left, right))
        return self._all(results, is_and=True)

    def _value_boolop(self, node: ast.BoolOp) -> Any:
        return self._all([self._value(each) for each in node.values], isinstance(node.op, ast.And))

    def _all(self, values: Sequence[Any], is_and: bool) -> Any:
        """The conjunction or the disjunction, which is known if one of the known values decides it."""
        unknown = [each for each in values if isinstance(each, Value)]
        if any(bool(each) is not is_and for each in values if not isinstance(each, Value)):
            return not is_and
        if not unknown:
            return is_and
        sign = " && " if is_and else " || "
        return unknown[0] if len(unknown) == 1 else Value(f"({sign.join(each.text for each in unknown)})", "bool")

    def _value_ifexp(self, node: ast.IfExp) -> Any:
        condition = self._value(node.test)
        if not isinstance(condition, Value):
            return self._value(node.body if condition else node.orelse)
        left, right = self._value(node.body), self._value(node.orelse)
        a, b = self._number(left, node, _kind(right)), self._number(right, node, _kind(left))
        wider = max(a.kind, b.kind, key=KINDS.index)
        cast = f"static_cast<{C_TYPES[wider]}>"
        return Value(f"({condition.text} ? {cast}({a.text}) : {cast}({b.text}))", wider)

    def _value_call(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        arguments = [self._value(each) for each in node.args]
        named = {each.arg: self._value(each.value) for each in node.keywords if each.arg}
        known = self._known_function(function, arguments, named, node)
        if known is not None:
            return known
        if isinstance(function, (cute.KernelFunction, cute.JitFunction)):
            raise self._error("a kernel cannot call functions with @cute.kernel or @cute.jit", node)
        if not callable(function):
            raise self._error(f"{function!r:.60} cannot be called", node)
        if _has_value([*arguments, *named.values()]):
            name = getattr(function, "__name__", function)
            raise self._error(f"a kernel cannot call {name} of a number that depends on a thread or a launch", node)
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise self._error(f"{type(error).__name__}: {error}", node) from error

    def _known_function(self, function: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """The result of a function that kernels know; None for any other."""
        if isinstance(function, DType):
            return self._converted(function, arguments, node)
        try:
            hash(function)
        except TypeError:
            return None
        if function in _INDICES:
            builtin = _INDICES[function]
            return tuple(Value(f"static_cast<long long>({builtin}.{axis})", "int") for axis in "xyz")
        if function in _MATH:
            return self._math(_MATH[function], arguments, node)
        if function is cute.arch.lane_idx:
            return Value("static_cast<long long>(threadIdx.x % 32)", "int")
        if function is cute.arch.warp_idx:
            return Value("static_cast<long long>(threadIdx.x / 32)", "int")
        if function is cute.arch.sync_threads:
            return Value("__syncthreads()", "int")
        if function is cute.range_constexpr:
            raise self._error("range_constexpr() is for the head of a loop: `for name in range_constexpr(...)`", node)
        if function is cute.size:
            return self._size(arguments, named, node)
        if function in (min, max) and _has_value(arguments):
            values = arguments[0] if len(arguments) == 1 else arguments
            result = self._number(values[0], node)
            for each in values[1:]:
                other = self._number(each, node, result.kind)
                wider = max(result.kind, other.kind, key=KINDS.index)
                a, b = (f"static_cast<{C_TYPES[wider]}>({value.text})" for value in (result, other))
                result = Value(f"({a} {'<' if function is min else '>'} {b} ? {a} : {b})", wider)
            return result
        if function is abs and _has_value(arguments):
            number = self._number(arguments[0], node)
            return Value(f"({number.text} < 0 ? -{number.text} : {number.text})", number.kind)
        if function in (int, float, bool) and _has_value(arguments):
            kind = {int: "int", float: "f32", bool: "bool"}[function]
            return Value(f"static_cast<{C_TYPES[kind]}>({self._number(arguments[0], node).text})", kind)
        return None

    def _math(self, name: str, arguments: list[Any], node: ast.AST) -> Any:
        """A function of cute.math: of a number that is known, that of Python."""
        if len(arguments) != 1:
            raise self._error(f"{name}() takes one number, got {len(arguments)}", node)
        if not _has_value(arguments):
            known = self._known_number(arguments[0], node)
            try:
                return 1 / math.sqrt(known) if name == "rsqrt" else getattr(math, name)(known)
            except (ValueError, ArithmeticError) as error:
                raise self._error(f"{name}({known}): {error}", node) from None
        number = self._number(arguments[0], node)
        suffix = "" if number.kind == "f64" else "f"
        return Value(f"{name}{suffix}({number.text})", "f64" if suffix == "" else "f32")

    def _known_number(self, value: Any, node: ast.AST) -> float:
        if not isinstance(value, (int, float)):
            raise self._error(f"a number is needed here, got {value!r:.80}", node)
        return value

    def _converted(self, dtype: DType, arguments: list[Any], node: ast.AST) -> Value:
        if len(arguments) != 1 or dtype not in STORAGE:
            raise self._error(f"{dtype.name} is no type that converts a number in kernels", node)
        storage = STORAGE[dtype]
        number = self._number(arguments[0], node, storage.kind)
        text = f"static_cast<{C_TYPES[storage.kind]}>({number.text})"
        if storage.store:
            text = f"{storage.load}({storage.store}({text}))"
        elif storage.type not in C_TYPES.values():
            text = f"static_cast<long long>(static_cast<{storage.type}>({text}))"
        return Value(text, storage.kind)

    def _size(self, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        if not arguments or not isinstance(arguments[0], TensorParameter):
            raise self._error("cute.size() takes a tensor", node)
        mode = named.get("mode", [*range(arguments[0].rank)])
        result: Any = 1
        for each in mode if isinstance(mode, (tuple, list)) else (mode,):
            result = self._binary(ast.Mult, result, arguments[0].shape[each], node)
        return result

    def _number(self, value: Any, node: ast.AST, like: str | None = None) -> Value:
        """A number as an expression of C++. A known float has the kind `like` if that is a kind of floats."""
        if isinstance(value, Value):
            return value
        if isinstance(value, bool):
            return Value("true" if value else "false", "bool")
        if isinstance(value, int):
            if like in ("f32", "f64"):
                return self._number(float(value), node, like)
            if not -(2**63) < value < 2**63:
                raise self._error(f"{value} does not fit into 64 bits", node)
            return Value(f"{value}LL" if value >= 0 else f"({value}LL)", "int")
        if isinstance(value, float):
            kind = "f64" if like == "f64" else "f32"
            if not math.isfinite(value):
                text = "__longlong_as_double(0x7ff8000000000000LL)" if value != value else "(1.0 / 0.0)"
                return Value(f"static_cast<{C_TYPES[kind]}>({'-' if value < 0 else ''}{text})", kind)
            text = value.hex() if kind == "f64" else f"{value.hex()}f"
            return Value(f"({text})" if value < 0 else text, kind)
        raise self._error(f"a number is needed here, got {value!r:.80}", node)


def _kind(value: Any) -> str | None:
    return value.kind if isinstance(value, Value) else None


def _has_value(values: Sequence[Any]) -> bool:
    return any(
        isinstance(each, (Value, TensorParameter)) or isinstance(each, (tuple, list)) and _has_value(each)
        for each in values
    )


def _identifier(name: str) -> str:
    """The name in C++, which is no keyword of it and no name of the prologue."""
    return f"{name}_v"


def _as_loaded(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    return target


def _is_same(x: Any, y: Any) -> bool:
    """Whether two values of a name are the same for the kernel: one object, or equal numbers, expressions or tuples."""
    if isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y):
        return all(map(_is_same, x, y))
    kinds = (Value, bool, int, float, str)
    return x is y or type(x) is type(y) and isinstance(x, kinds) and bool(x == y)


def _stored_names(node: ast.AST) -> list[str]:
    """The names that a statement, or one inside it, assigns."""
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


def _reassigned(definition: ast.FunctionDef) -> set[str]:
    """The names that are assigned more than once, or in a branch or a loop."""
    counts: dict[str, int] = {}

    def visit(node: ast.AST, weight: int) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                again = isinstance(node, ast.AugAssign)
                counts[child.id] = counts.get(child.id, 0) + (2 if again else weight)
            visit(child, 2 if isinstance(child, (ast.If, ast.For, ast.While)) else weight)

    visit(definition, 1)
    return {name for name, count in counts.items() if count > 1}
