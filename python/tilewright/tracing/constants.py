"""Operations on numbers and other constants, which Python computes during tracing."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import Untraceable
from .graph import Traced, describe

LARGEST = 2**1024  # f64 holds integers below this

SCALARS = (bool, int, float)

CONSTANTS = (bool, int, float, str, type(None), types.EllipsisType)

ON_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: x / y,
    ast.FloorDiv: lambda x, y: x // y,
    ast.Mod: lambda x, y: x % y,
    ast.Pow: lambda x, y: x**y,
    ast.BitAnd: lambda x, y: x & y,
    ast.BitOr: lambda x, y: x | y,
    ast.BitXor: lambda x, y: x ^ y,
}

ON_CONSTANTS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: lambda x, y: x < y,
    ast.LtE: lambda x, y: x <= y,
    ast.Gt: lambda x, y: x > y,
    ast.GtE: lambda x, y: x >= y,
    ast.Eq: lambda x, y: x == y,
    ast.NotEq: lambda x, y: x != y,
    ast.Is: lambda x, y: x is y,
    ast.IsNot: lambda x, y: x is not y,
    ast.In: lambda x, y: x in y,
    ast.NotIn: lambda x, y: x not in y,
}


def symbol(op: ast.operator) -> str:
    """The symbol of an operator, for messages."""
    name = ast.Name("x", ast.Load())
    return ast.unparse(ast.BinOp(name, op, name)).strip("x ")


def on_numbers(op: ast.operator, x: float, y: float) -> object:
    """The result that Python computes. Raises Untraceable if it does not fit in f64."""
    if type(op) not in ON_NUMBERS:
        raise Untraceable(f"'{symbol(op)}' of numbers cannot be traced")
    are_whole = isinstance(x, int) and isinstance(y, int)
    if isinstance(op, ast.Pow) and are_whole and abs(x) > 1 and y * (int(x).bit_length() - 1) >= 1024:
        raise Untraceable("the result does not fit in f64")
    try:
        value = ON_NUMBERS[type(op)](x, y)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Untraceable(str(error)) from error
    if not isinstance(value, SCALARS) or (isinstance(value, int) and abs(value) >= LARGEST):
        raise Untraceable("the result does not fit in f64")
    return value


def on_constants(name: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Calls range, len, float, int or bool on constants. Raises Untraceable."""
    functions: dict[str, Callable[..., object]] = {"range": range, "len": len, "float": float, "int": int, "bool": bool}
    takes = (tuple, list, range) if name == "len" else CONSTANTS
    for each in arguments:
        if isinstance(each, Traced) and name in ("float", "int", "bool"):
            raise Untraceable(f"{name}() takes constants only", "x.to(torch.float16), or round(x)")
        if not isinstance(each, takes) or (isinstance(each, str) and name != "float"):
            raise Untraceable(f"{name}() takes constants only, got {describe(each)}")
    if keywords:
        raise Untraceable(f"{name}() takes no keyword arguments")
    try:
        return functions[name](*arguments)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Untraceable(f"{name}(): {error}") from error
