"""Signatures of the extension's functions for inspect and help(), and TypeErrors that name the argument."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tilewright import _tilewright
from tilewright._tilewright import _explain_constructor, _is_initialised, _refuse_construction

_EMPTY = inspect.Parameter.empty
_OPERATORS = ("__call__", "__getitem__")  # other operators return NotImplemented for operands that they do not know


def checked(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """The function, with TypeErrors that name the wrong argument, and a signature that inspect reads if it has only one.
    Messages begin with `name`, by default that of the function; those of methods begin with the class too."""
    overloads = _overloads(function)
    if not overloads:
        return function
    is_method = type(function).__name__ == "nb_method"

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            label = name or function.__name__
            if is_method and args:
                label = f"{type(args[0]).__name__}.{label}"
                if not _is_initialised(args[0]):
                    raise TypeError(f"{type(args[0]).__name__}.__init__() has not called super().__init__()") from None
            reason = _reason(str(error), label, function, args, keywords)
            if reason is None:
                raise
            raise TypeError(reason) from None

    if len(overloads) == 1:
        setattr(call, "__wrapped__", _Declared(function))  # noqa: B010
    else:
        delattr(call, "__wrapped__")  # noqa: B043
    return call


class _Declared:
    """inspect.signature() asks it for the signature of a function or a constructor, which is not made before."""

    def __init__(self, function: Any) -> None:
        self.function = function

    @property
    def __signature__(self) -> inspect.Signature:
        return _signatures(self.function)[0]


def checked_class(kind: type) -> type:
    """The class. Its constructor and its methods, also those that it inherits, are changed to what checked() returns."""
    for each in kind.__mro__:
        if type(each).__name__.startswith("nb_type") and "_is_checked" not in vars(each):
            _check_class(each)
    return kind


def _check_class(kind: type) -> None:
    for name, value in list(vars(kind).items()):
        if _overloads(value) and (name in _OPERATORS or not name.startswith("__")):
            is_static = type(value).__name__ == "nb_func"
            method = checked(value, f"{kind.__name__}.{name}" if is_static else name)
            setattr(kind, name, staticmethod(method) if is_static else method)
    name = "__new__" if _overloads(vars(kind).get("__new__")) else "__init__"
    construct = vars(kind).get(name)
    if _overloads(construct):
        _explain_constructor(kind, functools.partial(_explain_construction, construct), name == "__new__")
        setattr(kind, "__signature__", _SignatureOfClass(construct))  # noqa: B010
    elif not any(_overloads(vars(each).get("__init__")) for each in kind.__mro__):
        _refuse_construction(kind, _origin(kind))
    setattr(kind, "_is_checked", True)  # noqa: B010


def _origin(kind: type) -> str:
    """Where objects of a class without a constructor come from: the last sentence of its docstring."""
    return (kind.__doc__ or "").rstrip(". ").rpartition(". ")[2]


class _SignatureOfClass(_Declared):
    """The attribute __signature__ of a class: that of its constructor, or that of a function of any arguments if it has
    several. Its objects, of which some can be called, have none."""

    def __get__(self, instance: object, kind: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError(f"'{kind.__name__}' object has no attribute '__signature__'")
        if len(_declarations(self.function)) == 1:
            return self.__signature__.replace(return_annotation=inspect.Signature.empty)
        return inspect.signature(_of_any_arguments)


def _of_any_arguments(*args: Any, **keywords: Any) -> None: ...


def check_all(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Replaces the functions and changes the classes of these names in the namespace of a module."""
    for name in names:
        value = namespace[name]
        if isinstance(value, type):
            checked_class(value)
        elif callable(value):
            namespace[name] = checked(value)


def _overloads(function: Any) -> Sequence[tuple[str, Any, Any]]:
    found: Sequence[tuple[str, Any, Any]] = getattr(function, "__nb_signature__", ())
    return found


def _explain_construction(
    construct: Any, name: str, message: str, args: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    own = args[1:] if construct.__name__ == "__new__" else args
    reason = _reason(message, name, construct, own, keywords)
    if reason is not None:
        raise TypeError(reason)


def _declarations(function: Any) -> list[tuple[str, Any, Any]]:
    """The overloads, without the __new__(arg) that nanobind defines for unpickling."""
    found = [*_overloads(function)]
    return [each for each in found if "(cls" in each[0]] if function.__name__ == "__new__" else found


def _signatures(function: Any) -> list[inspect.Signature]:
    """The signatures of a function of nanobind, those of constructors without `self` and `cls`. Annotations are texts."""
    found = [_signature(text, defaults) for text, _, defaults in _declarations(function)]
    if function.__name__ in ("__init__", "__new__"):
        return [each.replace(parameters=[*each.parameters.values()][1:]) for each in found]
    return found


def _signature(text: str, defaults: Any) -> inspect.Signature:
    inside = re.fullmatch(r"def \w+\((.*)\) -> (.*)", text, re.DOTALL)
    assert inside is not None, text
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters: list[inspect.Parameter] = []
    for part in _split(inside[1], ","):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        if part == "/":
            parameters = [each.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for each in parameters]
            continue
        declared, _, default = part.partition(" = ")
        name, _, annotation = declared.partition(": ")
        own = kind
        if name.startswith("*"):
            own = inspect.Parameter.VAR_KEYWORD if name.startswith("**") else inspect.Parameter.VAR_POSITIONAL
        value: Any = _EMPTY
        if default.startswith("\\"):
            place = int(default[1:])
            value = defaults[place] if defaults is not None and place < len(defaults) else None
        elif default:
            value = default
        parameters.append(
            inspect.Parameter(
                name.lstrip("*"), own, default=value, annotation=_readable(annotation) if annotation else _EMPTY
            )
        )
        if own is inspect.Parameter.VAR_POSITIONAL:
            kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(parameters, return_annotation=_readable(inside[2]))


def _split(text: str, separator: str) -> list[str]:
    """Splits at the separators that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == separator and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text.strip() else parts


def _readable(annotation: str) -> str:
    return re.sub(r"\b(?:tilewright|_tilewright|layout|program|arch|collections|abc|typing)\.", "", annotation)


class _Mismatch(NamedTuple):
    place: int  # of the argument in the signature
    argument: str
    annotation: str
    value: Any


def _reason(message: str, name: str, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
    """What is wrong with the arguments, or None if the error is none of nanobind's about them."""
    if not message.startswith(f"{function.__name__}(): incompatible function arguments"):
        return None
    signatures = _signatures(function)
    names = (parameter for each in signatures for parameter in each.parameters if parameter != "self")
    known = list(dict.fromkeys(names))
    takes = f"it takes {', '.join(known)}" if known else "it takes no arguments"
    for keyword in keywords:
        if keyword not in known:
            close = difflib.get_close_matches(keyword, known, 1, 0.6)
            instead = f"did you mean '{close[0]}'?" if close else takes
            return f"{name}() has no argument '{keyword}': {instead}"
    unbound, wrong = [], []
    for signature in signatures:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            unbound.append(str(error))
            continue
        mismatch = _mismatch(signature, bound.arguments)
        if mismatch is not None:
            wrong.append(mismatch)
    if len(unbound) == len(signatures):
        return f"{name}(): {unbound[-1]}; {takes}"
    if not wrong:  # a condition that no annotation has
        for signature in signatures if len(signatures) == 1 else ():
            for argument, value in signature.bind(*args, **keywords).arguments.items():
                if isinstance(value, int) and not -(2**31) <= value < 2**31 or isinstance(value, int) and value < 0:
                    return f"{name}(): {argument} is out of range, got {value}"
        texts = " or ".join(str(each.replace(return_annotation=_EMPTY)) for each in signatures)
        return f"{name}(): the arguments must be {texts}, got {', '.join(map(_shown, args))}"
    last = max(wrong, key=lambda mismatch: mismatch.place)
    accepted = " | ".join(each.annotation for each in wrong if each.place == last.place)
    if accepted == "object":
        return f"{name}(): {last.argument} must not be None"
    return f"{name}(): {last.argument} must be {_described(accepted)}, got {_shown(last.value)}"


def _mismatch(signature: inspect.Signature, arguments: Mapping[str, Any]) -> _Mismatch | None:
    """The first argument whose value is not of its type."""
    for place, (argument, value) in enumerate(arguments.items()):
        parameter = signature.parameters[argument]
        if parameter.annotation is _EMPTY or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        annotation = str(parameter.annotation)
        values = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
        for each in values:
            if not _fits(each, annotation):
                return _Mismatch(place, argument, annotation, each)
    return None


_UNIONS = {
    "IntTuple": "int | ScaledBasis | tuple[IntTuple, ...]",
    "Coord": "int | ScaledBasis | None | tuple[Coord, ...]",
    "Tiler": "Layout | ComposedLayout | int | ScaledBasis | None | tuple[Tiler, ...]",
}


def _fits(value: Any, annotation: str) -> bool:
    """Whether the value may be of the type; unknown types fit by the name of the value's class."""
    return any(_fits_one(value, each) for each in _split(annotation, "|"))


def _fits_one(value: Any, annotation: str) -> bool:
    if annotation in _UNIONS:
        return _fits(value, _UNIONS[annotation])
    name, _, inner = annotation.removesuffix("]").partition("[")
    if name in ("object", "Any"):
        return value is not None  # `object | None` accepts all
    if name == "None":
        return value is None
    if name == "int":
        return hasattr(type(value), "__index__") and not isinstance(value, bool)
    if name == "float":
        return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if name in ("Sequence", "list"):
        return isinstance(value, (list, tuple)) and all(_fits(each, inner) for each in value)
    if name == "tuple":
        return isinstance(value, (list, tuple)) and _fit_each(value, _split(inner, ","))
    if name == "Mapping":
        return isinstance(value, Mapping)
    if name == "Callable":
        return callable(value)
    if name == "os.PathLike":
        return hasattr(type(value), "__fspath__")
    return any(name == kind.__name__ for kind in type(value).__mro__)


def _fit_each(values: Sequence[Any], annotations: list[str]) -> bool:
    if annotations[1:] == ["..."]:
        return all(_fits(each, annotations[0]) for each in values)
    return len(values) == len(annotations) and all(map(_fits, values, annotations))


_DESCRIBED = {
    "OperationArguments": "the arguments of an operation, such as GemmArguments(A, B, out)",
    "Kernel": "a Kernel, such as find_kernels(args)[0]",
    "Artifact": "an Artifact, such as kernel.compile(args)",
    "KernelBuilder": "the Kernel that is recorded",
    "None": "None",
    "object": "an object",
    "bool": "True or False",
    "float": "a number",
    "str": "a str",
    "os.PathLike[str]": "an os.PathLike",
    "IntTuple": "an int or a tuple of ints",
    "Coord": "an int, None or a tuple of these",
    "Tiler": "a Layout, an int, None or a tuple of these",
    "Callable": "a function",
    "Mapping": "a mapping",
}
_PLURALS = {"int": "ints", "str": "str", "Kernel": "kernels", "Value": "Values", "object": "objects"}


def _described(annotation: str) -> str:
    texts = list(dict.fromkeys(_described_one(each) for each in _split(annotation, "|")))
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _described_one(annotation: str) -> str:
    if annotation in _DESCRIBED:
        return _DESCRIBED[annotation]
    name, _, inner = annotation.removesuffix("]").partition("[")
    if name in _DESCRIBED:
        return _DESCRIBED[name]
    if name == "tuple":
        kinds = _split(inner, ",")
        return f"a tuple of {len(kinds)} {_PLURALS.get(kinds[0], kinds[0])}"
    if name in ("Sequence", "list"):
        return f"a list of {_PLURALS.get(inner, inner)}"
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _shown(value: Any) -> str:
    kind = type(value)
    if isinstance(value, (bool, int, float, str, tuple, list, type(None))):
        return f"{value!r:.60}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an array of {kind.__module__}" if hasattr(value, "shape") else f"a {kind.__name__}"


for _value in [*vars(_tilewright).values()]:
    if isinstance(_value, type):
        checked_class(_value)
