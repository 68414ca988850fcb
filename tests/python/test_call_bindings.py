"""matmul(out=) with a function: later calls use what the first one traced, unless something that the function reads, or
a shape or type that the trace depends on, has changed."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument
from tilewright.product import _BINDINGS

FACTOR = 2
A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
B = np.arange(20, dtype=np.float32).reshape(4, 5) % 7 - 3
PRODUCT = A.astype(np.float64) @ B


def product(epilogue: Callable[..., Any], a: Any = A, b: Any = B, **operands: Any) -> Any:
    out = np.full((*a.shape[:-1], b.shape[-1]), np.nan, a.dtype)
    tilewright.matmul(a, b, epilogue=epilogue, out=out, **operands)
    return out


def biased(acc: Any, bias: Any) -> Any:
    return acc + bias


def scaled_by_global(acc: Any, bias: Any) -> Any:
    return acc * FACTOR + bias


def traced(epilogue: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """The graph with which matmul() would run."""
    graphs: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(tilewright.product, "run", lambda args, *_, **__: graphs.append(args.epilogue.signature))
        product(epilogue, bias=np.ones(5, np.float32))
    return graphs[0]


def text(expression: str) -> str:
    """The graph of an expression in the epilogue language."""
    epilogue = tilewright.EpilogueArguments(f"D = {expression}", bias=np.ones(5, np.float32))
    return tilewright.GemmArguments(A, B, np.empty((3, 5), np.float32), None, epilogue).epilogue.signature


def test_a_second_call_makes_no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    bias = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(product(biased, bias=bias), PRODUCT + bias)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("an EpilogueArguments was made")

    monkeypatch.setattr(tilewright.EpilogueArguments, "__init__", refuse)
    for offset in (1, 10):
        np.testing.assert_array_equal(product(biased, bias=bias + offset), PRODUCT + bias + offset)


def test_closures_globals_and_defaults_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 3

    def scaled(acc: Any, bias: Any) -> Any:
        return acc * factor + bias

    def defaulted(acc: Any, bias: Any, times: int = 4) -> Any:
        return acc * times + bias

    for factor in (3, -1, 3):  # noqa: B007  the cell of scaled()
        assert traced(scaled, monkeypatch) == text(f"acc * {factor} + row(bias)")
    for value in (2, 6, 2):
        monkeypatch.setitem(globals(), "FACTOR", value)
        assert traced(scaled_by_global, monkeypatch) == text(f"acc * {value} + row(bias)")
    for value in (4, 5, 4):
        defaulted.__defaults__ = (value,)
        assert traced(defaulted, monkeypatch) == text(f"acc * {value} + row(bias)")
        assert traced(lambda acc, bias, n=value: acc - n * bias, monkeypatch) == text(f"acc - {value} * row(bias)")
    scaled.__code__ = (lambda acc, bias: acc - bias if factor else acc).__code__
    assert traced(scaled, monkeypatch) == text("acc - row(bias)")


def test_functions_of_equal_text_have_their_own_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (7, 8, 7):

        def made(acc: Any, bias: Any) -> Any:
            return acc * value - bias  # noqa: B023

        assert traced(made, monkeypatch) == text(f"acc * {value} - row(bias)")


def test_called_functions_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def inner(acc: Any) -> Any:
        return acc * 2

    def other(acc: Any) -> Any:
        return acc * 5

    space: dict[str, Any] = {}
    called = types.FunctionType((lambda acc, bias: helper(acc) + bias).__code__, space)  # type: ignore[name-defined]  # noqa: F821
    for used, factor in ((inner, 2), (other, 5), (inner, 2)):
        space["helper"] = used
        assert traced(called, monkeypatch) == text(f"acc * {factor} + row(bias)")


def test_shapes_types_and_kinds_of_operands_are_part_of_the_key() -> None:
    for _ in range(2):
        for bias in (np.arange(5.0), np.arange(3.0)[:, None], 2.5, 3):
            array = bias.astype(np.float32) if isinstance(bias, np.ndarray) else bias
            np.testing.assert_array_equal(product(biased, bias=array), PRODUCT + bias)
        a, b = A.astype(np.float64), B.astype(np.float64)
        np.testing.assert_array_equal(product(biased, a, b, bias=np.full(5, 1 / 3)), PRODUCT + 1 / 3)
        batch = np.stack([A, A + 1])
        np.testing.assert_array_equal(product(biased, batch, B, bias=np.ones(5, np.float32)), batch @ B + 1)


def test_scalars_have_the_values_of_the_call() -> None:
    def scale(acc: Any, alpha: Any, s: Any) -> Any:
        return alpha * acc + s

    for alpha, s in ((2.0, 1.0), (3, -1)):
        out = np.full((3, 5), np.nan, np.float32)
        tilewright.matmul(A, B, epilogue=tilewright.EpilogueArguments(scale, alpha=alpha, s=s), out=out)
        np.testing.assert_array_equal(out, alpha * PRODUCT + s)
        np.testing.assert_array_equal(product(lambda acc, s: acc + s, s=s), PRODUCT + s)


def test_masks_and_other_outputs() -> None:
    def masked(acc: Any, mask: Any) -> Any:
        aux = acc * 2
        D = np.where(mask, acc, 0)
        return D, aux

    for seed in (1, 2):
        mask = np.random.default_rng(seed).integers(0, 2, (3, 5)).astype(bool)
        aux = np.full((3, 5), np.nan, np.float32)
        np.testing.assert_array_equal(product(masked, mask=mask, aux=aux), np.where(mask, PRODUCT, 0))
        np.testing.assert_array_equal(aux, 2 * PRODUCT)


def test_mistakes_are_named_after_a_call_that_succeeded() -> None:
    bias = np.ones(5, np.float32)
    product(biased, bias=bias)
    with pytest.raises(InvalidArgument, match="nothing is bound to 'bias'"):
        product(biased, bais=bias)
    with pytest.raises(InvalidArgument, match="bias"):
        product(biased)
    with pytest.raises(InvalidArgument, match="bias"):
        product(biased, bias=np.ones(4, np.float32))
    with pytest.raises(TypeError, match="'bias' of the epilogue must be an array"):
        product(biased, bias=object())
    with pytest.raises(InvalidArgument, match="no argument extra|no parameter or output named extra"):
        product(biased, bias=bias, extra=bias)
    with pytest.raises(InvalidArgument, match="bias is on|bias"):
        product(biased, bias=bias.astype(">f4"))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in range(300):
        traced(lambda acc, bias, v=value: acc + bias + v, monkeypatch)
    assert 0 < len(_BINDINGS._known) <= 256
