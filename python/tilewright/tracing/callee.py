"""Functions that can be traced, and the conversion of Python objects to values of the tracer."""

from __future__ import annotations

import ast
import functools
import numbers
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from . import library
from .errors import Untraceable
from .graph import Reduced, Traced, describe
from .source import Definition, Source, read_function

MAX_CALL_DEPTH = 64

F = TypeVar("F", bound=Callable[..., object])


def traced_as(stand_in: Callable[..., object]) -> Callable[[F], F]:
    """A decorator for a function that cannot be traced: a call of it is traced as a call of `stand_in` instead.

    The function itself does not change, so that calls outside of epilogues compute what they did before.
    torch.compiler.substitute_in_graph has the same purpose for torch.compile.
    """

    def mark(function: F) -> F:
        vars(function)["__traced_as__"] = stand_in
        return function

    return mark


@dataclass(frozen=True, eq=False)
class Callee:
    """A function that can be traced: its definition, the values of its names, and parameters that are already bound."""

    name: str
    source: Source
    definition: Definition
    lookup: Callable[[str], object]  # the value of a name of its closure or globals; raises KeyError
    defaults: Mapping[str, object] = field(default_factory=dict)
    preset: Mapping[str, object] = field(default_factory=dict)  # values bound by a method or a functools.partial

    def parameters(self) -> list[ast.arg]:
        arguments = self.definition.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def __str__(self) -> str:
        return self.name


def admit(value: object) -> object:
    """Converts a Python object to a value of the tracer.

    Numbers and strings become constants; modules and functions of known libraries become library.Name. Other objects
    stay as they are: the traced function may call them or read their attributes.
    """
    if value is None or isinstance(value, (Traced, Reduced, library.Name, library.Method, Callee)):
        return value
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if value is Ellipsis or type(value) in (tuple, list, dict, range):
        return value
    try:
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        return library.resolve_object(value) or value
    except Exception:  # raised by the object's own methods
        return value


@functools.lru_cache(maxsize=256)
def _definition(code: types.CodeType, filename: str) -> tuple[Source, Definition]:
    return read_function(types.FunctionType(code, {}, closure=tuple(types.CellType() for _ in code.co_freevars)))


def callee_of(function: object) -> Callee:
    """The Callee of a function, lambda, method, functools.partial or object with __call__. Raises Untraceable."""
    given: tuple[object, ...] = ()
    keywords: dict[str, object] = {}
    for _ in range(MAX_CALL_DEPTH):
        if isinstance(function, functools.partial):
            given, keywords = (*function.args, *given), {**function.keywords, **keywords}
            function = function.func
        elif isinstance(function, types.MethodType):
            given, function = (function.__self__, *given), function.__func__
        elif isinstance(function, types.FunctionType) and "__traced_as__" in vars(function):
            function = vars(function)["__traced_as__"]
        elif isinstance(function, (types.FunctionType, type)):
            break
        elif isinstance(vars(type(function)).get("__call__"), types.FunctionType):
            given, function = (function, *given), vars(type(function))["__call__"]
        else:
            break
    if not isinstance(function, types.FunctionType):
        raise Untraceable(f"{describe(function)} is not a function that can be traced")
    if "__wrapped__" in vars(function):
        raise Untraceable(f"{function.__name__} is wrapped by a decorator", f"{function.__name__}.__wrapped__")
    code = function.__code__
    source, definition = _definition(code, code.co_filename)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    scope = function.__globals__

    def lookup(name: str) -> object:
        if name not in cells:
            return scope[name]
        try:
            return cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    named = [*definition.args.posonlyargs, *definition.args.args]
    defaults = dict(zip([each.arg for each in reversed(named)], reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    if len(given) > len(named):
        raise Untraceable(f"{code.co_name} takes {len(named)} arguments, got {len(given)}")
    preset = {**dict(zip([each.arg for each in named], given, strict=False)), **keywords}
    return Callee(code.co_name, source, definition, lookup, defaults, preset)


def bind(callee: Callee, arguments: Sequence[object], keywords: Mapping[str, object]) -> dict[str, object]:
    """The values of all parameters for a call with these arguments. Raises Untraceable."""
    signature = callee.definition.args
    if signature.vararg or signature.kwarg:
        raise Untraceable(f"{callee.name} has a '*' parameter, which cannot be traced", "name each parameter")
    positional = [each.arg for each in (*signature.posonlyargs, *signature.args) if each.arg not in callee.preset]
    if len(arguments) > len(positional):
        raise Untraceable(f"{callee.name} takes {len(positional)} arguments, got {len(arguments)}")
    bound = {**callee.defaults, **callee.preset, **dict(zip(positional, arguments, strict=False))}
    names = {each.arg for each in callee.parameters()} - {each.arg for each in signature.posonlyargs}
    for name, value in keywords.items():
        if name not in names or name in positional[: len(arguments)]:
            raise Untraceable(f"{callee.name} has no parameter '{name}', or it is already bound")
        bound[name] = value
    missing = [each.arg for each in callee.parameters() if each.arg not in bound]
    if missing:
        raise Untraceable(f"the call of {callee.name} lacks {', '.join(missing)}")
    return {name: admit(value) for name, value in bound.items()}
