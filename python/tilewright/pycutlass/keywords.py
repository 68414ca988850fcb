"""TypeErrors of constructors that suggest the nearest keyword for a misspelt one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.missing_name import suggestion


def suggest_keywords(namespace: Mapping[str, Any], names: Iterable[str], package: str) -> None:
    """Changes the constructors of the classes of these names that are defined in the package."""
    for name in names:
        kind = namespace.get(name)
        if isinstance(kind, type) and kind.__module__.startswith(package):
            for each in kind.__mro__:
                if each.__module__.startswith(package) and inspect.isfunction(vars(each).get("__init__")):
                    _suggest_keywords(each)


def _suggest_keywords(kind: type) -> None:
    construct = vars(kind)["__init__"]
    parameters = inspect.signature(construct).parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    if takes_any or hasattr(construct, "__wrapped__"):
        return
    known = {name for name, each in parameters.items() if each.kind is not inspect.Parameter.VAR_POSITIONAL}

    @functools.wraps(construct)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> None:
        if not keywords.keys() <= known:
            wrong = next(name for name in keywords if name not in known)
            names = [name for name in parameters if name in known and name != "self"]
            hint = suggestion(wrong, names) or f": it takes {', '.join(names)}"
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument '{wrong}'{hint}")
        construct(self, *arguments, **keywords)

    setattr(kind, "__init__", checked)  # noqa: B010


__all__ = ["suggest_keywords"]
