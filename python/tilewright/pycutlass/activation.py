"""Activation functions of epilogues: classes that LinearCombinationGeneric takes.

In an EpilogueVisitTree they are written as `relu.numpy(x)`, which also computes them on NumPy arrays.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy

from tilewright.tracing import traced_as


def _erf_traced(x: float) -> float:
    return math.erf(x)


@traced_as(_erf_traced)
def _erf(x: Any) -> Any:
    """The error function, which NumPy lacks."""
    return numpy.vectorize(math.erf, otypes=[numpy.float64])(x).astype(numpy.asarray(x).dtype)


class ActivationFunctor:
    """Base class of the activation functions.

    `relu` and `relu(cutlass.float32)` are the same: the element type is accepted as in PyCUTLASS and has no effect.
    """

    function: ClassVar[str]
    """The name of the function in the epilogue language."""

    parameters: ClassVar[dict[str, float]] = {}
    """The names and default values of its further parameters."""

    def __init__(self, element_compute: Any = None) -> None:
        self.element_compute = element_compute


class identity(ActivationFunctor):
    function = "identity"

    @staticmethod
    def numpy(x: Any) -> Any:
        return x


class relu(ActivationFunctor):
    function = "relu"

    @staticmethod
    def numpy(x: Any) -> Any:
        return numpy.maximum(x, 0)


class leaky_relu(ActivationFunctor):
    function = "leaky_relu"
    parameters: ClassVar[dict[str, float]] = {"leaky_alpha": 0.2}

    @staticmethod
    def numpy(x: Any, leaky_alpha: float) -> Any:
        return numpy.maximum(x, 0) + numpy.minimum(x, 0) * leaky_alpha


class tanh(ActivationFunctor):
    function = "tanh"

    @staticmethod
    def numpy(x: Any) -> Any:
        return numpy.tanh(x)


class sigmoid(ActivationFunctor):
    function = "sigmoid"

    @staticmethod
    def numpy(x: Any) -> Any:
        return 1 / (1 + numpy.exp(-x))


class silu(ActivationFunctor):
    function = "silu"

    @staticmethod
    def numpy(x: Any) -> Any:
        return x * sigmoid.numpy(x)


class hardswish(ActivationFunctor):
    function = "hardswish"

    @staticmethod
    def numpy(x: Any) -> Any:
        return x * numpy.minimum(numpy.maximum(x + 3, 0), 6) / 6


class gelu(ActivationFunctor):
    function = "gelu"

    @staticmethod
    def numpy(x: Any) -> Any:
        return 0.5 * x * (1 + _erf(x / math.sqrt(2)))
