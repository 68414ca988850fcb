"""Signatures of the extension's functions for inspect and help(), and TypeErrors that name the argument."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

_EMPTY = inspect.Parameter.empty


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a signature that inspect reads, and with TypeErrors that name the wrong argument.

    Functions with several signatures are returned as they are.
    """
    signature = _signature(function)
    if signature is None:
        return function

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            reason = _reason(str(error), function.__name__, signature, args, keywords)
            if reason is None:
                raise
            raise TypeError(reason) from None

    setattr(call, "__signature__", signature)  # noqa: B010
    del call.__dict__["__wrapped__"]
    return call


def with_signature(kind: type) -> type:
    """The class, whose constructor has a signature that inspect reads, if it has only one."""
    if "__signature__" in vars(kind):
        return kind
    signature = _signature(vars(kind).get("__init__"))
    if signature is not None:
        own = [each for each in signature.parameters.values() if each.name != "self"]
        setattr(kind, "__signature__", signature.replace(parameters=own, return_annotation=inspect.Signature.empty))
    return kind


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function of nanobind. Annotations are texts."""
    overloads: Any = getattr(function, "__nb_signature__", ())
    if len(overloads) != 1:
        return None
    text, _, defaults = overloads[0]
    inside = re.fullmatch(r"def \w+\((.*)\) -> (.*)", text, re.DOTALL)
    if inside is None:
        return None
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[inspect.Parameter] = []
    for part in _split(inside[1]):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        if part == "/":
            parameters = [each.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for each in parameters]
            continue
        declared, _, default = part.partition(" = ")
        name, _, annotation = declared.partition(": ")
        if name.startswith("**"):
            parameters.append(inspect.Parameter(name[2:], inspect.Parameter.VAR_KEYWORD))
            continue
        value: Any = _EMPTY
        if default.startswith("\\"):
            place = int(default[1:])
            value = defaults[place] if defaults is not None and place < len(defaults) else None
        elif default:
            value = default
        parameters.append(
            inspect.Parameter(name, kind, default=value, annotation=_readable(annotation) if annotation else _EMPTY)
        )
    try:
        return inspect.Signature(parameters, return_annotation=_readable(inside[2]))
    except ValueError:
        return None


def _split(text: str) -> list[str]:
    """Splits at the commas that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text.strip() else parts


def _readable(annotation: str) -> str:
    return annotation.replace("tilewright._tilewright.", "").replace("collections.abc.", "")


def _reason(
    message: str, name: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]
) -> str | None:
    """What is wrong with the arguments, or None if the error is none of nanobind's about them."""
    if not message.startswith(f"{name}(): incompatible function arguments"):
        return None
    known = list(signature.parameters)
    for keyword in keywords:
        if keyword not in known:
            close = difflib.get_close_matches(keyword, known, 1, 0.6)
            instead = f"did you mean '{close[0]}'?" if close else f"it takes {', '.join(known)}"
            return f"{name}() has no argument '{keyword}': {instead}"
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        return f"{name}(): {error}; it takes {', '.join(known)}"
    for argument, value in bound.arguments.items():
        annotation = str(signature.parameters[argument].annotation)
        if not _fits(value, annotation):
            return f"{name}(): {argument} must be {_described(annotation)}, got {_shown(value)}"
    return None


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "str": (str,),
    "object": (object,),
    "None": (type(None),),
}


def _fits(value: Any, annotation: str) -> bool:
    """Whether the value may be of the type; unknown types fit by the name of the value's class."""
    for each in annotation.split(" | "):
        if each == "int" and isinstance(value, bool):
            continue
        if each in _TYPES and isinstance(value, _TYPES[each]):
            return True
        if each.startswith("Sequence[") and isinstance(value, (list, tuple)):
            inner = each[len("Sequence[") : -1]
            return all(_fits(item, inner) for item in value)
        if any(each == kind.__name__ for kind in type(value).__mro__):
            return True
    return False


_DESCRIBED = {
    "OperationArguments": "the arguments of an operation, such as GemmArguments(A, B, out)",
    "Kernel": "a Kernel, such as find_kernels(args)[0]",
    "Artifact": "an Artifact, such as kernel.compile(args)",
    "bool": "True or False",
    "str": "a str",
    "int": "an int",
    "float": "a number",
    "Sequence[str]": "a list of str",
    "Sequence[Kernel]": "a list of kernels",
    "BLASDesignMetadata": "a BLASDesignMetadata",
}


def _described(annotation: str) -> str:
    return " or ".join(_DESCRIBED.get(each, each) for each in annotation.split(" | "))


def _shown(value: Any) -> str:
    kind = type(value)
    if isinstance(value, (bool, int, float, str, type(None))):
        return f"{value!r:.60}"
    return f"an array of {kind.__module__}" if hasattr(value, "shape") else f"a {kind.__name__}"
