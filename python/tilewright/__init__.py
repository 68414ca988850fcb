"""Tilewright: from the description of a GEMM to a running GPU kernel, at run time.

`import tilewright` is cheap: what needs the extension, or more, is loaded when it is first named.
"""

from tilewright.errors import (
    CompileError,
    DriverError,
    EmulationError,
    Error,
    InternalError,
    InvalidArgument,
    OutOfMemory,
    ToolchainNotFound,
    Unsupported,
)

__version__: str

__all__ = [
    "CompileError",
    "DriverError",
    "EmulationError",
    "Error",
    "InternalError",
    "InvalidArgument",
    "OutOfMemory",
    "ToolchainNotFound",
    "Unsupported",
    "__version__",
]

# Where each name lives that is loaded when it is first used.
_LAZY = {"__version__": "tilewright._tilewright"}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright' has no attribute '{name}'")
    import importlib

    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
