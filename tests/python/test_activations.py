"""Activations of other libraries are epilogues, and a traced function is traced once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import DType, EpilogueArguments, InvalidArgument, pycutlass
from tilewright import epilogue as epilogues
from tilewright.tracing.identity import key_of

A = np.arange(-8, 8, dtype=np.float32).reshape(4, 4) / 2
EYE = np.eye(4, dtype=np.float32)
slope = 0.5


def test_functions_of_numpy() -> None:
    np.testing.assert_allclose(tilewright.matmul(A, EYE, epilogue=np.tanh), np.tanh(A), atol=1e-6)
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=np.abs), np.abs(A))


def test_activations_of_pycutlass() -> None:
    relu, leaky = pycutlass.relu(pycutlass.cutlass.float32), pycutlass.leaky_relu
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=relu), np.maximum(A, 0))
    np.testing.assert_allclose(tilewright.matmul(A, EYE, epilogue=leaky), np.where(A > 0, A, A * np.float32(0.2)))
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=pycutlass.identity), A)


def test_activations_of_torch() -> None:
    torch = pytest.importorskip("torch")
    F, nn = torch.nn.functional, torch.nn
    a, eye = torch.from_numpy(A), torch.from_numpy(EYE)
    given: list[Callable[..., Any]] = [torch.relu, torch.tanh, torch.sigmoid, F.relu, F.gelu, F.silu, F.leaky_relu]
    given += [nn.ReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Sigmoid(), nn.Tanh()]
    given += [nn.Softplus(), nn.Softplus(2, 1), nn.CELU(0.5), nn.SELU(), nn.Threshold(0.5, -7)]
    given += [nn.LeakyReLU(0.3), nn.Hardswish(), nn.ELU(0.5), nn.Identity(), nn.Mish(), nn.ReLU6(), nn.Hardtanh(-1, 2)]
    for each in given:
        expected = each(a.clone())
        torch.testing.assert_close(tilewright.matmul(a, eye, epilogue=each), expected, msg=str(each))


    with pytest.raises(InvalidArgument, match=r"epilogue is the class ReLU: pass an object of it, ReLU\(\)"):
        tilewright.matmul(a, eye, epilogue=nn.ReLU)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("F.softplus(x, 2, 1)", np.where(2 * A > 1, A, np.log1p(np.exp(2 * A)) / 2)),
        ("F.softplus(x, beta=2)", np.log1p(np.exp(2 * A)) / 2),
        ("F.celu(x, 0.5)", np.where(A > 0, A, 0.5 * np.expm1(A / 0.5))),
        ("F.selu(x)", 1.0507009873554805 * np.where(A > 0, A, 1.6732632423543772 * np.expm1(A))),
        ("F.threshold(x, 0.5, -7)", np.where(A > 0.5, A, -7)),
        ("x.masked_fill(x > 1, -9)", np.where(A > 1, -9, A)),
        ("x.masked_fill(mask, 0)", np.where(A < 0, 0, A)),
    ],
)
def test_functions_that_are_composed(function: str, expected: Any) -> None:
    operands = {"mask": A < 0} if "(mask," in function else {}
    parameters = ", ".join(["x", *operands])
    found = tilewright.matmul(A, EYE, epilogue=f"def epilogue({parameters}): return {function}", **operands)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_activations_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for each in (jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.numpy.tanh):
        np.testing.assert_allclose(tilewright.matmul(A, EYE, epilogue=each), each(A), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.mean, "numpy.mean is no function of epilogues; instead: return the sum"),
        (np.fft, "numpy.fft is no function of epilogues"),
    ],
)
def test_other_functions_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        tilewright.matmul(A, EYE, epilogue=given)


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match=r"epilogue must be a Python function, a name .*, got int"):
        tilewright.matmul(A, EYE, epilogue=3)
    with pytest.raises(TypeError, match=r"'bias' of the epilogue must be an array, .* got list"):
        tilewright.matmul(A, EYE, epilogue=lambda acc, bias: acc + bias, bias=[1, 2])


def traces(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The functions that are traced from now on."""
    import tilewright.tracing

    traced: list[object] = []
    trace = tilewright.tracing.trace

    def counted(function: Any, **options: Any) -> Any:
        traced.append(function)
        return trace(function, **options)

    monkeypatch.setattr(tilewright.tracing, "trace", counted)
    epilogues._TRACED.clear()
    return traced


def bind(function: Any, **operands: Any) -> dict[str, float]:
    return EpilogueArguments(function, **operands)._bind(None, 4, 4, DType.f32, DType.f32)[2]


def scaled(acc: Any, mask: Any, s: float) -> Any:
    return np.where(mask, acc, slope * acc * s)


def test_a_function_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    global slope
    traced = traces(monkeypatch)
    mask = A > 0
    assert [bind(scaled, mask=mask, s=float(n)) for n in range(3)] == [{"s": 0.0}, {"s": 1.0}, {"s": 2.0}]
    assert traced == [scaled]
    bind(scaled, mask=mask[0], s=1.0)  # another shape
    assert len(traced) == 2
    slope = 0.25
    try:
        d = tilewright.matmul(A, EYE, epilogue=scaled, mask=mask, s=2.0)
    finally:
        slope = 0.5
    np.testing.assert_array_equal(d, np.where(mask, A, 0.5 * A))
    assert len(traced) == 3


def make(factor: Any) -> Callable[..., Any]:
    return lambda acc: acc * factor


def test_closures_tell_functions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = traces(monkeypatch)
    for factor in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=make(factor)), A * np.float32(factor))
    assert len(traced) == 2
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=make(2)), A * 2)
    assert len(traced) == 3  # an int, which the key tells from a float


def helper(x: Any, by: float = 2.0) -> Any:
    return x * by


def calls_helper(acc: Any) -> Any:
    return helper(acc)


class Settings:
    factor = 2.0


settings = Settings()


def reads_an_object(acc: Any) -> Any:
    return acc * settings.factor


def test_keys_see_what_functions_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key_of(calls_helper)
    assert first is not None and first == key_of(calls_helper)
    monkeypatch.setattr(helper, "__defaults__", (3.0,))
    assert key_of(calls_helper) != first
    assert key_of(functools.partial(helper, by=2.0)) != key_of(functools.partial(helper, by=3.0))
    assert key_of(make(0.0)) != key_of(make(-0.0))
    assert key_of(make(ModuleType("mine"))) is None
    assert key_of(reads_an_object) is None
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=reads_an_object), A * 2)
    monkeypatch.setattr(Settings, "factor", 3.0)
    np.testing.assert_array_equal(tilewright.matmul(A, EYE, epilogue=reads_an_object), A * 3)


def rounded(acc: Any) -> Any:
    return abs(acc * slope)


def test_keys_see_what_functions_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    first = key_of(rounded)
    assert first is not None and first is key_of(rounded)
    monkeypatch.setitem(globals(), "slope", 0.75)
    assert key_of(rounded) != first
    monkeypatch.setitem(globals(), "slope", 0.5)
    assert key_of(rounded) == first
    monkeypatch.setitem(globals(), "abs", np.tanh)  # hides the builtin function
    assert key_of(rounded) not in (None, first)
    monkeypatch.setitem(globals(), "abs", None)
    assert key_of(rounded) != first
    monkeypatch.delitem(globals(), "abs")
    assert key_of(rounded) == first
    monkeypatch.delitem(globals(), "slope")
    assert key_of(rounded) != first
    by_two, by_three = make(2.0), make(3.0)
    keys = [key_of(function) for function in (by_two, by_three, by_two, by_three)]
    assert keys[0] is keys[2] and keys[1] is keys[3] and keys[0] != keys[1]
    cells: Any = by_two.__closure__
    cells[0].cell_contents = 3.0
    assert key_of(by_two) is keys[1]


def test_a_remembered_function_is_neither_traced_nor_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = A > 0
    bind(scaled, mask=mask, s=1.0)
    monkeypatch.setattr("tilewright.tracing.trace", pytest.fail)
    monkeypatch.setattr("tilewright.tracing.parameters", pytest.fail)
    assert _calls_of(lambda: bind(scaled, mask=mask, s=2.0)) <= 30


def test_a_call_of_matmul_stays_short() -> None:
    """Counts calls of Python functions, which on a GPU cost more time than the launch, instead of seconds."""
    bias, out = np.zeros(A.shape[1], np.float32), np.empty_like(A)

    def plain() -> None:
        tilewright.matmul(A, EYE, out=out)

    def with_epilogue() -> None:
        tilewright.matmul(A, EYE, epilogue=lambda acc, bias: np.maximum(acc + bias, 0), bias=bias, out=out)

    for work, most in ((plain, 25), (with_epilogue, 50)):
        work()
        assert _calls_of(work) <= most


def _calls_of(work: Callable[[], object]) -> int:
    """The number of Python functions that the call runs."""
    count = 0

    def profiler(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profiler)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
