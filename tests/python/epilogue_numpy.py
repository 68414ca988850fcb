"""Evaluates the epilogue language on NumPy arrays in f64, and provides stand-ins for torch and its functions."""

import math
import re
import types

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softplus(x):
    return np.logaddexp(x, 0)


def even(x):
    return x[..., 0::2]


def odd(x):
    return x[..., 1::2]


FUNCTIONS = {
    "abs": np.abs,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "floor": np.floor,
    "round": np.round,
    "erf": erf,
    "tanh": np.tanh,
    "square": np.square,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "leaky_relu": lambda x, y: np.maximum(x, 0) + y * np.minimum(x, 0),
    "fma": lambda x, y, z: x * y + z,
    "where": lambda x, y, z: np.where(np.asarray(x) != 0, y, z),
    "clamp": lambda x, y, z: np.minimum(np.maximum(x, y), z),
    "even": even,
    "odd": odd,
    "swiglu": lambda x: even(x) * sigmoid(even(x)) * odd(x),
}
TYPES = {"f16": np.float16, "f32": np.float32, "s8": np.int8, "s32": np.int32}
REDUCTIONS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "absmax": lambda x, axis: np.max(np.abs(x), axis),
    "sum_of_squares": lambda x, axis: np.sum(x * x, axis),
}
AXES = {"row": -2, "column": -1, "single": (-2, -1)}


def evaluate(text, accumulator, values, c=None):
    """The arrays that a text stores, by label. `values` has the tensors and scalars by label."""
    m, n = accumulator.shape
    names = {
        **FUNCTIONS,
        **values,
        "acc": accumulator,
        "C": c,
        "row": lambda x: np.reshape(x, (1, n)),
        "column": lambda x: np.reshape(x, (m, 1)),
        "single": lambda x: np.reshape(x, (1, 1)),
        "row_index": np.arange(m)[:, None],
        "column_index": np.arange(n)[None, :],
        "convert": lambda dtype, x: np.asarray(x).astype(TYPES[dtype]).astype(float),
    }
    stored = {}
    for statement in text.split("; "):
        left, _, right = statement.partition(" = ")
        right = re.sub(r"\b(f16|f32|s8|s32)\b(?=,)", r"'\1'", right.replace("$", ""))
        mode, _, label = left.removesuffix(")").partition("(")
        if label:
            reduction, _, argument = right.removesuffix(")").partition("(")
            value = np.broadcast_to(as_number(eval(argument, {"__builtins__": {}}, names)), (m, n))
            stored[label] = REDUCTIONS[reduction](value, axis=AXES[mode])
            continue
        name = left.removeprefix("let ")
        names[name] = as_number(eval(right, {"__builtins__": {}}, names))
        if name == left:
            stored[name] = names[name]
    return stored


def as_number(value):
    """Converts to f64; the results of comparisons become 1 and 0."""
    return np.asarray(value, dtype=float)


def module(name, **contents):
    made = types.ModuleType(name)
    vars(made).update(contents)
    return made


def _along(function):
    return lambda x, dim=None: function(x, axis=dim)


functional = module(
    "torch.nn.functional",
    gelu=lambda x, approximate="none": gelu(x) if approximate == "none" else gelu_tanh(x),
    silu=FUNCTIONS["silu"],
    leaky_relu=lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    hardswish=FUNCTIONS["hardswish"],
    softplus=softplus,
    mish=FUNCTIONS["mish"],
    elu=lambda x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1)),
    relu6=lambda x: np.clip(x, 0, 6),
    hardsigmoid=lambda x: np.clip(x + 3, 0, 6) / 6,
    hardtanh=lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
)
torch = module(
    "torch",
    nn=module("torch.nn", functional=functional),
    float16=np.float16,
    amax=_along(np.max),
    amin=_along(np.min),
    sum=_along(np.sum),
    relu=FUNCTIONS["relu"],
    sigmoid=sigmoid,
    rsqrt=FUNCTIONS["rsqrt"],
    erf=erf,
    clamp=lambda x, min=None, max=None: np.clip(x, min, max),
    where=np.where,
    maximum=np.maximum,
    logical_and=np.logical_and,
)
