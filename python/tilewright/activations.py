"""Objects of other libraries that stand for an epilogue: torch.relu, np.tanh, F.gelu, nn.ReLU(), jax.nn.relu, and the
activations of tilewright.pycutlass."""

from __future__ import annotations

import sys
import types
from typing import Any

from tilewright._tilewright import Epilogue
from tilewright.errors import InvalidArgument
from tilewright.libraries import ROOTS


def as_epilogue(given: Any) -> Any:
    """The epilogue that `given` stands for: a text or a function that can be traced. Other objects stay as they are."""
    if type(given) is types.FunctionType and (given.__module__ or "").partition(".")[0] not in ROOTS:
        return given
    if given is None or isinstance(given, (str, Epilogue)):
        return given
    if (functor := _pycutlass_functor(given)) is not None:
        parameters = "".join(f", {value!r}" for value in functor.parameters.values())
        return f"D = {functor.function}(acc{parameters})" if functor.function != "identity" else "D = acc"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        module: Any = given
        return _module_text(module) or module.forward
    if torch is not None and isinstance(given, type) and issubclass(given, torch.nn.Module):
        raise InvalidArgument(f"epilogue is the class {given.__name__}: pass an object of it, {given.__name__}()")
    from tilewright.tracing import library

    name = library.resolve_object(given)
    if name is None:
        return given
    if library.ALIASES.get(name.last, name.last) not in library.TABLE:
        instead = library.hint(name.last)
        raise InvalidArgument(f"{name} is no function of epilogues{'' if instead is None else f'; instead: {instead}'}")
    return f"def epilogue(accum): return {name}(accum)"


_MODULES = {
    "CELU": ("celu", "alpha"),
    "ELU": ("elu", "alpha"),
    "Hardsigmoid": ("hardsigmoid",),
    "Hardswish": ("hardswish",),
    "Hardtanh": ("hardtanh", "min_val", "max_val"),
    "LeakyReLU": ("leaky_relu", "negative_slope"),
    "LogSigmoid": ("logsigmoid",),
    "Mish": ("mish",),
    "ReLU": ("relu",),
    "ReLU6": ("relu6",),
    "SELU": ("selu",),
    "SiLU": ("silu",),
    "Softplus": ("softplus", "beta", "threshold"),
    "Threshold": ("threshold", "threshold", "value"),
}  # modules of torch.nn: their function, and the attributes that are its parameters


def _module_text(module: Any) -> str | None:
    """The function that an activation of torch.nn computes; None for other modules, whose forward() is traced."""
    kind = type(module)
    found = _MODULES.get(kind.__name__) if kind.__module__ == "torch.nn.modules.activation" else None
    if found is None:
        return None
    parameters = "".join(f", {float(getattr(module, name))!r}" for name in found[1:])
    return f"def epilogue(accum): return torch.nn.functional.{found[0]}(accum{parameters})"


def _pycutlass_functor(given: Any) -> Any:
    """The class of an activation of tilewright.pycutlass that is given as a class or an instance, or None."""
    module = sys.modules.get("tilewright.pycutlass.activation")
    if module is None:
        return None
    functor = given if isinstance(given, type) else type(given)
    return functor if issubclass(functor, module.ActivationFunctor) else None
