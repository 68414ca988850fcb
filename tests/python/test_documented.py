"""Every public name of the package has a docstring of its own, and a signature for inspect and help()."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

MODULES = [
    "tilewright",
    *(
        f"tilewright.{name}"
        for name in (
            *("arch", "cutlass_api", "emulator", "errors", "jax", "layout", "program", "pycutlass", "pycutlass.utils"),
            *("pycute", "shims", "torch", "tracing"),
        )
    ),
]


def imported(name: str) -> Any:
    """The module. Skips the test if its framework is not installed."""
    if name in ("tilewright.jax", "tilewright.torch"):
        pytest.importorskip(name.rpartition(".")[2])
    return importlib.import_module(name)


def documentation(value: Any) -> str:
    """The docstring, without the signature that nanobind puts in front of it."""
    value = getattr(value, "__func__", value)
    value = getattr(getattr(value, "__wrapped__", None), "function", value)  # tilewright/checked.py
    overloads = getattr(value, "__nb_signature__", None)
    if overloads is not None:
        return "".join(text or "" for _, text, _ in overloads)
    return (value.__doc__ if isinstance(value, type) else inspect.getdoc(value)) or ""


def is_of_the_package(value: Any) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).partition(".")[0] == "tilewright"


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods that the class itself defines."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and (callable(value) or isinstance(value, (staticmethod, classmethod))):
            yield name, value


def has_constructor(kind: type) -> bool:
    try:
        kind()
    except Exception as error:
        return "has no constructor" not in str(error)
    return True


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_documented(module: str) -> None:
    loaded = imported(module)
    missing = [] if loaded.__doc__ else [module]
    names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
    for name in names:
        value = getattr(loaded, name)
        if not is_of_the_package(value):
            continue
        if not documentation(value).strip():
            missing.append(name)
        if isinstance(value, type):
            missing += [f"{name}.{each}" for each, method in public_members(value) if not documentation(method).strip()]
    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_every_name_has_a_signature_or_says_where_its_objects_come_from(module: str) -> None:
    loaded = imported(module)
    for name in getattr(loaded, "__all__", None) or []:
        value = getattr(loaded, name)
        if not is_of_the_package(value) or (isinstance(value, type) and issubclass(value, BaseException)):
            continue
        if isinstance(value, type) and not has_constructor(value):
            origin = value.__doc__.rstrip(". ").rpartition(". ")[2]
            assert re.search(r"\b(returns?|makes?|gives|reserves|has|are|is)\b", origin), (name, origin)
            with pytest.raises(TypeError, match=re.escape(f"{name} has no constructor: {origin}")):
                value()
            continue
        assert isinstance(inspect.signature(value), inspect.Signature), name


def test_objects_that_can_be_called_do_not_have_the_signature_of_their_class() -> None:
    from tilewright.layout import Layout

    assert not hasattr(Layout(8), "__signature__") and str(inspect.signature(Layout)).startswith("(*args")
