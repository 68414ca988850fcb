"""Python functions as epilogues: `trace` reads the source of a function and translates it to the epilogue language."""

from .callee import traced_as
from .epilogue import InputTensor, Output, Scalar, TracedEpilogue, parameters, trace
from .errors import SourceLocation, TraceError

__all__ = [
    "InputTensor",
    "Output",
    "Scalar",
    "SourceLocation",
    "TraceError",
    "TracedEpilogue",
    "parameters",
    "trace",
    "traced_as",
]
