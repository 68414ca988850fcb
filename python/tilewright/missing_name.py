"""The AttributeErrors of modules, which suggest the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NoReturn


def suggestion(name: str, known: Iterable[str]) -> str:
    """ "; did you mean 'matmul'?" if a known name is spelled like this one, else ""."""
    import difflib

    close = difflib.get_close_matches(name, [each for each in known if not each.startswith("_")], 1, 0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def refuse_unknown(
    module: str, names: Iterable[str], foreign: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], NoReturn]:
    """The function __getattr__ of a module with these public names. `foreign` has names that others give to some of
    them, such as those of CUDA C++."""

    def refuse(name: str) -> NoReturn:
        hint = "" if name.startswith("_") else suggestion(name, names)
        if name in foreign:
            hint = f"; did you mean '{foreign[name]}'?"
        raise AttributeError(f"module '{module}' has no attribute '{name}'{hint}", name=name)

    return refuse
