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
    """x"""

    function = "identity"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return x


class relu(ActivationFunctor):
    """max(x, 0)"""

    function = "relu"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return numpy.maximum(x, 0)


class leaky_relu(ActivationFunctor):
    """x where x > 0, else leaky_alpha * x. The default of leaky_alpha is 0.2."""

    function = "leaky_relu"
    parameters: ClassVar[dict[str, float]] = {"leaky_alpha": 0.2}

    @staticmethod
    def numpy(x: Any, leaky_alpha: float) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return numpy.maximum(x, 0) + numpy.minimum(x, 0) * leaky_alpha


class tanh(ActivationFunctor):
    """The hyperbolic tangent of x."""

    function = "tanh"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return numpy.tanh(x)


class sigmoid(ActivationFunctor):
    """1 / (1 + exp(-x))"""

    function = "sigmoid"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return 1 / (1 + numpy.exp(-x))


class silu(ActivationFunctor):
    """x * sigmoid(x)"""

    function = "silu"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return x * sigmoid.numpy(x)


class hardswish(ActivationFunctor):
    """x * min(max(x + 3, 0), 6) / 6"""

    function = "hardswish"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return x * numpy.minimum(numpy.maximum(x + 3, 0), 6) / 6


class gelu(ActivationFunctor):
    """x * (1 + erf(x / sqrt(2))) / 2"""

    function = "gelu"

    @staticmethod
    def numpy(x: Any) -> Any:
        """The same of NumPy arrays, and in an EpilogueVisitTree."""
        return 0.5 * x * (1 + _erf(x / math.sqrt(2)))
