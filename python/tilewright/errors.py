"""The exceptions that Tilewright raises.

Each is derived from `Error` and from the built-in exception that fits, so that `except ValueError` works as usual.
"""

from __future__ import annotations


class Error(Exception):
    """Base class of Tilewright's exceptions."""


class InvalidArgument(Error, ValueError):
    """An argument is invalid: a shape, a stride, a name, a file. The message has the number that is wrong."""


class RefusedDesign(InvalidArgument):
    """No family can make a kernel with the design that make_kernel() was given. The message has the reasons."""

    codes: dict[str, str]
    """For each family, the category of its reason, as in RefusedKernel.code: "resources", "design", "types", ..."""

    reasons: dict[str, str]
    """For each family, its reason."""

    def __init__(
        self, message: str = "", codes: dict[str, str] | None = None, reasons: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.codes = codes or {}
        self.reasons = reasons or {}


class FileNotFound(Error, FileNotFoundError):
    """A file, or the folder that it is to be written to, does not exist. It has `errno` and `filename`."""


class Unsupported(Error, NotImplementedError):
    """A valid request that no kernel supports. The message lists what was tried and why each was refused."""


class CompileError(Error, RuntimeError):
    """A compiler rejected a source or crashed. The message has the log and the path of the dumped source."""


class DriverError(Error, RuntimeError):
    """A call to the CUDA driver failed."""

    code: int
    """The driver's error code, a CUresult."""

    def __init__(self, message: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class OutOfMemory(Error, MemoryError):
    """A device allocation failed. The message says how many bytes were requested and how many were free."""


class ToolchainNotFound(Error, RuntimeError):
    """A tool or library was not found. The message lists the places searched and the command that fixes it."""


class EmulationError(Error, RuntimeError):
    """The emulator found an error in a kernel: a race, a misaligned or out-of-bounds access, a deadlock."""


class InternalError(RuntimeError):
    """A bug in Tilewright. It is not an `Error`, because programs should not catch it."""
