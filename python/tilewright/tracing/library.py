"""The meaning of functions of Python, math, NumPy, PyTorch, JAX and SciPy in an epilogue.

No library is imported: names are resolved by their spelling, and objects by searching modules that are already loaded.
"""

from __future__ import annotations

import builtins
import difflib
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.libraries import MODULES, ROOTS

from .errors import Untraceable
from .graph import ARITHMETIC, FUNCTIONS, GATED, PAIRS, Graph, Operand, Reduced, Reduction, Traced, describe

# The modules whose functions are known, by the names under which they are usually imported.
CONVENTIONAL = {
    "math": "math",
    "np": "numpy",
    "numpy": "numpy",
    "torch": "torch",
    "F": "torch.nn.functional",
    "jax": "jax",
    "jnp": "jax.numpy",
    "scipy": "scipy",
}
DTYPES = {
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float": "f32",
    "single": "f32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
    "int": "s32",
}
OTHER_DTYPES = (
    "float64",
    "double",
    "int16",
    "short",
    "int64",
    "long",
    "bool",
    "uint16",
    "uint32",
    "uint64",
    "complex64",
)
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan, "newaxis": None}


@dataclass(frozen=True)
class Name:
    """A dotted name in one of the modules ROOTS, or a plain name of the epilogue language."""

    path: str

    @property
    def module(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Method:
    """A method of a traced value that is not called yet."""

    value: Traced
    name: str

    def __str__(self) -> str:
        return f"x.{self.name}"


Function = Callable[..., object]


def _elementwise(name: str) -> Function:
    if FUNCTIONS[name] == 1:
        return lambda graph, x: graph.apply(name, x)
    if FUNCTIONS[name] == 2:
        return lambda graph, x, y: graph.apply(name, x, y)
    return lambda graph, x, y, z: graph.apply(name, x, y, z)


def _operator(name: str) -> Function:
    return lambda graph, x, y: graph.arithmetic(name, x, y)


def _comparison(name: str) -> Function:
    return lambda graph, x, y: graph.compare(name, x, y)


def _gated(name: str) -> Function:
    return lambda graph, x: graph.half(x, name)


def _integral(name: str) -> Function:
    def function(graph: Graph, x: Operand) -> Traced:
        return replace(graph.apply(name, x), is_integral=True)

    return function


def _reduction(name: Reduction) -> Function:
    return lambda graph, x, axis=None, keepdims=False: graph.reduce(name, x, axis, keepdims)


def _maximum_or_minimum(name: Reduction) -> Function:
    """max(x, y) of two values, or max(x, axis), a reduction, of one."""

    def function(graph: Graph, x: Operand, y: object = None, axis: object = None, keepdims: object = False) -> object:
        if isinstance(y, (Traced, float, Reduced)):
            return graph.apply(name, x, y)
        if y is not None and axis is not None:
            raise Untraceable(f"{name} takes two values or an axis, got both or two axes")
        return graph.reduce(name, x, axis if y is None else y, keepdims)

    return function


def _absmax(graph: Graph, x: Operand, axis: object = None, keepdims: object = False) -> Reduced:
    return graph.reduce("max", graph.apply("abs", x), axis, keepdims)


def _sum_of_squares(graph: Graph, x: Operand, axis: object = None, keepdims: object = False) -> Reduced:
    return graph.reduce("sum", graph.apply("square", x), axis, keepdims)


def _clamp(graph: Graph, x: Operand, min: object = None, max: object = None) -> Traced:
    if min is not None and max is not None:
        return graph.apply("clamp", x, min, max)
    if min is None and max is None:
        raise Untraceable("clamp needs min or max")
    return graph.apply("max", x, min) if max is None else graph.apply("min", x, max)


def _gelu(graph: Graph, x: Operand, approximate: object = "none") -> Traced:
    if approximate not in ("none", "tanh", True, False):
        raise Untraceable(f"approximate must be 'none' or 'tanh', got {describe(approximate)}")
    return graph.apply("gelu_tanh" if approximate in ("tanh", True) else "gelu", x)


def _gelu_of_jax(graph: Graph, x: Operand, approximate: object = True) -> Traced:
    return _gelu(graph, x, approximate)


def _leaky_relu(graph: Graph, x: Operand, negative_slope: Operand = 0.01) -> Traced:
    return graph.apply("leaky_relu", x, negative_slope)


def _leaky_relu_gradient(graph: Graph, x: Operand, negative_slope: Operand = 0.01) -> Traced:
    return graph.apply("leaky_relu_gradient", x, negative_slope)


def _softplus(graph: Graph, x: Operand, beta: Operand = 1, threshold: Operand = 20) -> Traced:
    is_plain = not isinstance(beta, Traced) and beta == 1
    scaled = graph.operand(x) if is_plain else graph.apply("*", x, beta)
    smooth = graph.apply("softplus", scaled)
    smooth = smooth if is_plain else graph.apply("/", smooth, beta)
    if isinstance(threshold, (int, float)) and threshold >= 20:  # there it is x, to the last bit of f32
        return smooth
    return graph.where(graph.compare(">", scaled, threshold), x, smooth)


def _log_sigmoid(graph: Graph, x: Operand) -> Traced:
    return graph.apply("negate", graph.apply("softplus", graph.apply("negate", x)))


def _elu(graph: Graph, x: Operand, alpha: Operand = 1.0) -> Traced:
    below = graph.apply("-", graph.apply("exp", graph.apply("min", x, 0)), 1)
    return graph.where(graph.compare(">", x, 0), x, graph.apply("*", alpha, below))


def _celu(graph: Graph, x: Operand, alpha: Operand = 1.0) -> Traced:
    below = graph.apply("-", graph.apply("exp", graph.apply("/", graph.apply("min", x, 0), alpha)), 1)
    return graph.where(graph.compare(">", x, 0), x, graph.apply("*", alpha, below))


def _selu(graph: Graph, x: Operand) -> Traced:
    """With the constants of its paper, for which activations keep mean 0 and variance 1."""
    return graph.apply("*", 1.0507009873554804934, _elu(graph, x, 1.6732632423543772848))


def _threshold(graph: Graph, x: Operand, threshold: Operand, value: Operand) -> Traced:
    return graph.where(graph.compare(">", x, threshold), x, value)


def _masked_fill(graph: Graph, x: Operand, mask: Operand, value: Operand) -> Traced:
    return graph.where(mask, value, x)


def _hardtanh(graph: Graph, x: Operand, min_val: Operand = -1.0, max_val: Operand = 1.0) -> Traced:
    return graph.apply("clamp", x, min_val, max_val)


def _relu6(graph: Graph, x: Operand) -> Traced:
    return graph.apply("clamp", x, 0, 6)


def _hardsigmoid(graph: Graph, x: Operand) -> Traced:
    return graph.apply("/", graph.apply("clamp", graph.apply("+", x, 3), 0, 6), 6)


def _softsign(graph: Graph, x: Operand) -> Traced:
    return graph.apply("/", x, graph.apply("+", 1, graph.apply("abs", x)))


def _sign(graph: Graph, x: Operand) -> Traced:
    return graph.apply("-", graph.compare(">", x, 0), graph.compare("<", x, 0))


def _is_nan(graph: Graph, x: Operand) -> Traced:
    return graph.compare("!=", x, x)


def _where(graph: Graph, condition: Operand, y: Operand, z: Operand) -> Traced:
    return graph.where(condition, y, z)


def _negate(graph: Graph, x: Operand) -> Traced:
    return graph.negate(x)


def _square(graph: Graph, x: Operand) -> Traced:
    return graph.power(x, 2)


def _power(graph: Graph, x: Operand, y: Operand) -> Traced:
    return graph.power(x, y)


def _convert(graph: Graph, x: Operand, dtype: object) -> Traced:
    return graph.convert(x, type_of(dtype))


def _same(graph: Graph, x: Operand) -> Traced:
    return graph.operand(x)


def _copy(graph: Graph, x: Operand) -> Traced:
    return replace(graph.operand(x), is_view=False)


def _insert_axis(graph: Graph, x: Operand, axis: object) -> Traced:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise Untraceable(f"an axis must be an integer constant, got {describe(axis)}")
    return graph.insert_axis(x, axis)


def _arange(graph: Graph, stop: object) -> Traced:
    *_, m, n = graph.problem
    if isinstance(stop, bool) or not isinstance(stop, int) or stop not in (m, n):
        raise Untraceable(
            f"arange takes the number of columns, {n}, or of rows, {m}, got {describe(stop)}",
            "x.shape[-1] or x.shape[-2]",
        )
    return graph.column_index(stop)


def _addcmul(graph: Graph, x: Operand, y: Operand, z: Operand, *, value: Operand = 1) -> Traced:
    product = graph.apply("*", y, z)
    return graph.apply(
        "+", x, product if not isinstance(value, Traced) and value == 1 else graph.apply("*", value, product)
    )


TABLE: dict[str, Function] = {
    **{name: _elementwise(name) for name in FUNCTIONS},
    **{name: _gated(name) for name in (*GATED, "even", "odd")},
    **dict(zip(("add", "subtract", "multiply", "divide"), map(_operator, ARITHMETIC), strict=True)),
    **{
        name: _comparison(operator)
        for operator, names in {
            "<": "less lt",
            "<=": "less_equal le",
            ">": "greater gt",
            ">=": "greater_equal ge",
            "==": "equal eq",
            "!=": "not_equal ne",
        }.items()
        for name in names.split()
    },
    "floor": _integral("floor"),
    "round": _integral("round"),
    "sum": _reduction("sum"),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "max": _maximum_or_minimum("max"),
    "min": _maximum_or_minimum("min"),
    "maximum": lambda graph, x, y: graph.apply("max", x, y),
    "minimum": lambda graph, x, y: graph.apply("min", x, y),
    "absmax": _absmax,
    "sum_of_squares": _sum_of_squares,
    "clamp": _clamp,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "leaky_relu_gradient": _leaky_relu_gradient,
    "softplus": _softplus,
    "log_sigmoid": _log_sigmoid,
    "elu": _elu,
    "celu": _celu,
    "selu": _selu,
    "threshold": _threshold,
    "masked_fill": _masked_fill,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    "hardsigmoid": _hardsigmoid,
    "softsign": _softsign,
    "sign": _sign,
    "isnan": _is_nan,
    "where": _where,
    "neg": _negate,
    "square": _square,
    "pow": _power,
    "convert": _convert,
    "identity": _same,
    "copy": _copy,
    "unsqueeze": _insert_axis,
    "arange": _arange,
    "addcmul": _addcmul,
    "multiply_add": _elementwise("fma"),
    "logical_and": lambda graph, x, y: graph.logical("&", x, y),
    "logical_or": lambda graph, x, y: graph.logical("|", x, y),
    "logical_xor": lambda graph, x, y: graph.logical("^", x, y),
    "logical_not": lambda graph, x: graph.invert(x),
}
ALIASES = {
    "absolute": "abs",
    "fabs": "abs",
    "negative": "neg",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "true_divide": "divide",
    "clip": "clamp",
    "power": "pow",
    "rint": "round",
    "expit": "sigmoid",
    "swish": "silu",
    "hard_swish": "hardswish",
    "hard_sigmoid": "hardsigmoid",
    "hard_tanh": "hardtanh",
    "hard_silu": "hardswish",
    "logsigmoid": "log_sigmoid",
    "soft_sign": "softsign",
    "astype": "convert",
    "expand_dims": "unsqueeze",
    "clone": "copy",
    "detach": "identity",
    "contiguous": "identity",
    "positive": "copy",
}
METHODS_OF_TYPES = {"half": "f16", "float": "f32", "bfloat16": "bf16"}
METHODS_ONLY = ("astype", "clone", "detach", "contiguous", "copy")
KEYWORDS = {
    "input": "x",
    "a": "x",
    "self": "x",
    "x1": "x",
    "x2": "y",
    "other": "y",
    "exponent": "y",
    "dim": "axis",
    "keepdim": "keepdims",
    "a_min": "min",
    "a_max": "max",
    "type": "dtype",
    "min_value": "min",
    "max_value": "max",
}
HINTS = {
    "mean": "return the sum, and divide afterwards",
    "softmax": "return the sums, and divide afterwards: a reduction is not complete before all of D is computed",
    "norm": "return (x * x).sum(), and take the root afterwards",
    "var": "return x.sum() and (x * x).sum()",
    "std": "return x.sum() and (x * x).sum()",
    "matmul": "an epilogue computes each element separately: matrix products are not possible",
    "chunk": PAIRS,
    "split": PAIRS,
    "fmax": "maximum, which is NaN if either operand is",
    "fmin": "minimum, which is NaN if either operand is",
    "expm1": "exp(x) - 1",
    "log2": "log(x) / math.log(2)",
    "log10": "log(x) / math.log(10)",
    "exp2": "exp(x * math.log(2))",
    "ceil": "-floor(-x)",
    "trunc": "where(x < 0, -floor(-x), floor(x))",
    "cosh": "(exp(x) + exp(-x)) / 2",
    "sinh": "(exp(x) - exp(-x)) / 2",
    "transpose": "x[:, None], which makes a vector a column",
    "T": "x[:, None], which makes a vector a column",
    "reshape": "x[:, None], which makes a vector a column",
    "view": "x[:, None], which makes a vector a column",
    "dropout": "pass the mask as a tensor",
}


def resolve_plain(name: str) -> Name | None:
    """Resolves a name that the function does not define: a function of the language, or a module by its usual name."""
    if name in CONVENTIONAL:
        return Name(CONVENTIONAL[name])
    is_known = name in TABLE or name in ("range", "len", "float", "int", "bool")
    return Name(name) if is_known else None


def resolve_object(value: object) -> Name | None:
    """The Name of a module, function or type of a known library, or None for other objects."""
    if isinstance(value, types.ModuleType):
        path = vars(value).get("__name__")
        return Name(path) if isinstance(path, str) and path.split(".")[0] in ROOTS else None
    if isinstance(value, (types.BuiltinFunctionType, type)) and value.__module__ in ("builtins", "math"):
        name = value.__name__
        if value.__module__ == "math":
            return Name(f"math.{name}")
        return Name(name) if getattr(builtins, name, None) is value else None
    for path in MODULES:
        module = vars(sys.modules[path]) if isinstance(sys.modules.get(path), types.ModuleType) else {}
        for name in (*TABLE, *ALIASES, *DTYPES, *OTHER_DTYPES, *HINTS):
            if module.get(name, None) is value:
                return Name(f"{path}.{name}")
    return None


def attribute(name: Name, attribute_name: str) -> object:
    """An attribute of a Name: a constant of a library, or the Name of the attribute."""
    if name.path in MODULES and attribute_name in CONSTANTS:
        return CONSTANTS[attribute_name]
    return Name(f"{name.path}.{attribute_name}")


def type_of(value: object) -> str:
    """The epilogue language's name of a dtype."""
    spelled = value.last if isinstance(value, Name) else value if isinstance(value, str) else None
    if spelled is None:
        raise Untraceable(f"expected a dtype, got {describe(value)}")
    if isinstance(value, Name) and value.path in ("float", "int"):  # Python's types have 64 bits
        spelled = f"{spelled}64"
    if spelled not in DTYPES:
        raise Untraceable(f"epilogues have no type '{spelled[:40]}'", "one of " + ", ".join(sorted(DTYPES)))
    return DTYPES[spelled]


def call(graph: Graph, name: Name, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Calls a function of a library or of the language. Raises Untraceable."""
    if name.module and name.module not in MODULES:
        raise _unknown(name.path, name.last)
    last = ALIASES.get(name.last, name.last)
    if name.last in METHODS_ONLY or last not in TABLE:
        raise _unknown(name.path, name.last)
    if last == "glu" and name.module:
        raise Untraceable(f"{name} splits the columns into a left and a right half", PAIRS)
    number = _on_numbers(last, arguments) if not keywords else None
    if number is not None:
        return number
    if not name.module and last in ("sum", "max", "min") and not {"dim", "axis"} & set(keywords):
        return _python_builtin(graph, last, arguments, keywords)
    function = _gelu_of_jax if last == "gelu" and name.path.startswith("jax") else TABLE[last]
    return _invoke(graph, name.path, function, arguments, keywords)


def call_method(graph: Graph, method: Method, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
    """Calls a method of a traced value. Raises Untraceable."""
    name = method.name
    if name in METHODS_OF_TYPES and not arguments and not keywords:
        return graph.convert(method.value, METHODS_OF_TYPES[name])
    if name in ("to", "type"):
        name = "astype"
    base = name[:-1]
    if name.endswith("_") and ALIASES.get(base, base) in TABLE:
        raise Untraceable(f"{method} changes its operand in place, which cannot be traced", f"x = x.{base}(...)")
    last = ALIASES.get(name, name)
    if last not in TABLE or last in ("arange", "where", "convert", "even", "odd") and name != "astype":
        raise _unknown(str(method), name)
    return _invoke(graph, str(method), TABLE[last], (method.value, *arguments), keywords)


def _invoke(
    graph: Graph, path: str, function: Function, arguments: Sequence[object], keywords: Mapping[str, object]
) -> object:
    parameters = [name for name in inspect.signature(function).parameters if name != "graph"]
    if "inplace" in keywords and "inplace" not in parameters:  # of torch.nn.functional
        if keywords["inplace"]:
            raise Untraceable(f"{path} changes its operand in place, which cannot be traced", "inplace=False")
        keywords = {name: value for name, value in keywords.items() if name != "inplace"}
    renamed = {name if name in parameters else KEYWORDS.get(name, name): value for name, value in keywords.items()}
    takes = f"{path} takes ({', '.join(parameters)})"
    for name in keywords:
        if (name if name in parameters else KEYWORDS.get(name, name)) not in parameters:
            raise Untraceable(f"{takes} in an epilogue, got '{name}'")
    if len(renamed) < len(keywords):
        raise Untraceable(f"{takes}, got one argument twice")
    try:
        bound = inspect.signature(function).bind(graph, *arguments, **renamed)
    except TypeError as error:
        raise Untraceable(f"{takes}: {error}") from error
    return function(*bound.args, **bound.kwargs)


def _python_builtin(graph: Graph, name: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> Traced:
    """Calls the built-in max or min on elementwise values. sum(x) and max(x), which iterate over rows, are refused."""
    if name == "sum" or len(arguments) < 2 or keywords:
        raise Untraceable(f"Python's {name} iterates over rows", f"x.{name}(), or {name}(x, dim=0) for each column")
    value = graph.operand(arguments[0])
    for other in arguments[1:]:
        value = graph.apply(name, value, graph.operand(other))
    return value


def _on_numbers(name: str, arguments: Sequence[object]) -> float | None:
    """The result that Python computes if all arguments are numbers, else None."""
    functions: dict[str, Callable[..., Any]] = {
        **{each: getattr(math, each) for each in "exp log log1p sqrt floor tanh erf pow".split()},
        "abs": abs,
        "min": min,
        "max": max,
        "round": round,
        "neg": lambda x: -x,
    }
    if name not in functions or not arguments or any(not isinstance(each, (int, float)) for each in arguments):
        return None
    try:
        value = functions[name](*arguments)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise Untraceable(f"{name}(): {error}") from error
    return value if isinstance(value, (int, float)) else None


def attribute_of_value(value: Traced, name: str) -> object:
    """An attribute of a traced value: its shape, its rank, or a method."""
    if name == "shape":
        return value.shape
    if name == "ndim":
        return len(value.shape)
    if name in ("T", "mT", "dtype", "device", "data", "grad", "real", "imag", "size", "at"):
        raise Untraceable(f"x.{name} cannot be traced", HINTS.get(name))
    return Method(value, name)


def hint(name: str) -> str | None:
    """What to write instead of a function that epilogues do not have."""
    known = HINTS.get(name) or HINTS.get(name.rpartition("_")[2])
    close = difflib.get_close_matches(name.removeprefix("_")[:40], [*TABLE, *ALIASES], 1, 0.75)
    return known or (f"{close[0]}, if you mean that" if close else None)


def _unknown(path: str, name: str) -> Untraceable:
    return Untraceable(f"{path} is no function of epilogues", hint(name))
