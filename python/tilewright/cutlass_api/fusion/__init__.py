"""cutlass_api.fusion: epilogues as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilewright.tracing
from tilewright.errors import InvalidArgument
from tilewright.tracing import TracedEpilogue

from . import activation


def trace(fn: Callable[..., object] | str, example_tensors: Mapping[str, Any], **constants: Any) -> TracedEpilogue:
    """The epilogue that a function, or a text, computes.

    example_tensors   an array or a number for each parameter; the array of `accum` has the shape of A @ B. Those of
                      outputs are not needed
    constants         the values of parameters that become part of the code
    """
    if "accum" not in example_tensors:
        raise InvalidArgument("example_tensors must have an array for accum, whose shape is that of A @ B")
    read = tilewright.tracing.parameters(fn)
    shapes: dict[str, tuple[int, ...]] = {}
    scalars: dict[str, float] = {}
    for name, value in example_tensors.items():
        if name == "accum" or name not in read:
            continue
        if hasattr(value, "shape"):
            shapes[name] = tuple(value.shape)
        else:
            scalars[name] = value
    problem = tuple(example_tensors["accum"].shape)
    return tilewright.tracing.trace(fn, problem=problem, shapes=shapes, scalars=scalars, constants=constants)


def trace_in_out(fn: Callable[..., object] | str) -> tuple[list[str], list[str]]:
    """The names of the parameters of a function, or of a text, and those of what it returns.

    Every parameter but accum is taken for a number, so that the function is known without its operands.
    """
    read = tilewright.tracing.parameters(fn)
    numbers = {name: 1.0 for name in read if name != "accum"}
    traced = tilewright.tracing.trace(fn, problem=(1, 1), scalars=numbers)
    return read, [each.name for each in traced.outputs]


__all__ = ["activation", "trace", "trace_in_out"]
