"""A key of a function: functions with equal keys are traced to the same epilogue."""

from __future__ import annotations

import builtins
import dis
import functools
import math
import types
from collections.abc import Hashable
from typing import Any

from tilewright._tilewright import _find_function_key, _remember_function_key
from tilewright.libraries import ROOTS

from . import library

_MAX_DEPTH = 16
_LOADS_OF_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis))


class _Unknown(Exception):
    """The function depends on an object whose contents may change."""


def key_of(function: object) -> Hashable | None:
    """The key of a function or text: its code, and the values of its closure, its defaults and the globals that it may
    read, also of the functions that it calls. None if one of these values is an object that can change."""
    try:
        if isinstance(function, types.FunctionType):
            return _of_function(function)
        if isinstance(function, str):
            return function
        return _of_callable(function, ())
    except _Unknown:
        return None


class _Key:
    """A key that is compared by identity, because the hash of a function's code takes long."""


_KEYS: dict[Hashable, _Key] = {}  # by what _of_callable() returns


def _of_function(function: types.FunctionType) -> Hashable:
    """_of_callable(function), which is not called again for functions whose code reads the same objects as before, if
    these cannot change: modules, builtins, numbers, functions of libraries, and functions of which the same is true."""
    known = _find_function_key(function)
    if isinstance(known, _Key):
        return known
    structure = _of_callable(function, ())
    if function.__kwdefaults__ or vars(function):
        return structure
    scope, closure = function.__globals__, function.__closure__ or ()
    cells: list[tuple[Any, ...]] = []
    for cell in closure:
        try:
            cells.append((cell.cell_contents, _lasting_key(cell.cell_contents)))
        except (ValueError, _Changing):  # the cell is empty
            return structure
    read: list[tuple[Any, ...]] = []
    try:
        if any(_lasting_key(value) is not None for value in function.__defaults__ or ()):
            return structure
        for name in _names(function.__code__):
            read.append((name, _lasting_key(scope[name]), scope[name]) if name in scope else (name, None))
    except _Changing:
        return structure
    key = _KEYS.get(structure)
    if key is None:
        key = _Key()
        _insert(_KEYS, structure, key)
    _remember_function_key(function, key, cells, read)
    return key


class _Changing(Exception):
    """The key of an object may change."""


def _lasting_key(value: object) -> _Key | None:
    """None for an object of which _of_value() always returns the same; the key of a function of the program."""
    if not isinstance(value, (types.FunctionType, functools.partial)) or _is_of_library(value):
        return None
    key = _of_function(value) if isinstance(value, types.FunctionType) else None
    if not isinstance(key, _Key):
        raise _Changing
    return key


def _insert(known: dict[Any, Any], key: Hashable, value: object) -> None:
    if len(known) >= 256:
        known.clear()
    known[key] = value


def _of_callable(function: object, callers: tuple[types.CodeType, ...]) -> Hashable:
    if isinstance(function, functools.partial):
        arguments = tuple(_of_value(each, callers) for each in function.args)
        keywords = tuple((name, _of_value(each, callers)) for name, each in sorted(function.keywords.items()))
        return "partial", _of_callable(function.func, callers), arguments, keywords
    if not isinstance(function, types.FunctionType):
        raise _Unknown
    stand_in = vars(function).get("__traced_as__")
    if stand_in is not None:
        return _of_callable(stand_in, callers)
    if "__wrapped__" in vars(function):
        raise _Unknown
    code = function.__code__
    if code in callers or len(callers) >= _MAX_DEPTH:
        raise _Unknown
    inside = (*callers, code)
    closure = tuple(_of_cell(cell, inside) for cell in function.__closure__ or ())
    defaults = tuple(_of_value(each, inside) for each in function.__defaults__ or ())
    keywords = tuple((name, _of_value(each, inside)) for name, each in (function.__kwdefaults__ or {}).items())
    values = tuple(
        (name, _of_value(function.__globals__[name], inside)) for name in _names(code) if name in function.__globals__
    )
    return code, code.co_filename, closure, defaults, keywords, values


_NAMES: dict[int, tuple[tuple[str, ...], types.CodeType]] = {}  # by the address of the code, which is kept


def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names that the code, and the functions defined in it, look up in the module."""
    found = _NAMES.get(id(code))
    if found is not None:
        return found[0]
    own = [each.argval for each in dis.get_instructions(code) if each.opname in _LOADS_OF_NAMES]
    inner = [name for each in code.co_consts if isinstance(each, types.CodeType) for name in _names(each)]
    names = tuple(dict.fromkeys([*own, *inner]))
    _insert(_NAMES, id(code), (names, code))
    return names


def _of_cell(cell: types.CellType, callers: tuple[types.CodeType, ...]) -> Hashable:
    try:
        return _of_value(cell.cell_contents, callers)
    except ValueError:
        return "empty"


def _of_value(value: Any, callers: tuple[types.CodeType, ...]) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, float):
        return kind, float(value).hex() if math.isfinite(value) else repr(value)
    if kind is tuple:
        return kind, tuple(_of_value(each, callers) for each in value)
    if isinstance(value, types.ModuleType):
        path = vars(value).get("__name__")
        if isinstance(path, str) and path.split(".")[0] in (*ROOTS, "tilewright", "builtins"):
            return "module", path
        raise _Unknown
    if isinstance(value, types.BuiltinFunctionType):
        name = str(value.__name__)
        if getattr(builtins, name, None) is value:
            return "builtin", name
    if isinstance(value, (types.FunctionType, functools.partial)) and not _is_of_library(value):
        return _of_callable(value, callers)
    known = _resolved(value)
    if known is None:
        raise _Unknown
    return "library", known


def _is_of_library(value: object) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.split(".")[0] in ROOTS


_RESOLVED: dict[int, tuple[object, str | None]] = {}  # by the address of the object, which is kept


def _resolved(value: object) -> str | None:
    """The path of library.resolve_object(), which is remembered because the search takes long."""
    found = _RESOLVED.get(id(value))
    if found is not None and found[0] is value:
        return found[1]
    name = library.resolve_object(value)
    if name is None:
        return None
    _insert(_RESOLVED, id(value), (value, name.path))
    return name.path
