"""What Tilewright raises.

Each exception is an `Error` and the built-in exception that fits, so that `except ValueError` works as usual.
"""


class Error(Exception):
    """Base of what Tilewright raises."""


class InvalidArgument(Error, ValueError):
    """Something that can never work was passed: shapes, strides, names, files. The message has the number."""


class Unsupported(Error, NotImplementedError):
    """A valid request that nothing here can serve. The message says what was tried and why each refused."""


class CompileError(Error, RuntimeError):
    """A compiler rejected or died on a source. The message carries the log and where the source was dumped."""


class DriverError(Error, RuntimeError):
    """A call of the CUDA driver failed."""

    code: int
    """The driver's number for it, a CUresult."""

    def __init__(self, message: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class OutOfMemory(Error, MemoryError):
    """An allocation on a device did not fit. The message says how much was asked for and how much was free."""


class ToolchainNotFound(Error, RuntimeError):
    """A tool or library was not found. The message lists the places searched and the command that fixes it."""


class EmulationError(Error, RuntimeError):
    """An emulated kernel broke a rule of the machine: a race, a misaligned or out-of-bounds access, a deadlock."""


class InternalError(RuntimeError):
    """A bug of Tilewright. Not an `Error`: it is not meant to be caught."""
