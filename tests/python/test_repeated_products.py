"""matmul(): a call that is like an earlier one is computed by the extension module alone, unless something that its
epilogue reads, or a shape or type, has changed."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument

FACTOR = 2
A = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
B = np.arange(20, dtype=np.float32).reshape(4, 5) % 7 - 3
PRODUCT = A.astype(np.float64) @ B
BIAS = np.ones(5, np.float32)


def product(epilogue: Any, a: Any = A, b: Any = B, **operands: Any) -> Any:
    out = np.full((*a.shape[:-1], b.shape[-1]), np.nan, a.dtype)
    assert tilewright.matmul(a, b, epilogue=epilogue, out=out, **operands) is out
    return out


def biased(acc: Any, bias: Any) -> Any:
    return acc + bias


def scaled_by_global(acc: Any, bias: Any) -> Any:
    return acc * FACTOR + bias


@pytest.fixture
def only_repeated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Calling it makes calls fail that are not like an earlier one."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the call was read in Python")

    return lambda: monkeypatch.setattr(tilewright.product, "bound_epilogue", refuse)


def test_a_second_call_is_not_read_in_python(only_repeated: Callable[[], None]) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (3, 4)).astype(np.float32)
    calls: list[tuple[Any, dict[str, Any], Any]] = [
        (None, {}, lambda a, bias: a @ B),
        ("D = acc + row(bias)", {"bias": BIAS}, lambda a, bias: a @ B + bias),
        (biased, {"bias": BIAS}, lambda a, bias: a @ B + bias),
        (lambda acc, bias, times=2: acc * times + bias, {"bias": BIAS}, lambda a, bias: a @ B * 2 + bias),
        (scaled_by_global, {"bias": BIAS}, lambda a, bias: a @ B * 2 + bias),
    ]
    for epilogue, operands, expected in calls:
        np.testing.assert_array_equal(product(epilogue, **operands), expected(A, BIAS))
        np.testing.assert_array_equal(tilewright.matmul(A, B, epilogue=epilogue, **operands), expected(A, BIAS))
    only_repeated()
    for epilogue, operands, expected in calls:
        for a, bias in ((x, BIAS * 7), (A.copy(), BIAS), (x + 1, BIAS - 3)):
            given = {name: bias for name in operands}
            np.testing.assert_array_equal(product(epilogue, a, **given), expected(a, bias))
            result = tilewright.matmul(a, B, epilogue=epilogue, **given)
            assert result.dtype == np.float32 and result.shape == (3, 5)
            np.testing.assert_array_equal(result, expected(a, bias))


def test_each_value_that_a_call_depends_on_is_compared(only_repeated: Callable[[], None]) -> None:
    a, b, wide, c = A[:2], B[:, :3].copy(), np.zeros((2, 6), np.float32), np.ones((2, 3), np.float32)
    out = np.empty((2, 3), np.float32)
    tilewright.matmul(a, b, out=out)
    only_repeated()
    tilewright.matmul(a, b, out=out)
    others: list[Callable[[], Any]] = [
        lambda: tilewright.matmul(a, b, out=wide[:, :3]),
        lambda: tilewright.matmul(np.asfortranarray(a), b, out=out),
        lambda: tilewright.matmul(a, b, out=np.empty((2, 3), np.float64)),
        lambda: tilewright.matmul(a, b, out=out, alpha=2),
        lambda: tilewright.matmul(a, b, out=out, alpha=-0.0),
        lambda: tilewright.matmul(a, b, out=out, beta=1),
        lambda: tilewright.matmul(a, b, out=out, c=c),
        lambda: tilewright.matmul(a, b, out=out, math="multiply_add_tf32"),
        lambda: tilewright.matmul(a, b, out=out, accumulator_type="f64"),
        lambda: tilewright.matmul(a, b, out_dtype=np.float64),
        lambda: tilewright.matmul(a, b),
        lambda: tilewright.matmul(a, b, out=out, epilogue="relu"),
        lambda: tilewright.matmul(a, b, out=out, bias=BIAS),
        lambda: tilewright.matmul(a[:1], b, out=out[:1]),
        lambda: tilewright.matmul(a.tolist(), b, out=out),
    ]
    for call in others:
        with pytest.raises(AssertionError, match="the call was read in Python"):
            call()


def test_mistakes_after_a_call_that_succeeded_are_named() -> None:
    out = np.empty((3, 5), np.float32)
    for _ in range(3):
        tilewright.matmul(A, B, out=out)
    out.setflags(write=False)
    with pytest.raises(InvalidArgument, match="out is read-only"):
        tilewright.matmul(A, B, out=out)
    square = np.ones((4, 4), np.float32)
    tilewright.matmul(square, square.copy(), out=np.empty((4, 4), np.float32))
    with pytest.raises(InvalidArgument, match="out .*overlaps a"):
        tilewright.matmul(square, square.copy(), out=square)
    with pytest.raises(TypeError, match="deterministic must be True, False or None, got 1"):
        tilewright.matmul(square, square, deterministic=1)  # type: ignore[arg-type]


def test_closures_globals_and_defaults_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 3

    def scaled(acc: Any, bias: Any) -> Any:
        return acc * factor + bias

    def defaulted(acc: Any, bias: Any, times: int = 3) -> Any:
        return acc * times + bias

    def by_keyword(acc: Any, bias: Any, *, times: int = 3) -> Any:
        return acc * times + bias

    def check(function: Callable[..., Any], value: int) -> None:
        for _ in range(2):
            np.testing.assert_array_equal(product(function, bias=BIAS), PRODUCT * value + 1)

    for factor in (3, 2, 3):  # noqa: B007  the cell of scaled()
        check(scaled, factor)
    for value in (3, 2, 3):
        monkeypatch.setitem(globals(), "FACTOR", value)
        check(scaled_by_global, value)
        defaulted.__defaults__ = (value,)
        check(defaulted, value)
        by_keyword.__kwdefaults__["times"] = value
        check(by_keyword, value)
        check(lambda acc, bias, n=value: acc * n + bias, value)
    scaled.__code__ = (lambda acc, bias: (acc + bias) if factor else acc).__code__
    np.testing.assert_array_equal(product(scaled, bias=BIAS), PRODUCT + 1)


def test_objects_that_can_change_are_read_at_every_call() -> None:
    settings = {"factor": 2}
    sizes = [2]

    class Layer:
        factor = 2

        def __call__(self, acc: Any, bias: Any) -> Any:
            return acc * self.factor + bias

    layer = Layer()
    for value in (2, 3, 2):
        settings["factor"] = sizes[0] = layer.factor = value
        for function in (
            lambda acc, bias: acc * settings["factor"] + bias,
            lambda acc, bias: acc * sizes[0] + bias,
            lambda acc, bias: acc * layer.factor + bias,
        ):
            try:
                result = product(function, bias=BIAS)
            except tilewright.TraceError:
                continue  # the value is none that a trace can read
            np.testing.assert_array_equal(result, PRODUCT * value + 1)


def test_functions_of_equal_text_have_their_own_values() -> None:
    for value in (2, 3, 2):

        def made(acc: Any, bias: Any) -> Any:
            return acc * value + bias  # noqa: B023

        np.testing.assert_array_equal(product(made, bias=BIAS), PRODUCT * value + 1)


def test_called_functions_are_read_again(only_repeated: Callable[[], None]) -> None:
    def inner(acc: Any) -> Any:
        return acc * 2

    def other(acc: Any) -> Any:
        return acc * 3

    space: dict[str, Any] = {}
    called = types.FunctionType((lambda acc, bias: helper(acc) + bias).__code__, space)  # type: ignore[name-defined]  # noqa: F821
    for used, factor in ((inner, 2), (other, 3), (inner, 2)):
        space["helper"] = used
        np.testing.assert_array_equal(product(called, bias=BIAS), PRODUCT * factor + 1)
    inner.__code__ = other.__code__
    np.testing.assert_array_equal(product(called, bias=BIAS), PRODUCT * 3 + 1)
    only_repeated()
    np.testing.assert_array_equal(product(called, bias=BIAS), PRODUCT * 3 + 1)


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
    def make() -> Callable[..., Any]:
        return types.FunctionType(biased.__code__.replace(), globals())  # a new code object, which is equal

    first = make()
    product(first, bias=BIAS)
    code = weakref.ref(first.__code__)
    del first
    gc.collect()
    assert code() is not None
    monkeypatch.setattr(tilewright.product, "run", lambda *_, **__: None)
    for _ in range(300):
        product(make(), bias=BIAS)
    gc.collect()
    assert code() is None
