"""cutlass_api.fusion.activation: activations for the functions of epilogues.

Each computes arrays of NumPy and PyTorch, and is a function of the epilogue where it is traced.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy

from tilewright.errors import InvalidArgument
from tilewright.pycutlass import activation
from tilewright.tracing import traced_as


def _of(x: Any, name: str, of_numpy: Callable[..., Any], *parameters: float) -> Any:
    """The activation of an array: PyTorch's function of that name, or that of NumPy."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return getattr(torch.nn.functional, name)(x, *parameters)
    if not isinstance(x, (numpy.ndarray, numpy.generic, float, int)):
        raise InvalidArgument(f"{name} takes an array of NumPy or PyTorch, got {type(x).__name__}")
    return of_numpy(x, *parameters)


def identity(x: Any) -> Any:
    """x"""
    return x


@traced_as(activation.relu.numpy)
def relu(x: Any) -> Any:
    """max(x, 0)"""
    return _of(x, "relu", activation.relu.numpy)


@traced_as(activation.leaky_relu.numpy)
def leaky_relu(x: Any, leaky_alpha: float) -> Any:
    """x where x > 0, else leaky_alpha * x."""
    return _of(x, "leaky_relu", activation.leaky_relu.numpy, leaky_alpha)


@traced_as(activation.tanh.numpy)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x."""
    return _of(x, "tanh", numpy.tanh)


@traced_as(activation.sigmoid.numpy)
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return _of(x, "sigmoid", activation.sigmoid.numpy)


@traced_as(activation.silu.numpy)
def silu(x: Any) -> Any:
    """x * sigmoid(x)"""
    return _of(x, "silu", activation.silu.numpy)


@traced_as(activation.hardswish.numpy)
def hardswish(x: Any) -> Any:
    """x * min(max(x + 3, 0), 6) / 6"""
    return _of(x, "hardswish", activation.hardswish.numpy)


def _gelu_traced(x: Any) -> Any:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


@traced_as(_gelu_traced)
def gelu(x: Any) -> Any:
    """x * (1 + erf(x / sqrt(2))) / 2"""
    return _of(x, "gelu", activation.gelu.numpy)


__all__ = ["gelu", "hardswish", "identity", "leaky_relu", "relu", "sigmoid", "silu", "tanh"]
