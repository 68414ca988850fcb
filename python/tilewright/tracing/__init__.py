"""Python functions as epilogues: `trace` reads the source of a function and translates it to the epilogue language."""

from .callee import traced_as
from .epilogue import Output, Scalar, SourceTensor, TracedEpilogue, parameters, trace
from .errors import Place, TraceError

__all__ = [
    "Output",
    "Place",
    "Scalar",
    "SourceTensor",
    "TraceError",
    "TracedEpilogue",
    "parameters",
    "trace",
    "traced_as",
]
