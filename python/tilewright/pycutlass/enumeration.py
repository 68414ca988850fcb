"""The base class of PyCUTLASS's enumerations, which suggest the nearest member for a misspelt one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from tilewright.missing_name import suggestion

if TYPE_CHECKING:  # type checkers find misspelt members themselves
    from enum import Enum as Enumeration
else:

    class _Suggesting(enum.EnumMeta):
        def __getattr__(cls, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            hint = suggestion(name, cls.__members__) or f": it has {', '.join(cls.__members__)}"
            raise AttributeError(f"{cls.__name__} has no member '{name}'{hint}", name=name, obj=cls)

    class Enumeration(enum.Enum, metaclass=_Suggesting):
        """An enumeration."""


__all__ = ["Enumeration"]
