"""Python functions as epilogues: `trace` reads the source of a function and translates it to the epilogue language."""

from .callee import traced_as
from .epilogue import InputTensor, Names, Output, Scalar, TracedEpilogue, names_of, parameters, trace
from .errors import SourceLocation, TraceError

__all__ = [
    "InputTensor",
    "Names",
    "Output",
    "Scalar",
    "SourceLocation",
    "TraceError",
    "TracedEpilogue",
    "names_of",
    "parameters",
    "trace",
    "traced_as",
]
