"""A TypeError of any public function, class or method names an argument and what it takes, in Tilewright's words."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import tilewright
from tilewright import arch, cutlass_api, emulator, layout, pycutlass
from tilewright import program as tp

MODULES = (tilewright, arch, cutlass_api, emulator, layout, pycutlass, tp)


class Wrong:
    """An object that no parameter takes."""


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", None) or [each for each in dir(module) if not each.startswith("_")]:
        value = getattr(module, name)
        is_own = getattr(value, "__module__", "").startswith("tilewright")
        if callable(value) and is_own and not (isinstance(value, type) and issubclass(value, (enum.Enum, Exception))):
            yield name, value


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        is_own = getattr(getattr(value, "__func__", value), "__module__", None) is not None
        is_arithmetic = name == "numpy"  # of an activation, which computes with any array
        if is_own and callable(value) and not is_arithmetic and (name in ("__call__", "__getitem__") or not name.startswith("_")):
            yield f"{kind.__name__}.{name}", value


def wrong_calls(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls with too few and too many arguments, with an unknown keyword, and with a wrong value for each parameter."""
    for count in range(7):
        yield (Wrong(),) * count, {}
    yield (), {"unknown_keyword": 1}
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [each for each in parameters if each.default is each.empty and each.kind in positional]
    for each in parameters:
        if each.default is not each.empty:
            yield (Wrong(),) * len(needed), {each.name: Wrong()}


NAMES_AN_ARGUMENT = re.compile(
    r"\bmust be\b|\bmust consist of\b|missing a? ?\d* ?required|too many positional|positional arguments? but|"
    r"takes no arguments|has no argument|unexpected keyword|multiple values for|has no constructor"
)


def check(label: str, function: Callable[..., Any]) -> list[str]:
    unclear = []
    for arguments, keywords in wrong_calls(function):
        try:
            function(*arguments, **keywords)
        except (tilewright.Error, AttributeError, NotImplementedError):
            pass  # an invalid value, or an object that lacks a method
        except Exception as error:
            if not isinstance(error, TypeError) or not NAMES_AN_ARGUMENT.search(str(error)):
                unclear.append(f"{label}({len(arguments)}, {[*keywords]}): {type(error).__name__}: {error!s:.200}")
    return unclear


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_type_errors_name_an_argument(module: ModuleType) -> None:
    checked, unclear = 0, []
    for name, value in public(module):
        unclear += check(name, value)
        checked += 1
        if isinstance(value, type):
            for label, method in methods(value):
                unclear += check(label, method)
                checked += 1
    assert unclear == []
    assert checked > (0 if module is emulator else 5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: layout.size("x"), "size(): t must be an int or a tuple of ints, a Layout, a ComposedLayout"),
        (lambda: layout.Layout((8, 8), "x"), "Layout(): stride must be an int or a tuple of ints, got 'x'"),
        (lambda: layout.Layout(8).draw(colour=True), "Layout.draw() has no argument 'colour': it takes title, banks"),
        (lambda: tp.Kernel("x", thread=3), "Kernel() has no argument 'thread': did you mean 'threads'?"),
        (lambda: tp.Kernel("x").launch(3), "Kernel.launch(): name must be a str, got 3"),
        (lambda: tp.add(tp.Kernel("x"), "a", 4), "add(): a must be a Value or a Python number, got 'a'"),
        (lambda: tilewright.Operation(), "Operation(): missing a required argument: 'name'; it takes name, operands"),
        (lambda: tilewright.Operation("f", ["a"]), "Operation(): operands must be a list of OperandDeclaration"),
        (lambda: tilewright.BLASDesignMetadata((3, 4)), "BLASDesignMetadata(): tile_shape must be a tuple of 3 ints"),
        (lambda: tilewright.GemmArguments(), "GemmArguments(): missing a required argument: 'A'; it takes A, B, out"),
        (lambda: tilewright.GemmArguments(1, 2, 3, aplha=1), "GemmArguments() has no argument 'aplha': did you mean"),
    ],
)
def test_messages(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert raised.value.__cause__ is None and raised.value.__context__ is None or raised.value.__suppress_context__


def test_constructors_of_subclasses_too() -> None:
    class Own(tilewright.Kernel):
        def __init__(self, metadata: Any) -> None:
            super().__init__(metadata)

    with pytest.raises(TypeError, match=r"Own\(\): metadata must be a KernelMetadata, got 3"):
        Own(3)


def test_objects_that_functions_return() -> None:
    a = tilewright.ShapeOnly((8, 8), "f32")
    kernels = tilewright.find_kernels(tilewright.GemmArguments(a, a, a))
    with pytest.raises(TypeError, match=r"KernelList.__getitem__\(\): arg must be an int or a slice, got 'first'"):
        kernels["first"]  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"Kernel.supports\(\): args must be the arguments of an operation, such as"):
        kernels[0].supports(3)  # type: ignore[arg-type]


def test_signatures_can_be_inspected() -> None:
    assert str(inspect.signature(layout.composition)) == "(*args: 'Any', **keywords: 'Any') -> 'Any'"  # overloaded
    assert [*inspect.signature(layout.coshape).parameters] == ["layout"]
    assert [*inspect.signature(tilewright.Operation).parameters][:3] == ["name", "operands", "scalars"]
    assert [*inspect.signature(tp.Kernel).parameters] == ["symbol", "target", "threads", "cluster"]
    assert [*inspect.signature(layout.Layout(8).draw).parameters][:2] == ["title", "banks"]
