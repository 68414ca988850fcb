"""Functions to trace, each with the expected text and the kinds of its parameters."""

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from epilogue_numpy import torch

F = torch.nn.functional
SLOPES = (0.5, 0.25)
SIXTH = 1 / 6
M, N = 6, 8
SHAPES = {
    "bias": (N,),
    "row_bias": (1, N),
    "scale": (M, 1),
    "gain": (M,),
    "shift": (1, 1),
    "offset": (),
    "residual": (M, N),
}
SCALARS = {"alpha": 2.0, "beta": 0.5, "s": 0.75}


@dataclass
class Program:
    function: object
    text: str
    constants: dict = field(default_factory=dict)
    shapes: dict = field(default_factory=lambda: SHAPES)
    c: str | None = None


PROGRAMS = {}


def program(text, **options):
    def register(function):
        PROGRAMS[function.__name__.strip("_")] = Program(function, text, **options)
        return function

    return register


@program("D = relu(acc)")
def returns_an_expression(accum):
    return torch.relu(accum)


@program("t = alpha * acc + beta * C + row(bias); D = gelu(t); single(amax) = absmax(D)", c="C")
def linear_combination(accum, C, bias, alpha, beta):
    """Docstrings are ignored."""
    t = alpha * accum + beta * C + bias  # comments are ignored too
    D = torch.nn.functional.gelu(t)
    amax = abs(D).max()
    return D, amax, t


@program("D = acc + C_", shapes={"C": (M, N)})
def a_tensor_named_c(accum, C):
    return accum + C


@program(
    "D = acc * D_ + relu_ - single(row_) + acc_",
    shapes={"D": (M, N), "relu": (M, N), "row": (), "acc": (M, N)},
)
def parameters_named_as_words_of_the_language(accum, D, relu, row, acc):
    return accum * D + relu - row + acc


@program("D = acc * row(row_bias) + column(scale) - single(shift) / single(offset) + residual")
def all_spreads(accum, row_bias, scale, shift, offset, residual):
    return accum * row_bias + scale - shift / offset + residual


@program("D = acc * (column(gain) + 1)")
def a_vector_along_rows(accum, gain):
    return accum * (gain + 1)[:, None]


@program("D = acc * column(gain) + row(bias)")
def axes_by_newaxis(accum, gain, bias):
    return accum * gain[..., np.newaxis] + bias[None, :]


@program("D = acc * $s + 0.5 + 3")
def scalars_and_defaults(accum, s, half=0.5, *, three: int = 3):
    return accum * s + half + three


@program("let t = acc * 0.5; D = max(t, t * t) - 0.25")
def globals_and_reassignment(accum):
    t = accum * SLOPES[0]
    t: object = np.maximum(t, t * t)
    t -= SLOPES[1]
    return t


def scaled_relu(x, factor=2):
    return torch.relu(x) * factor


@program("D = relu(acc + row(bias)) * 2 + relu(row(bias)) * 3")
def helpers(accum, bias):
    def scaled(x):
        return scaled_relu(x, factor=3)

    same = lambda x: x  # noqa: E731
    return scaled_relu(same(accum + bias)) + scaled(bias)


@program("let above = acc > 0; D = where(above * (acc < row(bias)), acc, 0.25 * acc); mask = 1 - above")
def conditions(accum, bias):
    above = accum > 0
    D = np.where(above & (accum < bias), accum, 0.25 * accum)
    mask = ~above
    return D, mask


@program("D = clamp(acc, -1, 1) + max(acc, 0.5) + min(acc, row(bias))")
def clamps(accum, bias):
    return accum.clip(-1, 1) + torch.clamp(accum, min=0.5) + np.minimum(accum, bias)


@program("D = leaky_relu(acc, 0.01) + leaky_relu(acc, $s)")
def leaky(accum, s):
    return F.leaky_relu(accum) + F.leaky_relu(accum, negative_slope=s)


@program("D = gelu_tanh(acc) + silu(acc) * hardswish(acc) - softplus(acc) / (mish(acc) + 2)")
def activations(accum):
    return (
        F.gelu(accum, approximate="tanh") + F.silu(accum) * F.hardswish(accum) - F.softplus(accum) / (F.mish(accum) + 2)
    )


@program("D = clamp(acc, 0, 6) + clamp(acc + 3, 0, 6) / 6 + clamp(acc, -1, 1)")
def piecewise(accum):
    return F.relu6(accum) + F.hardsigmoid(accum) + F.hardtanh(accum)


@program("D = where(acc > 0, acc, 1 * (exp(min(acc, 0)) - 1))")
def exponential_unit(accum):
    return F.elu(accum)


@program("let x = abs(acc) + 1; D = square(x) - sqrt(x) + rsqrt(x) * reciprocal(x) + pow(x, $s) + pow(2, x)")
def powers(accum, s):
    x = abs(accum) + 1
    return x**2 - x**0.5 + x**-0.5 * x**-1 + x**s + 2**x


@program("let t = square(acc); D = t * acc + square(t)")
def small_powers(accum):
    return accum**3 + accum**4


@program("let t = square(acc); D = exp(-abs(acc)) + log(t + 1) + tanh(acc) + erf(acc) + sigmoid(acc) + log1p(t)")
def functions(accum):
    return (
        np.exp(-np.abs(accum))
        + np.log(np.square(accum) + 1)
        + np.tanh(accum)
        + torch.erf(accum)
        + torch.sigmoid(accum)
        + np.log1p(accum**2)
    )


@program("let t = floor(acc / 2); D = floor(acc) + round(acc) + t + (acc - t * 2)")
def whole_numbers(accum):
    return np.floor(accum) + np.round(accum) + accum // 2 + accum % 2


@program("D = acc * 1.4142135623730951 + 3.141592653589793 - 0.16666666666666666 + -0.125")
def numbers_of_python(accum):
    return accum * math.sqrt(2) + np.pi - SIXTH + -(2**-3)


@program("D = convert(f16, acc * $s) - convert(s8, round(acc))")
def casts(accum, s):
    return (accum * s).astype(torch.float16) - accum.round().astype(np.int8)


@program(
    "D = relu(acc); row(of_columns) = sum(D); column(top) = max(acc); single(least) = min(acc); "
    "column(squares) = sum_of_squares(D); row(peak) = absmax(acc)"
)
def reductions(accum):
    D = torch.relu(accum)
    of_columns = D.sum(axis=0)
    top = torch.amax(accum, dim=-1)
    least = np.min(accum)
    squares = np.sum(D * D, axis=(1,))
    peak = np.abs(accum).max(axis=-2)
    return D, of_columns, top, least, squares, peak


@program("D = acc; single(count) = sum(acc > 0); single(most) = max(acc)")
def reductions_of_all(accum):
    count = (accum > 0).sum()
    most = np.max(accum, axis=(0, 1))
    return accum, count, most


@program("D = silu(even(acc)) * odd(acc); accum = acc")
def gated_pairs(accum):
    gate, value = accum[..., 0::2], accum[:, 1::2]
    return F.silu(gate) * value, accum


@program("let t = acc + row(bias); D = max(even(t), 0) * (odd(t) + column(scale)) * even(residual)")
def pairs_of_tensors(accum, bias, scale, residual):
    t = accum + bias
    even, odd = t[..., ::2], t[..., 1::2]
    return np.maximum(even, 0) * (odd + scale) * residual[:, ::2]


@program("D = acc + 0.5 + 2", constants={"with_bias": False, "mode": "plain", "bias": None})
def static_branches(accum, bias, with_bias, mode, count=2):
    assert mode in ("plain", "other"), "unknown mode"
    if bias is not None:
        accum = accum + bias
    elif with_bias:
        return accum
    else:
        accum = accum + (0.5 if mode == "plain" else bias)
    return accum + count if count > 1 and not with_bias else accum


@program("D = (acc + 1) * 2 + 3")
def unrolled_loops(accum):
    for number in range(1, 9):
        if number == 4:
            break
        if number % 2 == 0:
            accum = accum * number
            continue
        accum = accum + number
    return accum


@program("D = where(acc > row(bias), acc, row(bias)) + where(acc, 1, 2)")
def choices(accum, bias):
    return np.where(accum > bias, accum, bias) + np.where(accum, 1, 2)


@program("D = where(row_index >= column_index, acc, 0)")
def a_causal_mask(accum):
    rows, columns = np.arange(accum.shape[0])[:, None], np.arange(accum.shape[-1])
    return np.where(rows >= columns, accum, 0)


@program("let t_ = acc + 1; t = t_ * t_; D = t - t_")
def names_are_kept_where_they_are_free(accum):
    t = accum + 1
    t = t * t
    D = t - (accum + 1)
    return D, t


@program("u3b1 = acc - 1; D = u3b1 * 2; accum = acc")
def names_beyond_ascii(accum):
    α = accum - 1
    return α * 2, α, accum


@program("let t = acc - (acc - (acc - 1)); D = t / (t / t) * -t - (t > 0) * (t * (t * 2))")
def parentheses(accum):
    t = accum - (accum - (accum - 1))
    return t / (t / t) * -t - (t > 0) * (t * (t * 2))


class Scaled:
    """An object whose methods are traced: its attributes are constants."""

    def __init__(self, factor):
        self.factor = factor

    def epilogue(self, accum):
        return self.twice(accum) * self.factor

    def twice(self, x):
        return x * 2

    def __call__(self, accum, s):
        return accum * self.factor + s


def scaled_by(factor):
    def epilogue(accum):
        return accum * factor

    return epilogue


def partially(accum, bias, slope, flag=True):
    return accum * slope if flag else accum


PROGRAMS |= {
    "closure": Program(scaled_by(0.125), "D = acc * 0.125"),
    "method": Program(Scaled(3).epilogue, "D = acc * 2 * 3"),
    "callable_object": Program(Scaled(3), "D = acc * 3 + $s"),
    "partial": Program(functools.partial(partially, bias=None, slope=0.5), "D = acc * 0.5"),
    "lambda_of_two": Program((lambda accum: accum + 1, lambda accum: accum * 2)[1], "D = acc * 2"),
    "lambda": Program(
        lambda accum, bias: (torch.relu(accum + bias), accum),
        "D = relu(acc + row(bias)); accum = acc",
    ),
}
